-- Transactions that end out of the order of their numbers: what was read is a set with a hole.
-- @capture gap.*
-- @once
CREATE DATABASE gap; USE gap;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO t VALUES (0, 'before');
