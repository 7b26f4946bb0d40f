USE quiet;
INSERT INTO t VALUES (2, 2);
-- @wait-caught-up
INSERT INTO noise.n (v) VALUES (1), (2); FLUSH LOGS;
INSERT INTO noise.n (v) SELECT v FROM noise.n; FLUSH LOGS;
-- @wait-heartbeat
-- @checkpoint
-- @stop-host
-- @purge-binlogs-to-current
-- @start-host
INSERT INTO t VALUES (3, 3);
