-- Only tables that nobody captures change, and the log that the last captured change stands in is removed.
-- @capture quiet.*
CREATE DATABASE quiet; CREATE DATABASE noise; USE quiet;
CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1);
CREATE TABLE noise.n (id INT PRIMARY KEY AUTO_INCREMENT, v INT);
