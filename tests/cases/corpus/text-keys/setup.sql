-- Small chunks along keys whose order only the server knows.
-- @capture tk.*
-- @option source.chunk.rows=2
CREATE DATABASE tk; USE tk;
CREATE TABLE c (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, v INT);
INSERT INTO c VALUES ('0', 1), ('a', 2), ('B', 3), ('b c', 4), ('C', 5), ('_', 6), ('Ö', 7), ('é', 8), ('ß', 9), ('z', 10), ('中', 11), ('🦀', 12);
CREATE TABLE d (k CHAR(12) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, n INT, v INT, PRIMARY KEY (k, n));
INSERT INTO d VALUES ('f', 1, 1), ('F', 2, 2), ('f', 3, 3), ('e', 1, 4), ('G', 1, 5), ('', 0, 6);
CREATE TABLE e (k VARBINARY(8) PRIMARY KEY, v INT);
INSERT INTO e VALUES (X'00', 1), (X'0000', 2), (X'7F', 3), (X'80', 4), (X'FF', 5);
CREATE TABLE f (d DECIMAL(10, 3), t DATETIME(6), v INT, PRIMARY KEY (d, t));
INSERT INTO f VALUES (-1.5, '2024-01-01', 1), (0, '2024-01-01', 2), (0, '1999-12-31 23:59:59.999999', 3), (99999.125, '2024-01-01', 4), (0.001, '2024-01-01', 5);
