-- Which collection of its name it is: one that was removed and made again is another.
ALTER TABLE collections ADD COLUMN identity TEXT NOT NULL DEFAULT 'first';

-- The node that keeps the index of a collection: only it indexes files, takes them out and publishes copies. until_at ends
-- its lease; token rises whenever another node takes over. owner is empty while nobody has kept the index yet.
CREATE TABLE index_owners (
    collection TEXT    NOT NULL PRIMARY KEY REFERENCES collections (name),
    owner      TEXT    NOT NULL,
    token      INTEGER NOT NULL DEFAULT 0,
    until_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Claims in a row that ended without an outcome: the file may end the processes that read it.
ALTER TABLE collection_files ADD COLUMN abandoned INTEGER NOT NULL DEFAULT 0;

-- Failed files with a due_at are tried again.
DROP INDEX collection_files_due;
CREATE INDEX collection_files_due ON collection_files (id)
WHERE state IN ('waiting', 'leaving') OR (state = 'failed' AND due_at > 0);
