-- The running programs that make up one archive. roles is a JSON list, addresses a JSON map of purpose to URL.
CREATE TABLE nodes (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL,
    host       TEXT COLLATE "C" NOT NULL,
    roles      TEXT             NOT NULL,
    version    TEXT             NOT NULL,
    addresses  TEXT             NOT NULL,
    free_bytes BIGINT,
    started_at BIGINT           NOT NULL,
    seen_at    BIGINT           NOT NULL,
    stopped_at BIGINT,
    edition    BIGINT           NOT NULL DEFAULT 1
);
