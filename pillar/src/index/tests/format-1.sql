-- An index of format 1: three files, one of them missing, and a remembered response.
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE audit (
        collection     INTEGER NOT NULL REFERENCES collections (key),
        number         INTEGER NOT NULL,
        time           INTEGER NOT NULL,
        file_id        TEXT NOT NULL,
        actor          TEXT NOT NULL,
        action         TEXT NOT NULL,
        info           TEXT,
        operation_id   TEXT,
        certificate_id TEXT,
        information    TEXT,
        PRIMARY KEY (collection, number)
    ) WITHOUT ROWID;
INSERT INTO "audit" VALUES(1,1,1000,'a/x1','ingest-1','PUT_FILE','stored','c-1',NULL,'');
INSERT INTO "audit" VALUES(1,2,1000,'x2','ingest-1','PUT_FILE','stored','c-1',NULL,'');
INSERT INTO "audit" VALUES(2,1,1000,'x1','ingest-1','PUT_FILE','stored','c-1',NULL,'');
CREATE TABLE collections (
        key             INTEGER PRIMARY KEY,
        id              TEXT NOT NULL UNIQUE,
        last_modified   INTEGER NOT NULL,
        last_calculated INTEGER NOT NULL,
        last_audit      INTEGER NOT NULL
    );
INSERT INTO "collections" VALUES(1,'books',1001,1001,2);
INSERT INTO "collections" VALUES(2,'dvds',1000,1000,1);
CREATE TABLE facts (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) WITHOUT ROWID;
INSERT INTO "facts" VALUES('checksum type','MD5');
CREATE TABLE files (
        key        INTEGER PRIMARY KEY,
        collection INTEGER NOT NULL REFERENCES collections (key),
        file_id    TEXT NOT NULL,
        directory  TEXT NOT NULL,
        size       INTEGER NOT NULL,
        expected   BLOB NOT NULL,
        observed   BLOB NOT NULL,
        modified   INTEGER NOT NULL,
        calculated INTEGER NOT NULL,
        missing    INTEGER NOT NULL,
        UNIQUE (collection, file_id)
    );
INSERT INTO "files" VALUES(1,1,'a/x1','/archive/1',14,X'4A37',X'4A37',1000,1000,0);
INSERT INTO "files" VALUES(2,1,'x2','/archive/1',14,X'4A37',X'4A37',1001,1001,1);
INSERT INTO "files" VALUES(3,2,'x1','/archive/1',14,X'4A37',X'4A37',1000,1000,0);
CREATE TABLE operations_done (
        key         INTEGER PRIMARY KEY,
        correlation TEXT NOT NULL,
        sender      TEXT NOT NULL,
        operation   TEXT NOT NULL,
        collection  INTEGER NOT NULL REFERENCES collections (key),
        file_id     TEXT NOT NULL,
        done        INTEGER NOT NULL,
        response    TEXT NOT NULL,
        UNIQUE (correlation, sender, operation, collection, file_id)
    );
INSERT INTO "operations_done" VALUES(1,'c-1','ingest-1','PutFile',1,'a/x1',1000,'<done at=''1000''/>');
CREATE INDEX files_by_modified ON files (collection, modified, file_id) WHERE missing = 0;
CREATE INDEX files_by_calculated ON files (collection, calculated, file_id) WHERE missing = 0;
COMMIT;
PRAGMA user_version = 1;
