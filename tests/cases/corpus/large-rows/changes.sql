USE lr;
INSERT INTO t VALUES (2, REPEAT(X'62', 16777215 - 57), NULL), (3, NULL, REPEAT('é', 9 * 1024 * 1024));
INSERT INTO t VALUES (4, REPEAT(X'63', 2 * 16777215), 'two packets');
UPDATE t SET t = 'both images in one event' WHERE id = 1;
DELETE FROM t WHERE id = 2;
INSERT INTO t VALUES (5, 'small', 'behind the large ones');
