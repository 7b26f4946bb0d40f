-- Durations below zero and beyond a day, fractions of all lengths, moments before 1970, sessions of other zones.
-- @capture tf.*
CREATE DATABASE tf; USE tf;
CREATE TABLE t (id INT PRIMARY KEY, a TIME, b TIME(1), c TIME(3), d TIME(6), e DATETIME(6), f TIMESTAMP(6) NULL, g DATE);
INSERT INTO t VALUES (1, '-838:59:59', '-00:00:00.1', '-00:00:01.001', '-26:00:00.000001', '1000-01-01 00:00:00.000001', '1970-01-01 00:00:01.5', '1000-01-01');
SET time_zone = '-05:00';
INSERT INTO t VALUES (2, '838:59:59', '24:00:00.9', '00:00:00.999', '100:00:00', '2024-11-03 01:30:00', '2024-11-03 01:30:00.000009', '9999-12-31');
