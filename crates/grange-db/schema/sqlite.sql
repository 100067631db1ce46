-- Drawn from the migrations; do not edit.

CREATE TABLE audit_log (
    number       INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at           INTEGER NOT NULL,
    who          TEXT    NOT NULL,
    via          TEXT    NOT NULL,
    act          TEXT    NOT NULL,
    subject      TEXT    NOT NULL,
    state_before TEXT,
    state_after  TEXT
) STRICT;

CREATE INDEX audit_log_by_who ON audit_log (who, number);

CREATE INDEX audit_log_of_subject ON audit_log (subject, number);

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

CREATE INDEX audits_by_start ON audits (started_at);

CREATE UNIQUE INDEX audits_running ON audits (replica_id, kind) WHERE state = 'running';

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

CREATE TABLE grange_migrations (
    number     BIGINT NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    checksum   TEXT   NOT NULL,
    applied_at BIGINT NOT NULL
);

CREATE TABLE log_checkpoints (
    size         INTEGER NOT NULL PRIMARY KEY,
    at           INTEGER NOT NULL,
    root         TEXT    NOT NULL,
    public_key   TEXT    NOT NULL,
    signature    TEXT    NOT NULL
) STRICT;

CREATE TABLE log_head (
    id           INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    size         INTEGER NOT NULL
) STRICT;

CREATE TABLE log_leaves (
    number       INTEGER NOT NULL PRIMARY KEY,
    name         TEXT,
    body         TEXT    NOT NULL
) STRICT;

CREATE INDEX log_leaves_of_file ON log_leaves (name, number) WHERE name IS NOT NULL;

CREATE TABLE nodes (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    host       TEXT    NOT NULL,
    roles      TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    addresses  TEXT    NOT NULL,
    free_bytes INTEGER,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    stopped_at INTEGER,
    edition    INTEGER NOT NULL DEFAULT 1
) STRICT;

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

CREATE INDEX repairs_by_time ON repairs (asked_at);

CREATE UNIQUE INDEX repairs_open ON repairs (file_id, replica_id) WHERE state IN ('waiting', 'confirmed');

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

CREATE INDEX replica_files_corrupt ON replica_files (replica_id, file_id) WHERE verdict = 'corrupt';

CREATE INDEX replica_files_missing ON replica_files (replica_id, file_id) WHERE presence = 'missing';

CREATE INDEX replica_files_unproven ON replica_files (replica_id, file_id) WHERE state <> 'upload_completed';

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

CREATE TABLE sessions (
    id           TEXT    NOT NULL PRIMARY KEY,
    user_id      TEXT    NOT NULL REFERENCES users (id),
    hash         TEXT    NOT NULL UNIQUE,
    csrf_hash    TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE INDEX sessions_of_user ON sessions (user_id);

CREATE TABLE tokens (
    id           TEXT    NOT NULL PRIMARY KEY,
    user_id      TEXT    NOT NULL REFERENCES users (id),
    name         TEXT    NOT NULL,
    hash         TEXT    NOT NULL UNIQUE,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE INDEX tokens_of_user ON tokens (user_id);

CREATE TABLE users (
    id            TEXT    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    role          TEXT    NOT NULL,
    password_hash TEXT,
    disabled_at   INTEGER,
    created_at    INTEGER NOT NULL,
    changed_at    INTEGER NOT NULL,
    changed_by    TEXT    NOT NULL,
    edition       INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE work (
    id           TEXT    NOT NULL PRIMARY KEY,
    kind         TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    payload      TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    lease_owner  TEXT,
    lease_token  INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    attempts_max INTEGER NOT NULL,
    last_error   TEXT,
    outcome      TEXT,
    ended_at     INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1,
    -- In this order, so that no planner takes it for the order of claiming.
    UNIQUE (key, kind)
) STRICT;

CREATE INDEX work_ended ON work (kind, outcome, ended_at) WHERE outcome IS NOT NULL;

CREATE INDEX work_to_claim ON work (kind, priority DESC, id) WHERE outcome IS NULL;
