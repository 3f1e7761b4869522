
CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT, parent_session_id TEXT, started_at REAL, end_reason TEXT, model_config TEXT);
CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);
INSERT INTO sessions VALUES ('p','cli',NULL,1774947600,'compression',NULL),('c','cli','p',1774948000,NULL,NULL),('b','cli',NULL,1774949000,NULL,'{"_branched_from":"p"}'),('r','cli','c',1774950000,NULL,NULL);
INSERT INTO messages VALUES (1,'p','user','造一座灯塔',1774947600),(2,'p','assistant','要多高？',1774947601),(3,'p','assistant','Summary: a lighthouse.',1774947700);
INSERT INTO messages VALUES (4,'c','assistant','Summary: a lighthouse.',1774948000),(5,'c','user','三十米',1774948001),(6,'c','assistant','要多高？',1774948002);
INSERT INTO messages VALUES (7,'b','user','造一座灯塔',1774949000),(8,'b','assistant','要多高？',1774949000),(9,'b','user','forty metres',1774949001);
INSERT INTO messages VALUES (10,'r','user','三十米',1774950001);
