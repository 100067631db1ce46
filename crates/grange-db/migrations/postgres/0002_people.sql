-- Who may come in. Users are disabled, never deleted: the audit log names them for ever.
CREATE TABLE users (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name          TEXT COLLATE "C" NOT NULL UNIQUE,
    role          TEXT COLLATE "C" NOT NULL,
    password_hash TEXT,
    disabled_at   BIGINT,
    created_at    BIGINT           NOT NULL,
    changed_at    BIGINT           NOT NULL,
    changed_by    TEXT             NOT NULL,
    edition       BIGINT           NOT NULL DEFAULT 1
);

-- Keys of programs, as SHA-256 in hex.
CREATE TABLE tokens (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id      TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    name         TEXT             NOT NULL,
    hash         TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at   BIGINT           NOT NULL,
    expires_at   BIGINT,
    last_used_at BIGINT,
    revoked_at   BIGINT,
    edition      BIGINT           NOT NULL DEFAULT 1
);
CREATE INDEX tokens_of_user ON tokens (user_id);

-- Browsers that logged in; hash is that of the cookie, csrf_hash that of the key in forms. Deleted when over.
CREATE TABLE sessions (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id      TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    hash         TEXT COLLATE "C" NOT NULL UNIQUE,
    csrf_hash    TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT           NOT NULL,
    expires_at   BIGINT           NOT NULL,
    last_seen_at BIGINT           NOT NULL
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_by_end ON sessions (expires_at);

-- Written in the transaction of the change it tells of; never changed. state_* are JSON without secrets.
CREATE TABLE audit_log (
    number       BIGINT           NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           BIGINT           NOT NULL,
    who          TEXT COLLATE "C" NOT NULL,
    via          TEXT COLLATE "C" NOT NULL,
    act          TEXT COLLATE "C" NOT NULL,
    subject      TEXT COLLATE "C" NOT NULL,
    state_before TEXT,
    state_after  TEXT
);
CREATE INDEX audit_log_of_subject ON audit_log (subject, number);
CREATE INDEX audit_log_by_who ON audit_log (who, number);
