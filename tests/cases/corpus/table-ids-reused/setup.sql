-- A number in the log names another table after a flush or a restart.
-- @capture ids.mine
CREATE DATABASE ids; USE ids;
CREATE TABLE mine (id INT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE yours (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO mine VALUES (1, 'mine'); INSERT INTO yours VALUES (1, 'yours');
