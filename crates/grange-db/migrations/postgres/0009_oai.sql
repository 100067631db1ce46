-- Metadata harvesting over OAI-PMH: whom we ask, what we hold of theirs, which jobs there are, what became of them.
-- A set_spec of '' means all sets. Datestamps are the repository's, in microseconds like all times.

-- said is what Identify told beyond the columns, rules how the repository is treated; both JSON.
-- lists counts the lists ever begun: a record knows the last one it was seen in.
CREATE TABLE oai_repositories (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    base_url   TEXT COLLATE "C" NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    said       TEXT NOT NULL,
    rules      TEXT NOT NULL,
    lists      BIGINT NOT NULL DEFAULT 0,
    added_at   BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    changed_by TEXT NOT NULL,
    edition    BIGINT NOT NULL DEFAULT 1
);
CREATE TABLE oai_sets (
    repository_id BIGINT NOT NULL REFERENCES oai_repositories (id),
    spec          TEXT COLLATE "C" NOT NULL,
    name          TEXT NOT NULL,
    PRIMARY KEY (repository_id, spec)
);

-- Formats are shared between repositories; the same prefix with another namespace is another format.
CREATE TABLE oai_formats (
    id        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    prefix    TEXT COLLATE "C" NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    schema    TEXT COLLATE "C" NOT NULL,
    UNIQUE (prefix, namespace, schema)
);
CREATE TABLE oai_repository_formats (
    repository_id BIGINT NOT NULL REFERENCES oai_repositories (id),
    format_id     BIGINT NOT NULL REFERENCES oai_formats (id),
    PRIMARY KEY (repository_id, format_id)
);

-- updated is 1 until a consumer clears it; changed_at is the datestamp that Grange itself serves.
CREATE TABLE oai_records (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repository_id BIGINT NOT NULL REFERENCES oai_repositories (id),
    prefix        TEXT COLLATE "C" NOT NULL,
    identifier    TEXT COLLATE "C" NOT NULL,
    filename      TEXT NOT NULL,
    datestamp     BIGINT NOT NULL,
    deleted       BIGINT NOT NULL,
    digest        TEXT NOT NULL,
    changed_at    BIGINT NOT NULL,
    updated       BIGINT NOT NULL,
    list          BIGINT NOT NULL,
    UNIQUE (repository_id, prefix, identifier)
);
CREATE INDEX oai_records_changed ON oai_records (prefix, changed_at, id);
CREATE TABLE oai_record_sets (
    record_id BIGINT NOT NULL,
    spec      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (record_id, spec)
);

-- How many files were ever placed in a folder: what decides on the starting_at_… folders.
CREATE TABLE oai_folders (
    repository_id BIGINT NOT NULL REFERENCES oai_repositories (id),
    path          TEXT COLLATE "C" NOT NULL,
    files         BIGINT NOT NULL,
    PRIMARY KEY (repository_id, path)
);

-- How far the harvest of a format and set is: next_from after the last whole one, position within one that is not over.
CREATE TABLE oai_progress (
    repository_id BIGINT NOT NULL REFERENCES oai_repositories (id),
    prefix        TEXT COLLATE "C" NOT NULL,
    set_spec      TEXT COLLATE "C" NOT NULL,
    next_from     BIGINT,
    position      TEXT,
    PRIMARY KEY (repository_id, prefix, set_spec)
);

-- spec is what to ask for, as JSON.
CREATE TABLE oai_recurring_jobs (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repository_id BIGINT NOT NULL REFERENCES oai_repositories (id),
    spec          TEXT NOT NULL,
    starts_at     BIGINT NOT NULL,
    ends_at       BIGINT,
    every         TEXT,
    state         TEXT NOT NULL,
    failures      BIGINT NOT NULL DEFAULT 0,
    added_at      BIGINT NOT NULL,
    changed_at    BIGINT NOT NULL,
    changed_by    TEXT NOT NULL,
    edition       BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX oai_recurring_jobs_new ON oai_recurring_jobs (id) WHERE state = 'new';

-- status is scheduled, in-progress or stopping; a job that is over is a line of history. lease_token grows with every
-- claim and fences late harvesters off.
CREATE TABLE oai_jobs (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repository_id BIGINT NOT NULL REFERENCES oai_repositories (id),
    recurring_id  BIGINT,
    prefix        TEXT COLLATE "C" NOT NULL,
    set_spec      TEXT COLLATE "C" NOT NULL,
    spec          TEXT NOT NULL,
    status        TEXT NOT NULL,
    due_at        BIGINT NOT NULL,
    started_at    BIGINT,
    owner         TEXT,
    lease_token   BIGINT NOT NULL DEFAULT 0,
    lease_until   BIGINT,
    attempts      BIGINT NOT NULL DEFAULT 0,
    stop_reason   TEXT,
    pages         BIGINT NOT NULL DEFAULT 0,
    expected      BIGINT,
    counts        TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX oai_jobs_due ON oai_jobs (due_at, id) WHERE status = 'scheduled';
-- One job at a time asks a repository.
CREATE UNIQUE INDEX oai_jobs_one ON oai_jobs (repository_id) WHERE status <> 'scheduled';

CREATE TABLE oai_history (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repository_id BIGINT NOT NULL,
    job_id        BIGINT NOT NULL,
    recurring_id  BIGINT,
    prefix        TEXT COLLATE "C" NOT NULL,
    set_spec      TEXT COLLATE "C" NOT NULL,
    outcome       TEXT NOT NULL,
    reason        TEXT,
    started_at    BIGINT NOT NULL,
    ended_at      BIGINT NOT NULL,
    counts        TEXT NOT NULL,
    pages         BIGINT NOT NULL
);
CREATE INDEX oai_history_repository ON oai_history (repository_id, id);
CREATE INDEX oai_history_job ON oai_history (job_id, id);
