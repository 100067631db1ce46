-- Metadata harvesting over OAI-PMH: whom we ask, what we hold of theirs, which jobs there are, what became of them.
-- A set_spec of '' means all sets. Datestamps are the repository's, in microseconds like all times.

-- said is what Identify told beyond the columns, rules how the repository is treated; both JSON.
-- lists counts the lists ever begun: a record knows the last one it was seen in.
CREATE TABLE oai_repositories (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    base_url   TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    said       TEXT NOT NULL,
    rules      TEXT NOT NULL,
    lists      INTEGER NOT NULL DEFAULT 0,
    added_at   INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    edition    INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE oai_sets (
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    spec          TEXT NOT NULL,
    name          TEXT NOT NULL,
    PRIMARY KEY (repository_id, spec)
) STRICT, WITHOUT ROWID;

-- Formats are shared between repositories; the same prefix with another namespace is another format.
CREATE TABLE oai_formats (
    id        INTEGER PRIMARY KEY,
    prefix    TEXT NOT NULL,
    namespace TEXT NOT NULL,
    schema    TEXT NOT NULL,
    UNIQUE (prefix, namespace, schema)
) STRICT;
CREATE TABLE oai_repository_formats (
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    format_id     INTEGER NOT NULL REFERENCES oai_formats (id),
    PRIMARY KEY (repository_id, format_id)
) STRICT, WITHOUT ROWID;

-- updated is 1 until a consumer clears it; changed_at is the datestamp that Grange itself serves.
CREATE TABLE oai_records (
    id            INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    prefix        TEXT NOT NULL,
    identifier    TEXT NOT NULL,
    filename      TEXT NOT NULL,
    datestamp     INTEGER NOT NULL,
    deleted       INTEGER NOT NULL,
    digest        TEXT NOT NULL,
    changed_at    INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    list          INTEGER NOT NULL,
    UNIQUE (repository_id, prefix, identifier)
) STRICT;
CREATE INDEX oai_records_changed ON oai_records (prefix, changed_at, id);
CREATE TABLE oai_record_sets (
    record_id INTEGER NOT NULL,
    spec      TEXT NOT NULL,
    PRIMARY KEY (record_id, spec)
) STRICT, WITHOUT ROWID;

-- How many files were ever placed in a folder: what decides on the starting_at_… folders.
CREATE TABLE oai_folders (
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    path          TEXT NOT NULL,
    files         INTEGER NOT NULL,
    PRIMARY KEY (repository_id, path)
) STRICT, WITHOUT ROWID;

-- How far the harvest of a format and set is: next_from after the last whole one, position within one that is not over.
CREATE TABLE oai_progress (
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    prefix        TEXT NOT NULL,
    set_spec      TEXT NOT NULL,
    next_from     INTEGER,
    position      TEXT,
    PRIMARY KEY (repository_id, prefix, set_spec)
) STRICT, WITHOUT ROWID;

-- spec is what to ask for, as JSON.
CREATE TABLE oai_recurring_jobs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    spec          TEXT NOT NULL,
    starts_at     INTEGER NOT NULL,
    ends_at       INTEGER,
    every         TEXT,
    state         TEXT NOT NULL,
    failures      INTEGER NOT NULL DEFAULT 0,
    added_at      INTEGER NOT NULL,
    changed_at    INTEGER NOT NULL,
    changed_by    TEXT NOT NULL,
    edition       INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX oai_recurring_jobs_new ON oai_recurring_jobs (id) WHERE state = 'new';

-- status is scheduled, in-progress or stopping; a job that is over is a line of history. lease_token grows with every
-- claim and fences late harvesters off.
CREATE TABLE oai_jobs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    recurring_id  INTEGER,
    prefix        TEXT NOT NULL,
    set_spec      TEXT NOT NULL,
    spec          TEXT NOT NULL,
    status        TEXT NOT NULL,
    due_at        INTEGER NOT NULL,
    started_at    INTEGER,
    owner         TEXT,
    lease_token   INTEGER NOT NULL DEFAULT 0,
    lease_until   INTEGER,
    attempts      INTEGER NOT NULL DEFAULT 0,
    stop_reason   TEXT,
    pages         INTEGER NOT NULL DEFAULT 0,
    expected      INTEGER,
    counts        TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX oai_jobs_due ON oai_jobs (due_at, id) WHERE status = 'scheduled';
-- One job at a time asks a repository.
CREATE UNIQUE INDEX oai_jobs_one ON oai_jobs (repository_id) WHERE status <> 'scheduled';

CREATE TABLE oai_history (
    id            INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL,
    job_id        INTEGER NOT NULL,
    recurring_id  INTEGER,
    prefix        TEXT NOT NULL,
    set_spec      TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    reason        TEXT,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER NOT NULL,
    counts        TEXT NOT NULL,
    pages         INTEGER NOT NULL
) STRICT;
CREATE INDEX oai_history_repository ON oai_history (repository_id, id);
CREATE INDEX oai_history_job ON oai_history (job_id, id);
