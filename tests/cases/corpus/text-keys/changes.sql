USE tk;
UPDATE c SET v = v + 100 WHERE k IN ('a', 'z', 'é');
DELETE FROM c WHERE k = 'ß';
INSERT INTO c VALUES ('aa', 20), ('ZZ', 21);
UPDATE c SET k = 'Y' WHERE k = 'C';
UPDATE c SET k = 'A' WHERE k = 'a';
UPDATE d SET v = v + 100 WHERE k = 'F'; INSERT INTO d VALUES ('g', 1, 7);
UPDATE e SET v = 40 WHERE k = X'80'; DELETE FROM e WHERE k = X'0000';
UPDATE f SET d = d * 2; DELETE FROM f WHERE d = 0 AND t < '2000-01-01';
