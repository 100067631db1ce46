-- The complete copies of the archive. kind: bitarchive (bytes) or checksum (names and checksums only).
CREATE TABLE replicas (
    id           BIGINT           NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         TEXT COLLATE "C" NOT NULL UNIQUE,
    kind         TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT           NOT NULL,
    -- When the last whole check of either kind ended.
    listed_at    BIGINT,
    checked_at   BIGINT,
    edition      BIGINT           NOT NULL DEFAULT 1
);

-- Every file ever taken. checksum is the strongest one, as algorithm=hex, and decides; checksums is JSON of all.
-- source is where the bytes come from until every replica is proven.
CREATE TABLE files (
    id           BIGINT           NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         TEXT COLLATE "C" NOT NULL UNIQUE,
    size         BIGINT           NOT NULL,
    checksum     TEXT COLLATE "C" NOT NULL,
    checksums    TEXT COLLATE "C" NOT NULL,
    source       TEXT COLLATE "C",
    created_at   BIGINT           NOT NULL,
    -- When all replicas were proven for the first time.
    stored_at    BIGINT,
    edition      BIGINT           NOT NULL DEFAULT 1
);

-- What is known of each file on each replica. Every file has a row for every replica.
-- state:    unknown, upload_started, data_uploaded, upload_completed, upload_failed
-- presence: unknown, ok, missing       as the last list said
-- verdict:  unknown, ok, corrupt       as the last vote said
-- checksum is the replica's own answer, whatever it was.
CREATE TABLE replica_files (
    file_id      BIGINT           NOT NULL REFERENCES files (id),
    replica_id   BIGINT           NOT NULL REFERENCES replicas (id),
    size         BIGINT           NOT NULL,
    state        TEXT COLLATE "C" NOT NULL DEFAULT 'unknown',
    presence     TEXT COLLATE "C" NOT NULL DEFAULT 'unknown',
    verdict      TEXT COLLATE "C" NOT NULL DEFAULT 'unknown',
    checksum     TEXT COLLATE "C",
    attempts     BIGINT           NOT NULL DEFAULT 0,
    last_error   TEXT COLLATE "C",
    listed_at    BIGINT,
    checked_at   BIGINT,
    changed_at   BIGINT           NOT NULL,
    edition      BIGINT           NOT NULL DEFAULT 1,
    PRIMARY KEY (file_id, replica_id)
);
-- What is wrong is rare: these stay small however large the archive grows.
CREATE INDEX replica_files_missing ON replica_files (replica_id, file_id) WHERE presence = 'missing';
CREATE INDEX replica_files_corrupt ON replica_files (replica_id, file_id) WHERE verdict = 'corrupt';
CREATE INDEX replica_files_unproven ON replica_files (replica_id, file_id) WHERE state <> 'upload_completed';

-- How many copies stand where, kept by the triggers below, so that the overview counts nothing. slot spreads
-- concurrent writers, who would wait for each other on one row.
CREATE TABLE replica_totals (
    replica_id   BIGINT           NOT NULL,
    state        TEXT COLLATE "C" NOT NULL,
    presence     TEXT COLLATE "C" NOT NULL,
    verdict      TEXT COLLATE "C" NOT NULL,
    slot         BIGINT           NOT NULL,
    files        BIGINT           NOT NULL,
    bytes        BIGINT           NOT NULL,
    PRIMARY KEY (replica_id, state, presence, verdict, slot)
);
CREATE FUNCTION replica_files_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO replica_totals
    SELECT replica_id, state, presence, verdict, pg_backend_pid() % 16, count(*), sum(size)
    FROM added GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (replica_id, state, presence, verdict, slot) DO UPDATE
    SET files = replica_totals.files + excluded.files, bytes = replica_totals.bytes + excluded.bytes;
    RETURN NULL;
END $$;
CREATE TRIGGER replica_files_added AFTER INSERT ON replica_files REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION replica_files_added();
CREATE FUNCTION replica_files_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO replica_totals
    SELECT replica_id, state, presence, verdict, pg_backend_pid() % 16, sum(files), sum(bytes) FROM (
        SELECT replica_id, state, presence, verdict, count(*) AS files, sum(size) AS bytes
        FROM after_it GROUP BY 1, 2, 3, 4
        UNION ALL
        SELECT replica_id, state, presence, verdict, -count(*), -sum(size)
        FROM before_it GROUP BY 1, 2, 3, 4
    ) AS changes GROUP BY 1, 2, 3, 4 HAVING sum(files) <> 0 ORDER BY 1, 2, 3, 4
    ON CONFLICT (replica_id, state, presence, verdict, slot) DO UPDATE
    SET files = replica_totals.files + excluded.files, bytes = replica_totals.bytes + excluded.bytes;
    RETURN NULL;
