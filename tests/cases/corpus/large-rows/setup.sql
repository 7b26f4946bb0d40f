-- Rows longer than one packet of the protocol, alone and with their before images.
-- @capture lr.*
CREATE DATABASE lr; USE lr;
CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, t LONGTEXT);
INSERT INTO t VALUES (1, REPEAT(X'61', 17 * 1024 * 1024), 'read from the table');
