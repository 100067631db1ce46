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

CREATE TABLE grange_migrations (
    number     BIGINT NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    checksum   TEXT   NOT NULL,
    applied_at BIGINT NOT NULL
);

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
