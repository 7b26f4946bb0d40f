-- The first checkpoint knows no change at all; what happens while nothing runs must still come.
-- @capture off.*
CREATE DATABASE off; USE off;
CREATE TABLE none (id INT PRIMARY KEY, v INT);
CREATE TABLE one (id INT PRIMARY KEY, v INT); INSERT INTO one VALUES (1, 1);
