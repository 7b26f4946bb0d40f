USE off;
-- @wait-caught-up
-- @checkpoint
-- @stop-host
INSERT INTO one VALUES (2, 2); INSERT INTO none VALUES (1, 1);
-- @start-host
INSERT INTO one VALUES (3, 3); INSERT INTO none VALUES (2, 2); DELETE FROM none WHERE id = 1;
