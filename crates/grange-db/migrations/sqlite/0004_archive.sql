-- The complete copies of the archive. kind: bitarchive (bytes) or checksum (names and checksums only).
CREATE TABLE replicas (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL UNIQUE,
    kind         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    -- When the last whole check of either kind ended.
    listed_at    INTEGER,
    checked_at   INTEGER,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;

-- Every file ever taken. checksum is the strongest one, as algorithm=hex, and decides; checksums is JSON of all.
-- source is where the bytes come from until every replica is proven.
CREATE TABLE files (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL UNIQUE,
    size         INTEGER NOT NULL,
    checksum     TEXT    NOT NULL,
    checksums    TEXT    NOT NULL,
    source       TEXT,
    created_at   INTEGER NOT NULL,
    -- When all replicas were proven for the first time.
    stored_at    INTEGER,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;

-- What is known of each file on each replica. Every file has a row for every replica.
-- state:    unknown, upload_started, data_uploaded, upload_completed, upload_failed
-- presence: unknown, ok, missing       as the last list said
-- verdict:  unknown, ok, corrupt       as the last vote said
-- checksum is the replica's own answer, whatever it was.
CREATE TABLE replica_files (
    file_id      INTEGER NOT NULL REFERENCES files (id),
    replica_id   INTEGER NOT NULL REFERENCES replicas (id),
    size         INTEGER NOT NULL,
    state        TEXT    NOT NULL DEFAULT 'unknown',
    presence     TEXT    NOT NULL DEFAULT 'unknown',
    verdict      TEXT    NOT NULL DEFAULT 'unknown',
    checksum     TEXT,
    attempts     INTEGER NOT NULL DEFAULT 0,
    last_error   TEXT,
    listed_at    INTEGER,
    checked_at   INTEGER,
    changed_at   INTEGER NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (file_id, replica_id)
) STRICT, WITHOUT ROWID;
-- What is wrong is rare: these stay small however large the archive grows.
CREATE INDEX replica_files_missing ON replica_files (replica_id, file_id) WHERE presence = 'missing';
CREATE INDEX replica_files_corrupt ON replica_files (replica_id, file_id) WHERE verdict = 'corrupt';
CREATE INDEX replica_files_unproven ON replica_files (replica_id, file_id) WHERE state <> 'upload_completed';

-- How many copies stand where, kept by the triggers below, so that the overview counts nothing. slot spreads
-- concurrent writers on PostgreSQL; here it is always 0.
CREATE TABLE replica_totals (
    replica_id   INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    presence     TEXT    NOT NULL,
    verdict      TEXT    NOT NULL,
    slot         INTEGER NOT NULL,
    files        INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    PRIMARY KEY (replica_id, state, presence, verdict, slot)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER replica_files_added AFTER INSERT ON replica_files BEGIN
    INSERT INTO replica_totals VALUES (NEW.replica_id, NEW.state, NEW.presence, NEW.verdict, 0, 1, NEW.size)
    ON CONFLICT DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER replica_files_changed AFTER UPDATE OF state, presence, verdict ON replica_files
WHEN NEW.state <> OLD.state OR NEW.presence <> OLD.presence OR NEW.verdict <> OLD.verdict BEGIN
    INSERT INTO replica_totals VALUES (OLD.replica_id, OLD.state, OLD.presence, OLD.verdict, 0, -1, -OLD.size)
    ON CONFLICT DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes;
    INSERT INTO replica_totals VALUES (NEW.replica_id, NEW.state, NEW.presence, NEW.verdict, 0, 1, NEW.size)
    ON CONFLICT DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes;
END;

-- Checks of a replica. kind: list, checksum or challenge; state: running, done, failed, cancelled.
-- position is the last name that was dealt with: a check that was cut short goes on behind it.
CREATE TABLE audits (
    id           TEXT    NOT NULL PRIMARY KEY,
    replica_id   INTEGER NOT NULL REFERENCES replicas (id),
    kind         TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    position     TEXT,
    files        INTEGER NOT NULL DEFAULT 0,
    bytes        INTEGER NOT NULL DEFAULT 0,
    ok           INTEGER NOT NULL DEFAULT 0,
    missing      INTEGER NOT NULL DEFAULT 0,
    corrupt      INTEGER NOT NULL DEFAULT 0,
    undecided    INTEGER NOT NULL DEFAULT 0,
    extra        INTEGER NOT NULL DEFAULT 0,
    asked_by     TEXT    NOT NULL,
    started_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    last_error   TEXT,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;
-- One of each kind per replica at a time.
CREATE UNIQUE INDEX audits_running ON audits (replica_id, kind) WHERE state = 'running';
CREATE INDEX audits_by_start ON audits (started_at);

-- Repairs that were asked for. kind: missing or corrupt; state: waiting (for a second pair of eyes), confirmed,
-- done, failed.
CREATE TABLE repairs (
    id           TEXT    NOT NULL PRIMARY KEY,
    file_id      INTEGER NOT NULL REFERENCES files (id),
    replica_id   INTEGER NOT NULL REFERENCES replicas (id),
    kind         TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    bad_checksum TEXT,
    asked_by     TEXT    NOT NULL,
    asked_at     INTEGER NOT NULL,
    confirmed_by TEXT,
    confirmed_at INTEGER,
    ended_at     INTEGER,
    last_error   TEXT,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE UNIQUE INDEX repairs_open ON repairs (file_id, replica_id) WHERE state IN ('waiting', 'confirmed');
CREATE INDEX repairs_by_time ON repairs (asked_at);

-- The append-only log: body is what the leaf of the Merkle tree is made from, byte for byte. Never changed.
CREATE TABLE log_leaves (
    number       INTEGER NOT NULL PRIMARY KEY,
    name         TEXT,
    body         TEXT    NOT NULL
) STRICT;
CREATE INDEX log_leaves_of_file ON log_leaves (name, number) WHERE name IS NOT NULL;
-- One row: how many leaves there are. Whoever appends holds it.
CREATE TABLE log_head (
    id           INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    size         INTEGER NOT NULL
) STRICT;
INSERT INTO log_head (id, size) VALUES (1, 0);
-- Signed roots of the tree at a size.
CREATE TABLE log_checkpoints (
    size         INTEGER NOT NULL PRIMARY KEY,
    at           INTEGER NOT NULL,
    root         TEXT    NOT NULL,
    public_key   TEXT    NOT NULL,
    signature    TEXT    NOT NULL
) STRICT;
