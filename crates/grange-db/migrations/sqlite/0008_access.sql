-- Collections: sets of files with an index of their own. removed_at: its index is to be taken away, then the row.
CREATE TABLE collections (
    name         TEXT    NOT NULL PRIMARY KEY,
    description  TEXT    NOT NULL DEFAULT '',
    created_at   INTEGER NOT NULL,
    removed_at   INTEGER,
    changed_at   INTEGER NOT NULL,
    changed_by   TEXT    NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;
INSERT INTO collections (name, description, created_at, changed_at, changed_by)
VALUES ('archive', 'Everything stored here', 0, 0, 'grange');

-- The files of collections and how they stand in the index.
-- state: waiting (to be indexed), indexed, failed, leaving (to be taken out), out
-- name is what the index calls it; path is where a file registered in place lies, and absent for files of the archive.
-- due_at: the earliest time for the next attempt, and the end of the lease while somebody has it.
CREATE TABLE collection_files (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    collection   TEXT    NOT NULL REFERENCES collections (name),
    name         TEXT    NOT NULL,
    path         TEXT,
    size         INTEGER NOT NULL,
    job          TEXT,
    state        TEXT    NOT NULL DEFAULT 'waiting',
    due_at       INTEGER NOT NULL DEFAULT 0,
    lease_owner  TEXT,
    lease_token  INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    captures     INTEGER NOT NULL DEFAULT 0,
    problems     INTEGER NOT NULL DEFAULT 0,
    -- JSON: the first few problems, or why it failed.
    told         TEXT    NOT NULL DEFAULT '[]',
    changed_at   INTEGER NOT NULL DEFAULT 0,
    edition      INTEGER NOT NULL DEFAULT 1,
    UNIQUE (collection, name)
) STRICT;
CREATE UNIQUE INDEX collection_files_by_path ON collection_files (collection, path) WHERE path IS NOT NULL;
CREATE INDEX collection_files_due ON collection_files (id) WHERE state IN ('waiting', 'leaving');
CREATE INDEX collection_files_of_job ON collection_files (collection, job) WHERE job IS NOT NULL;

-- A file is to be indexed from the moment that every replica is proven.
INSERT INTO collection_files (collection, name, size, changed_at)
SELECT 'archive', name, size, stored_at FROM files WHERE stored_at IS NOT NULL ORDER BY id;
CREATE TRIGGER files_entered AFTER INSERT ON files WHEN NEW.stored_at IS NOT NULL BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    VALUES ('archive', NEW.name, NEW.size, NEW.stored_at) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER files_stored AFTER UPDATE OF stored_at ON files
WHEN NEW.stored_at IS NOT NULL AND OLD.stored_at IS NULL BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    VALUES ('archive', NEW.name, NEW.size, NEW.stored_at) ON CONFLICT DO NOTHING;
END;

-- Who may see which captures. rule is JSON and decided on elsewhere.
CREATE TABLE access_rules (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    rule         TEXT    NOT NULL,
    note         TEXT    NOT NULL DEFAULT '',
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;