END $$;
CREATE TRIGGER replica_files_changed AFTER UPDATE ON replica_files
REFERENCING OLD TABLE AS before_it NEW TABLE AS after_it
FOR EACH STATEMENT EXECUTE FUNCTION replica_files_changed();

-- Checks of a replica. kind: list, checksum or challenge; state: running, done, failed, cancelled.
-- position is the last name that was dealt with: a check that was cut short goes on behind it.
CREATE TABLE audits (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    replica_id   BIGINT           NOT NULL REFERENCES replicas (id),
    kind         TEXT COLLATE "C" NOT NULL,
    state        TEXT COLLATE "C" NOT NULL,
    position     TEXT COLLATE "C",
    files        BIGINT           NOT NULL DEFAULT 0,
    bytes        BIGINT           NOT NULL DEFAULT 0,
    ok           BIGINT           NOT NULL DEFAULT 0,
    missing      BIGINT           NOT NULL DEFAULT 0,
    corrupt      BIGINT           NOT NULL DEFAULT 0,
    undecided    BIGINT           NOT NULL DEFAULT 0,
    extra        BIGINT           NOT NULL DEFAULT 0,
    asked_by     TEXT COLLATE "C" NOT NULL,
    started_at   BIGINT           NOT NULL,
    updated_at   BIGINT           NOT NULL,
    ended_at     BIGINT,
    last_error   TEXT COLLATE "C",
    edition      BIGINT           NOT NULL DEFAULT 1
);
-- One of each kind per replica at a time.
CREATE UNIQUE INDEX audits_running ON audits (replica_id, kind) WHERE state = 'running';
CREATE INDEX audits_by_start ON audits (started_at);

-- Repairs that were asked for. kind: missing or corrupt; state: waiting (for a second pair of eyes), confirmed,
-- done, failed.
CREATE TABLE repairs (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    file_id      BIGINT           NOT NULL REFERENCES files (id),
    replica_id   BIGINT           NOT NULL REFERENCES replicas (id),
    kind         TEXT COLLATE "C" NOT NULL,
    state        TEXT COLLATE "C" NOT NULL,
    bad_checksum TEXT COLLATE "C",
    asked_by     TEXT COLLATE "C" NOT NULL,
    asked_at     BIGINT           NOT NULL,
    confirmed_by TEXT COLLATE "C",
    confirmed_at BIGINT,
    ended_at     BIGINT,
    last_error   TEXT COLLATE "C",
    edition      BIGINT           NOT NULL DEFAULT 1
);
CREATE UNIQUE INDEX repairs_open ON repairs (file_id, replica_id) WHERE state IN ('waiting', 'confirmed');
CREATE INDEX repairs_by_time ON repairs (asked_at);

-- The append-only log: body is what the leaf of the Merkle tree is made from, byte for byte. Never changed.
CREATE TABLE log_leaves (
    number       BIGINT           NOT NULL PRIMARY KEY,
    name         TEXT COLLATE "C",
    body         TEXT COLLATE "C" NOT NULL
);
CREATE INDEX log_leaves_of_file ON log_leaves (name, number) WHERE name IS NOT NULL;
-- One row: how many leaves there are. Whoever appends holds it.
CREATE TABLE log_head (
    id           BIGINT           NOT NULL PRIMARY KEY CHECK (id = 1),
    size         BIGINT           NOT NULL
);
INSERT INTO log_head (id, size) VALUES (1, 0);
-- Signed roots of the tree at a size.
CREATE TABLE log_checkpoints (
    size         BIGINT           NOT NULL PRIMARY KEY,
    at           BIGINT           NOT NULL,
    root         TEXT COLLATE "C" NOT NULL,
    public_key   TEXT COLLATE "C" NOT NULL,
    signature    TEXT COLLATE "C" NOT NULL
);
