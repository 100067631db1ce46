-- States that need a person, each once. The rows of files, nodes, jobs and so on are the truth; this table says since
-- when a state is known and whether it was announced (a log line, an event, a count).
-- grouped_by is what too many are counted by, such as a replica. due_at: when it is announced at the earliest. lease_*:
-- who is announcing it.
CREATE TABLE findings (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         TEXT COLLATE "C" NOT NULL,
    grouped_by   TEXT COLLATE "C" NOT NULL,
    subject      TEXT COLLATE "C" NOT NULL,
    detail       TEXT COLLATE "C" NOT NULL,
    file_id      BIGINT,
    replica_id   BIGINT,
    opened_at    BIGINT NOT NULL,
    due_at       BIGINT NOT NULL,
    announced_at BIGINT,
    closed_at    BIGINT,
    lease_owner  TEXT COLLATE "C",
    lease_until  BIGINT
);
CREATE UNIQUE INDEX findings_open ON findings (kind, subject) WHERE closed_at IS NULL;
CREATE INDEX findings_unannounced ON findings (id) WHERE announced_at IS NULL;
CREATE INDEX findings_closed ON findings (closed_at) WHERE closed_at IS NOT NULL;

-- What is wrong is rare: these stay small.
CREATE INDEX collection_files_failed ON collection_files (id) WHERE state = 'failed';
CREATE INDEX oai_history_failed ON oai_history (id) WHERE outcome = 'failed';

-- The public halves of the keys that sign the log. proof: that the announcing node knows the node token.
CREATE TABLE log_keys (
    public_key   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node         TEXT COLLATE "C" NOT NULL,
    since        BIGINT NOT NULL,
    retired_at   BIGINT,
    proof        TEXT COLLATE "C",
    edition      BIGINT NOT NULL DEFAULT 1
);
-- One key's signature over another: a key that is known vouches for a new one. Never changed.
CREATE TABLE log_key_vouches (
    public_key   TEXT COLLATE "C" NOT NULL,
    by_key       TEXT COLLATE "C" NOT NULL,
    at           BIGINT NOT NULL,
    signature    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (public_key, by_key)
);
