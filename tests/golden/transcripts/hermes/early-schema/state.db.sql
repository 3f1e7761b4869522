
CREATE TABLE schema_version(version INTEGER);
INSERT INTO schema_version VALUES (3);
CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT, user_id TEXT, model TEXT, parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT);
CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL);
INSERT INTO sessions VALUES ('s-b','cli','u','m',NULL,1774951200.5,NULL,NULL);
INSERT INTO sessions VALUES ('s-a','cli','u','m',NULL,1774947600.0,1774947700.0,'exit');
INSERT INTO messages VALUES (1,'s-a','user','今天谁值班？',NULL,NULL,NULL,1774947600.25);
INSERT INTO messages VALUES (2,'s-b','user','[draft] not JSON',NULL,NULL,NULL,1774951200.5);
INSERT INTO messages VALUES (3,'s-a','assistant','Lin is.',NULL,NULL,NULL,1774947602.0);
INSERT INTO messages VALUES (4,'s-b','assistant','ok',NULL,NULL,NULL,1774951201);
