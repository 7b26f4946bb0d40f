USE ids;
INSERT INTO mine VALUES (2, 'mine'); INSERT INTO yours VALUES (2, 'yours');
FLUSH TABLES;
INSERT INTO yours VALUES (3, 'yours'); INSERT INTO mine VALUES (3, 'mine');
FLUSH LOGS;
UPDATE yours SET v = 'yours too' WHERE id = 1; UPDATE mine SET v = 'mine too' WHERE id = 1;
-- @restart-server
INSERT INTO yours VALUES (4, 'yours'); INSERT INTO mine VALUES (4, 'mine');
ALTER TABLE yours RENAME TO theirs;
INSERT INTO theirs VALUES (5, 'theirs'); INSERT INTO mine VALUES (5, 'mine');
