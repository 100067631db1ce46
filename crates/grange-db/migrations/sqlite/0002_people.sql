-- Who may come in. Users are disabled, never deleted: the audit log names them for ever.
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

-- Keys of programs, as SHA-256 in hex.
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

-- Browsers that logged in; hash is that of the cookie, csrf_hash that of the key in forms. Deleted when over.
CREATE TABLE sessions (
    id           TEXT    NOT NULL PRIMARY KEY,
    user_id      TEXT    NOT NULL REFERENCES users (id),
    hash         TEXT    NOT NULL UNIQUE,
    csrf_hash    TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_by_end ON sessions (expires_at);

-- Written in the transaction of the change it tells of; never changed. state_* are JSON without secrets.
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
CREATE INDEX audit_log_of_subject ON audit_log (subject, number);
CREATE INDEX audit_log_by_who ON audit_log (who, number);
