-- Harvests: what is harvested, when, and what became of it.
-- Limits are -1 for none and 0 for nothing. Lists of lines are texts with line breaks; `fields` are JSON.

-- A template and its versions; the newest is the one that new jobs get.
CREATE TABLE templates (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    version    INTEGER NOT NULL,
    active     INTEGER NOT NULL DEFAULT 1,
    comments   TEXT NOT NULL DEFAULT '',
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL
) STRICT;
CREATE TABLE template_versions (
    template_id INTEGER NOT NULL REFERENCES templates (id),
    version     INTEGER NOT NULL,
    text        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    PRIMARY KEY (template_id, version)
) STRICT;

-- Domains are never deleted: history names them.
CREATE TABLE domains (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    comments   TEXT NOT NULL DEFAULT '',
    traps      TEXT NOT NULL DEFAULT '',
    fields     TEXT NOT NULL DEFAULT '{}',
    alias_of   INTEGER REFERENCES domains (id),
    alias_at   INTEGER,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    edition    INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX domains_aliases ON domains (alias_of) WHERE alias_of IS NOT NULL;

-- best_* is what the history says about the next harvest, kept as history is written.
CREATE TABLE configurations (
    id            INTEGER PRIMARY KEY,
    domain_id     INTEGER NOT NULL REFERENCES domains (id),
    name          TEXT NOT NULL,
    is_default    INTEGER NOT NULL DEFAULT 0,
    template_id   INTEGER NOT NULL REFERENCES templates (id),
    max_objects   INTEGER NOT NULL DEFAULT -1,
    max_bytes     INTEGER NOT NULL DEFAULT -1,
    max_running_s INTEGER NOT NULL DEFAULT -1,
    comments      TEXT NOT NULL DEFAULT '',
    best_objects  INTEGER,
    best_bytes    INTEGER,
    best_complete INTEGER,
    changed_at    INTEGER NOT NULL,
    changed_by    TEXT NOT NULL,
    edition       INTEGER NOT NULL DEFAULT 1,
    UNIQUE (domain_id, name)
) STRICT;
CREATE UNIQUE INDEX configurations_default ON configurations (domain_id) WHERE is_default = 1;

-- seeds is what was typed; active what the crawler gets, absent if that is the same.
CREATE TABLE seed_lists (
    id           INTEGER PRIMARY KEY,
    domain_id    INTEGER NOT NULL REFERENCES domains (id),
    name         TEXT NOT NULL,
    comments     TEXT NOT NULL DEFAULT '',
    seeds        TEXT NOT NULL,
    active       TEXT,
    active_count INTEGER NOT NULL,
    changed_at   INTEGER NOT NULL,
    changed_by   TEXT NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1,
    UNIQUE (domain_id, name)
) STRICT;
CREATE TABLE configuration_seed_lists (
    configuration_id INTEGER NOT NULL REFERENCES configurations (id),
    seed_list_id     INTEGER NOT NULL REFERENCES seed_lists (id),
    PRIMARY KEY (configuration_id, seed_list_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX configuration_seed_lists_used ON configuration_seed_lists (seed_list_id);

-- Logins; sealed is the secret, encrypted with the key of this Grange.
CREATE TABLE credentials (
    id         INTEGER PRIMARY KEY,
    domain_id  INTEGER NOT NULL REFERENCES domains (id),
    name       TEXT NOT NULL,
    url        TEXT NOT NULL,
    realm      TEXT NOT NULL,
    username   TEXT NOT NULL,
    sealed     TEXT NOT NULL,
    comments   TEXT NOT NULL DEFAULT '',
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    UNIQUE (domain_id, name)
) STRICT;
CREATE TABLE configuration_credentials (
    configuration_id INTEGER NOT NULL REFERENCES configurations (id),
    credential_id    INTEGER NOT NULL REFERENCES credentials (id),
    PRIMARY KEY (configuration_id, credential_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX configuration_credentials_used ON configuration_credentials (credential_id);

-- Traps that hold for every job while their list is active.
CREATE TABLE trap_lists (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL DEFAULT '',
    active      INTEGER NOT NULL,
    expressions TEXT NOT NULL,
    changed_at  INTEGER NOT NULL,
    changed_by  TEXT NOT NULL,
    edition     INTEGER NOT NULL DEFAULT 1
) STRICT;

-- body is the schedule as JSON.
CREATE TABLE schedules (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    body       TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    edition    INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE channels (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    kind       TEXT NOT NULL,
    is_default INTEGER NOT NULL DEFAULT 0,
    comments   TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX channels_default ON channels (kind) WHERE is_default = 1;
INSERT INTO channels (name, kind, is_default, comments) VALUES
    ('focused', 'focused', 1, 'Selective and event harvests'),
    ('snapshot', 'snapshot', 1, 'Snapshot harvests');

CREATE TABLE harvesters (
    name       TEXT NOT NULL PRIMARY KEY,
    host       TEXT NOT NULL,
    channels   TEXT NOT NULL,
    state      TEXT NOT NULL,
    free_bytes INTEGER,
    seen_at    INTEGER NOT NULL
) STRICT;

-- plan_* is the lease of the scheduler that is planning a run.
CREATE TABLE harvest_definitions (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    kind          TEXT NOT NULL,
    comments      TEXT NOT NULL DEFAULT '',
    audience      TEXT NOT NULL DEFAULT '',
    active        INTEGER NOT NULL DEFAULT 0,
    deactivated   TEXT,
    runs          INTEGER NOT NULL DEFAULT 0,
    next_at       INTEGER,
    schedule_id   INTEGER REFERENCES schedules (id),
    channel_id    INTEGER REFERENCES channels (id),
    max_objects   INTEGER NOT NULL DEFAULT -1,
    max_bytes     INTEGER NOT NULL DEFAULT -1,
    max_running_s INTEGER NOT NULL DEFAULT -1,
    continues     INTEGER REFERENCES harvest_definitions (id),
    traps         TEXT NOT NULL DEFAULT '',
    fields        TEXT NOT NULL DEFAULT '{}',
    plan_owner    TEXT,
    plan_token    INTEGER NOT NULL DEFAULT 0,
    plan_until    INTEGER,
    created_at    INTEGER NOT NULL,
    changed_at    INTEGER NOT NULL,
    changed_by    TEXT NOT NULL,
    edition       INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX harvest_definitions_due ON harvest_definitions (kind, next_at) WHERE active = 1 AND next_at IS NOT NULL;
CREATE TABLE harvest_configurations (
    harvest_id       INTEGER NOT NULL REFERENCES harvest_definitions (id),
    configuration_id INTEGER NOT NULL REFERENCES configurations (id),
    PRIMARY KEY (harvest_id, configuration_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX harvest_configurations_used ON harvest_configurations (configuration_id);

-- What all jobs of a run share; never changed.
CREATE TABLE runs (
    harvest_id     INTEGER NOT NULL REFERENCES harvest_definitions (id),
    number         INTEGER NOT NULL,
    due_at         INTEGER NOT NULL,
    planned_at     INTEGER NOT NULL,
    configurations INTEGER NOT NULL,
    left_out       TEXT NOT NULL,
    skipped        INTEGER NOT NULL,
    jobs           INTEGER NOT NULL,
    schedule       TEXT,
    comments       TEXT NOT NULL,
    audience       TEXT NOT NULL,
    traps          TEXT NOT NULL,
    dedup_jobs     TEXT NOT NULL,
    PRIMARY KEY (harvest_id, number)
) STRICT;

-- status is draft while a run is being planned, then new, submitted, started, done, failed, resubmitted or
-- failed-rejected. lease_token grows with every claim and fences late harvesters off.
CREATE TABLE jobs (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    harvest_id       INTEGER NOT NULL REFERENCES harvest_definitions (id),
    run              INTEGER NOT NULL,
    status           TEXT NOT NULL,
    channel          TEXT NOT NULL,
    snapshot         INTEGER NOT NULL,
    template_id      INTEGER NOT NULL REFERENCES templates (id),
    template_version INTEGER NOT NULL,
    max_objects      INTEGER NOT NULL,
    max_bytes        INTEGER NOT NULL,
    max_running_s    INTEGER NOT NULL,
    configurations   INTEGER NOT NULL,
    expected_objects INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    submitted_at     INTEGER,
    started_at       INTEGER,
    ended_at         INTEGER,
    harvester        TEXT,
    lease_token      INTEGER NOT NULL DEFAULT 0,
    lease_until      INTEGER,
    attempts         INTEGER NOT NULL DEFAULT 0,
    stop_wanted      INTEGER NOT NULL DEFAULT 0,
    harvest_errors   TEXT,
    harvest_details  TEXT,
    upload_errors    TEXT,
    upload_details   TEXT,
    resubmitted_as   INTEGER,
    continuation_of  INTEGER
) STRICT;
CREATE INDEX jobs_to_claim ON jobs (channel, id) WHERE status = 'new';
CREATE INDEX jobs_running ON jobs (id) WHERE status IN ('submitted', 'started');
CREATE INDEX jobs_of_run ON jobs (harvest_id, run);
CREATE INDEX jobs_by_status ON jobs (status, id);

-- A configuration as it was when the job was planned.
CREATE TABLE job_configurations (
    job_id           INTEGER NOT NULL,
    configuration_id INTEGER NOT NULL,
    domain_id        INTEGER NOT NULL,
    name             TEXT NOT NULL,
    max_objects      INTEGER NOT NULL,
    max_bytes        INTEGER NOT NULL,
    max_running_s    INTEGER NOT NULL,
    expected_objects INTEGER NOT NULL,
    seeds            TEXT NOT NULL,
    traps            TEXT NOT NULL,
    PRIMARY KEY (job_id, configuration_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_configurations_domain ON job_configurations (domain_id, job_id);

CREATE TABLE domain_history (
    id               INTEGER PRIMARY KEY,
    domain_id        INTEGER NOT NULL,
    configuration_id INTEGER NOT NULL,
    configuration    TEXT NOT NULL,
    harvest_id       INTEGER NOT NULL,
    run              INTEGER NOT NULL,
    job_id           INTEGER NOT NULL,
    stop_reason      TEXT NOT NULL,
    objects          INTEGER NOT NULL,
    bytes            INTEGER NOT NULL,
    ended_at         INTEGER NOT NULL
) STRICT;
CREATE INDEX domain_history_domain ON domain_history (domain_id, id);
CREATE INDEX domain_history_run ON domain_history (harvest_id, run);
CREATE UNIQUE INDEX domain_history_job ON domain_history (job_id, configuration_id);

-- The newest word on a running job, and samples of earlier ones.
CREATE TABLE job_progress (
    job_id     INTEGER NOT NULL PRIMARY KEY,
    at         INTEGER NOT NULL,
    sampled_at INTEGER NOT NULL,
    body       TEXT NOT NULL
) STRICT;
CREATE TABLE job_progress_samples (
    job_id INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (job_id, at)
) STRICT, WITHOUT ROWID;

-- What a library wants to write down beyond what Grange knows; body is the field as JSON.
CREATE TABLE custom_fields (
    noun TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (noun, name)
) STRICT;
