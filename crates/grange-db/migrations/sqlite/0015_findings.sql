-- States that need a person, each once. The rows of files, nodes, jobs and so on are the truth; this table says since
-- when a state is known and whether it was announced (a log line, an event, a count).
-- grouped_by is what too many are counted by, such as a replica. due_at: when it is announced at the earliest. lease_*:
-- who is announcing it.
CREATE TABLE findings (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind         TEXT    NOT NULL,
    grouped_by   TEXT    NOT NULL,
    subject      TEXT    NOT NULL,
    detail       TEXT    NOT NULL,
    file_id      INTEGER,
    replica_id   INTEGER,
    opened_at    INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    announced_at INTEGER,
    closed_at    INTEGER,
    lease_owner  TEXT,
    lease_until  INTEGER
) STRICT;
CREATE UNIQUE INDEX findings_open ON findings (kind, subject) WHERE closed_at IS NULL;
CREATE INDEX findings_unannounced ON findings (id) WHERE announced_at IS NULL;
CREATE INDEX findings_closed ON findings (closed_at) WHERE closed_at IS NOT NULL;

-- What is wrong is rare: these stay small.
CREATE INDEX collection_files_failed ON collection_files (id) WHERE state = 'failed';
CREATE INDEX oai_history_failed ON oai_history (id) WHERE outcome = 'failed';

-- The public halves of the keys that sign the log. proof: that the announcing node knows the node token.
CREATE TABLE log_keys (
    public_key   TEXT    NOT NULL PRIMARY KEY,
    node         TEXT    NOT NULL,
    since        INTEGER NOT NULL,
    retired_at   INTEGER,
    proof        TEXT,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;
-- One key's signature over another: a key that is known vouches for a new one. Never changed.
CREATE TABLE log_key_vouches (
    public_key   TEXT    NOT NULL,
    by_key       TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    signature    TEXT    NOT NULL,
    PRIMARY KEY (public_key, by_key)
) STRICT;
