-- Equal rows, of which none is lost and none comes twice, and a table whose only unique key takes NULL.
-- @capture kl.*
CREATE DATABASE kl; USE kl;
GRANT LOCK TABLES ON kl.* TO 'cdc_min'@'%';
CREATE TABLE bag (a INT, b VARCHAR(20));
INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (NULL, NULL), (2, 'y');
INSERT INTO bag SELECT bag.* FROM bag, bag AS b, bag AS c, bag AS d, bag AS e, bag AS f;
CREATE TABLE part (a INT NOT NULL, b INT, UNIQUE KEY (a, b));
INSERT INTO part VALUES (1, NULL), (1, NULL), (1, 2);
CREATE TABLE keyed (id INT PRIMARY KEY, v INT);
INSERT INTO keyed VALUES (1, 1), (2, 2);
CREATE TABLE days (d DATE);
