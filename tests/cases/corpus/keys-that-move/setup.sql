-- Rows change their keys, take each other's place and come back, alone and within one transaction.
-- @capture mv.*
-- @option source.chunk.rows=3
CREATE DATABASE mv; USE mv;
CREATE TABLE t (a INT, b VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, v INT, PRIMARY KEY (a, b));
INSERT INTO t VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3), (2, 'B', 4), (3, '', 5), (3, 'x', 6), (4, 'y', 7), (5, 'z', 8);
