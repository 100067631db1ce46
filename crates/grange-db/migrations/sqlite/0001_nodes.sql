-- The running programs that make up one archive. roles is a JSON list, addresses a JSON map of purpose to URL.
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
