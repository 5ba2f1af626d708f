BEGIN TRANSACTION;
CREATE TABLE accounts (
	account TEXT NOT NULL, 
	family TEXT NOT NULL, 
	most BIGINT NOT NULL, 
	spent BIGINT NOT NULL, 
	PRIMARY KEY (account), 
	CONSTRAINT never_overspent CHECK (spent >= 0 AND spent <= most), 
	FOREIGN KEY(family) REFERENCES families (family)
);
INSERT INTO "accounts" VALUES('data:3401ce388ca0056bdb2672cf40fed509','3401ce388ca0056bdb2672cf40fed509',5000000,1750000);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0002');
CREATE TABLE answers (
	data_set TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	question TEXT NOT NULL, 
	epsilon BIGINT NOT NULL, 
	cost BIGINT NOT NULL, 
	user TEXT NOT NULL, 
	charged TEXT NOT NULL, 
	payload TEXT, 
	PRIMARY KEY (data_set, "key"), 
	FOREIGN KEY(data_set) REFERENCES data_sets (data_set)
);
INSERT INTO "answers" VALUES('3401ce388ca0056bdb2672cf40fed509','8b402170ad9e7ff08ceba795233526ff2e94daa225b9730538931acbbafcacb4','{"bins":null,"by":null,"counted":"patient","epsilon":500000,"mechanism":"geometric","most":null,"query":"fever","rows":4,"unit":"patient"}',500000,500000,'ann','2026-11-27T19:28:13+00:00','{"values":[9]}');
INSERT INTO "answers" VALUES('3401ce388ca0056bdb2672cf40fed509','b7c64d19a6d29bc81337df8ef391618dadf7d54c4ba20b03eb2a59e241d29b0b','{"bins":null,"by":null,"counted":"patient","epsilon":500000,"mechanism":"geometric","most":null,"query":"fever & sore throat; when=2009-04..2009-06; zip=1230*","rows":4,"unit":"patient"}',500000,500000,'ann','2026-11-27T19:28:13+00:00','{"values":[8]}');
INSERT INTO "answers" VALUES('3401ce388ca0056bdb2672cf40fed509','1a5745ba858f78183f82a9ac9501e695fbc3767faf9b299d79ddbdb511dccb9d','{"bins":["0","1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17","18","19","20"],"by":"age","counted":"patient","epsilon":250000,"mechanism":"geometric","most":null,"query":"fever & headache; age=0..20","rows":4,"unit":"patient"}',250000,250000,'ann','2026-11-27T19:28:13+00:00','{"values":[5,2,-7,-4,4,0,-7,-46,-5,58,0,21,-10,1,-14,11,-34,-28,1,8,5]}');
INSERT INTO "answers" VALUES('3401ce388ca0056bdb2672cf40fed509','79d63556fcea68691930ccb82765e6bc3d3b8b947581dabc6c1caa17ab01857f','{"bins":null,"by":null,"counted":"patient","epsilon":500000,"mechanism":"geometric","most":null,"query":"chills; gender=m","rows":4,"unit":"patient"}',500000,500000,'ann','2026-11-27T19:28:13+00:00','{"values":[-3]}');
CREATE TABLE data_sets (
	data_set TEXT NOT NULL, 
	parent TEXT, 
	family TEXT NOT NULL, 
	threshold BIGINT, 
	PRIMARY KEY (data_set), 
	FOREIGN KEY(parent) REFERENCES data_sets (data_set), 
	FOREIGN KEY(family) REFERENCES families (family)
);
INSERT INTO "data_sets" VALUES('3401ce388ca0056bdb2672cf40fed509',NULL,'3401ce388ca0056bdb2672cf40fed509',NULL);
CREATE TABLE families (
	family TEXT NOT NULL, 
	accounting TEXT NOT NULL, 
	epsilon BIGINT NOT NULL, 
	delta FLOAT, 
	unit TEXT NOT NULL, 
	entries BIGINT NOT NULL, 
	head TEXT NOT NULL, 
	moved TEXT, 
	arrived BOOLEAN NOT NULL, default_allotment TEXT DEFAULT 'all' NOT NULL, 
	PRIMARY KEY (family)
);
INSERT INTO "families" VALUES('3401ce388ca0056bdb2672cf40fed509','pure',5000000,NULL,'patient',9,'4decca0ef101275494823f41afd983995fd2009ab8a0dcfb70b1e89dcb116175',NULL,1,'all');
CREATE TABLE log (
	family TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	time TEXT NOT NULL, 
	body TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (family, number), 
	FOREIGN KEY(family) REFERENCES families (family)
);
INSERT INTO "log" VALUES('3401ce388ca0056bdb2672cf40fed509',1,'2026-11-27T19:28:13+00:00','{"accounting":"pure","data_set":"3401ce388ca0056bdb2672cf40fed509","default_allotment":"all","delta":null,"epsilon":5000000,"event":"opened","most":5000000,"nonce":"13346ed8ee5e5593","parent":null,"threshold":null,"unit":"patient"}','29a908c0bbaf3caf42221f16e356fb9abf6b153aba4d08978529366d2b9fd281');
INSERT INTO "log" VALUES('3401ce388ca0056bdb2672cf40fed509',2,'2026-11-27T19:28:13+00:00','{"cost":500000,"data_set":"3401ce388ca0056bdb2672cf40fed509","epsilon":500000,"event":"charged","key":"8b402170ad9e7ff08ceba795233526ff2e94daa225b9730538931acbbafcacb4","question":"{\"bins\":null,\"by\":null,\"counted\":\"patient\",\"epsilon\":500000,\"mechanism\":\"geometric\",\"most\":null,\"query\":\"fever\",\"rows\":4,\"unit\":\"patient\"}","user":"ann"}','5fe737ddf68d2e6e753ea3eb3c5a353c1d0d95dd71bd8e9e0886b5dea3a63592');
INSERT INTO "log" VALUES('3401ce388ca0056bdb2672cf40fed509',3,'2026-11-27T19:28:13+00:00','{"cost":500000,"data_set":"3401ce388ca0056bdb2672cf40fed509","epsilon":500000,"event":"charged","key":"b7c64d19a6d29bc81337df8ef391618dadf7d54c4ba20b03eb2a59e241d29b0b","question":"{\"bins\":null,\"by\":null,\"counted\":\"patient\",\"epsilon\":500000,\"mechanism\":\"geometric\",\"most\":null,\"query\":\"fever & sore throat; when=2009-04..2009-06; zip=1230*\",\"rows\":4,\"unit\":\"patient\"}","user":"ann"}','2dcf8061ea7faa7187a3f5f242c85e0033e37c6f13546bd0a17cb2a651391bcb');
INSERT INTO "log" VALUES('3401ce388ca0056bdb2672cf40fed509',4,'2026-11-27T19:28:13+00:00','{"cost":250000,"data_set":"3401ce388ca0056bdb2672cf40fed509","epsilon":250000,"event":"charged","key":"1a5745ba858f78183f82a9ac9501e695fbc3767faf9b299d79ddbdb511dccb9d","question":"{\"bins\":[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\",\"13\",\"14\",\"15\",\"16\",\"17\",\"18\",\"19\",\"20\"],\"by\":\"age\",\"counted\":\"patient\",\"epsilon\":250000,\"mechanism\":\"geometric\",\"most\":null,\"query\":\"fever & headache; age=0..20\",\"rows\":4,\"unit\":\"patient\"}","user":"ann"}','f1e9c80b490bf6dc76b646b9953bc965b83982e6e7e4b892b660f622515c7549');
INSERT INTO "log" VALUES('3401ce388ca0056bdb2672cf40fed509',5,'2026-11-27T19:28:13+00:00','{"cost":500000,"data_set":"3401ce388ca0056bdb2672cf40fed509","epsilon":500000,"event":"charged","key":"79d63556fcea68691930ccb82765e6bc3d3b8b947581dabc6c1caa17ab01857f","question":"{\"bins\":null,\"by\":null,\"counted\":\"patient\",\"epsilon\":500000,\"mechanism\":\"geometric\",\"most\":null,\"query\":\"chills; gender=m\",\"rows\":4,\"unit\":\"patient\"}","user":"ann"}','8bcd24fc769398de5af086a142813b011b8cc44bf6e719848a2ab20afd28bf60');
INSERT INTO "log" VALUES('3401ce388ca0056bdb2672cf40fed509',6,'2026-11-27T19:28:13+00:00','{"data_set":"3401ce388ca0056bdb2672cf40fed509","digest":"cf11861e0f02ffb64959a02bbe72b7f601b6b6b675ae46d28d3bda60f836239d","event":"answered","key":"8b402170ad9e7ff08ceba795233526ff2e94daa225b9730538931acbbafcacb4"}','e827c089fa33435c6631d517bcb6ab7963fd949adf35c1be933379cd56fb0012');
INSERT INTO "log" VALUES('3401ce388ca0056bdb2672cf40fed509',7,'2026-11-27T19:28:13+00:00','{"data_set":"3401ce388ca0056bdb2672cf40fed509","digest":"3f9f97eea7def8c935464124c363a9fdfa79b8577c88c279ae014836d536f6d5","event":"answered","key":"b7c64d19a6d29bc81337df8ef391618dadf7d54c4ba20b03eb2a59e241d29b0b"}','b3907a9f42ef0dc43dedd91b0338d89638a89bb2e54976df4da1dd10ed9bafd4');
INSERT INTO "log" VALUES('3401ce388ca0056bdb2672cf40fed509',8,'2026-11-27T19:28:13+00:00','{"data_set":"3401ce388ca0056bdb2672cf40fed509","digest":"e7201e686e6f1b2577faab2f62af8e4cb99021e5d309810954f63cf7920d1a0e","event":"answered","key":"1a5745ba858f78183f82a9ac9501e695fbc3767faf9b299d79ddbdb511dccb9d"}','fda342204eced510511ab8ab7a5851ba769a9ff0c789cd498ebbb9e008b8279f');
INSERT INTO "log" VALUES('3401ce388ca0056bdb2672cf40fed509',9,'2026-11-27T19:28:13+00:00','{"data_set":"3401ce388ca0056bdb2672cf40fed509","digest":"09778cde4029efcc338530e0acb77267fa7e0382518a667794a3f482fd867b6e","event":"answered","key":"79d63556fcea68691930ccb82765e6bc3d3b8b947581dabc6c1caa17ab01857f"}','4decca0ef101275494823f41afd983995fd2009ab8a0dcfb70b1e89dcb116175');
CREATE TRIGGER log_no_update BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_no_delete BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
COMMIT;