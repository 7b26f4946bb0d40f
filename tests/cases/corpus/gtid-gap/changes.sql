USE gap;
SET GTID_NEXT = '3e11fa47-71ca-11e1-9e33-c80aa9429562:1'; INSERT INTO t VALUES (1, 'one');
SET GTID_NEXT = '3e11fa47-71ca-11e1-9e33-c80aa9429562:4'; INSERT INTO t VALUES (4, 'four');
-- @wait-caught-up
-- @checkpoint
-- @kill-host
SET GTID_NEXT = '3e11fa47-71ca-11e1-9e33-c80aa9429562:3'; INSERT INTO t VALUES (3, 'into the hole');
SET GTID_NEXT = '3e11fa47-71ca-11e1-9e33-c80aa9429562:2'; UPDATE t SET v = 'changed' WHERE id = 1;
SET GTID_NEXT = '3e11fa47-71ca-11e1-9e33-c80aa9429562:5'; DELETE FROM t WHERE id = 4;
SET GTID_NEXT = 'AUTOMATIC';
-- @start-host
