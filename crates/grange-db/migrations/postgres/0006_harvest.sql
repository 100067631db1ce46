-- Harvests: what is harvested, when, and what became of it.
-- Limits are -1 for none and 0 for nothing. Lists of lines are texts with line breaks; `fields` are JSON.

-- A template and its versions; the newest is the one that new jobs get.
CREATE TABLE templates (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL UNIQUE,
    version    BIGINT NOT NULL,
    active     BIGINT NOT NULL DEFAULT 1,
    comments   TEXT NOT NULL DEFAULT '',
    changed_at BIGINT NOT NULL,
    changed_by TEXT NOT NULL
);
CREATE TABLE template_versions (
    template_id BIGINT NOT NULL REFERENCES templates (id),
    version     BIGINT NOT NULL,
    text        TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    created_by  TEXT NOT NULL,
    PRIMARY KEY (template_id, version)
);

-- Domains are never deleted: history names them.
CREATE TABLE domains (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL UNIQUE,
    comments   TEXT NOT NULL DEFAULT '',
    traps      TEXT NOT NULL DEFAULT '',
    fields     TEXT NOT NULL DEFAULT '{}',
    alias_of   BIGINT REFERENCES domains (id),
    alias_at   BIGINT,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    changed_by TEXT NOT NULL,
    edition    BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX domains_aliases ON domains (alias_of) WHERE alias_of IS NOT NULL;

-- best_* is what the history says about the next harvest, kept as history is written.
CREATE TABLE configurations (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id     BIGINT NOT NULL REFERENCES domains (id),
    name          TEXT COLLATE "C" NOT NULL,
    is_default    BIGINT NOT NULL DEFAULT 0,
    template_id   BIGINT NOT NULL REFERENCES templates (id),
    max_objects   BIGINT NOT NULL DEFAULT -1,
    max_bytes     BIGINT NOT NULL DEFAULT -1,
    max_running_s BIGINT NOT NULL DEFAULT -1,
    comments      TEXT NOT NULL DEFAULT '',
    best_objects  BIGINT,
    best_bytes    BIGINT,
    best_complete BIGINT,
    changed_at    BIGINT NOT NULL,
    changed_by    TEXT NOT NULL,
    edition       BIGINT NOT NULL DEFAULT 1,
    UNIQUE (domain_id, name)
);
CREATE UNIQUE INDEX configurations_default ON configurations (domain_id) WHERE is_default = 1;

-- seeds is what was typed; active what the crawler gets, absent if that is the same.
CREATE TABLE seed_lists (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id    BIGINT NOT NULL REFERENCES domains (id),
    name         TEXT COLLATE "C" NOT NULL,
    comments     TEXT NOT NULL DEFAULT '',
    seeds        TEXT NOT NULL,
    active       TEXT,
    active_count BIGINT NOT NULL,
    changed_at   BIGINT NOT NULL,
    changed_by   TEXT NOT NULL,
    edition      BIGINT NOT NULL DEFAULT 1,
    UNIQUE (domain_id, name)
);
CREATE TABLE configuration_seed_lists (
    configuration_id BIGINT NOT NULL REFERENCES configurations (id),
    seed_list_id     BIGINT NOT NULL REFERENCES seed_lists (id),
    PRIMARY KEY (configuration_id, seed_list_id)
);
CREATE INDEX configuration_seed_lists_used ON configuration_seed_lists (seed_list_id);

-- Logins; sealed is the secret, encrypted with the key of this Grange.
CREATE TABLE credentials (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id  BIGINT NOT NULL REFERENCES domains (id),
    name       TEXT COLLATE "C" NOT NULL,
    url        TEXT NOT NULL,
    realm      TEXT NOT NULL,
    username   TEXT NOT NULL,
    sealed     TEXT NOT NULL,
    comments   TEXT NOT NULL DEFAULT '',
    changed_at BIGINT NOT NULL,
    changed_by TEXT NOT NULL,
    UNIQUE (domain_id, name)
);
CREATE TABLE configuration_credentials (
    configuration_id BIGINT NOT NULL REFERENCES configurations (id),
    credential_id    BIGINT NOT NULL REFERENCES credentials (id),
    PRIMARY KEY (configuration_id, credential_id)
);
CREATE INDEX configuration_credentials_used ON configuration_credentials (credential_id);

-- Traps that hold for every job while their list is active.
CREATE TABLE trap_lists (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        TEXT COLLATE "C" NOT NULL UNIQUE,
    description TEXT NOT NULL DEFAULT '',
    active      BIGINT NOT NULL,
    expressions TEXT NOT NULL,
    changed_at  BIGINT NOT NULL,
    changed_by  TEXT NOT NULL,
    edition     BIGINT NOT NULL DEFAULT 1
);

-- body is the schedule as JSON.
CREATE TABLE schedules (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL UNIQUE,
    body       TEXT NOT NULL,
    changed_at BIGINT NOT NULL,
    changed_by TEXT NOT NULL,
    edition    BIGINT NOT NULL DEFAULT 1
);

CREATE TABLE channels (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT COLLATE "C" NOT NULL UNIQUE,
    kind       TEXT NOT NULL,
    is_default BIGINT NOT NULL DEFAULT 0,
    comments   TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX channels_default ON channels (kind) WHERE is_default = 1;
INSERT INTO channels (name, kind, is_default, comments) VALUES
    ('focused', 'focused', 1, 'Selective and event harvests'),
    ('snapshot', 'snapshot', 1, 'Snapshot harvests');

CREATE TABLE harvesters (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    host       TEXT NOT NULL,
    channels   TEXT NOT NULL,
    state      TEXT NOT NULL,
    free_bytes BIGINT,
    seen_at    BIGINT NOT NULL
);

-- plan_* is the lease of the scheduler that is planning a run.
CREATE TABLE harvest_definitions (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          TEXT COLLATE "C" NOT NULL UNIQUE,
    kind          TEXT NOT NULL,
    comments      TEXT NOT NULL DEFAULT '',
    audience      TEXT NOT NULL DEFAULT '',
    active        BIGINT NOT NULL DEFAULT 0,
    deactivated   TEXT,
    runs          BIGINT NOT NULL DEFAULT 0,
    next_at       BIGINT,
    schedule_id   BIGINT REFERENCES schedules (id),
    channel_id    BIGINT REFERENCES channels (id),
    max_objects   BIGINT NOT NULL DEFAULT -1,
    max_bytes     BIGINT NOT NULL DEFAULT -1,
    max_running_s BIGINT NOT NULL DEFAULT -1,
    continues     BIGINT REFERENCES harvest_definitions (id),
    traps         TEXT NOT NULL DEFAULT '',
    fields        TEXT NOT NULL DEFAULT '{}',
    plan_owner    TEXT,
    plan_token    BIGINT NOT NULL DEFAULT 0,
    plan_until    BIGINT,
    created_at    BIGINT NOT NULL,
    changed_at    BIGINT NOT NULL,
    changed_by    TEXT NOT NULL,
    edition       BIGINT NOT NULL DEFAULT 1
);
CREATE INDEX harvest_definitions_due ON harvest_definitions (kind, next_at) WHERE active = 1 AND next_at IS NOT NULL;
CREATE TABLE harvest_configurations (
    harvest_id       BIGINT NOT NULL REFERENCES harvest_definitions (id),
    configuration_id BIGINT NOT NULL REFERENCES configurations (id),
    PRIMARY KEY (harvest_id, configuration_id)
);
CREATE INDEX harvest_configurations_used ON harvest_configurations (configuration_id);

-- What all jobs of a run share; never changed.
CREATE TABLE runs (
    harvest_id     BIGINT NOT NULL REFERENCES harvest_definitions (id),
    number         BIGINT NOT NULL,
    due_at         BIGINT NOT NULL,
    planned_at     BIGINT NOT NULL,
    configurations BIGINT NOT NULL,
    left_out       TEXT NOT NULL,
    skipped        BIGINT NOT NULL,
    jobs           BIGINT NOT NULL,
    schedule       TEXT,
    comments       TEXT NOT NULL,
    audience       TEXT NOT NULL,
    traps          TEXT NOT NULL,
    dedup_jobs     TEXT NOT NULL,
    PRIMARY KEY (harvest_id, number)
);

-- status is draft while a run is being planned, then new, submitted, started, done, failed, resubmitted or
-- failed-rejected. lease_token grows with every claim and fences late harvesters off.
CREATE TABLE jobs (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    harvest_id       BIGINT NOT NULL REFERENCES harvest_definitions (id),
    run              BIGINT NOT NULL,
    status           TEXT COLLATE "C" NOT NULL,
    channel          TEXT COLLATE "C" NOT NULL,
    snapshot         BIGINT NOT NULL,
    template_id      BIGINT NOT NULL REFERENCES templates (id),
    template_version BIGINT NOT NULL,
    max_objects      BIGINT NOT NULL,
    max_bytes        BIGINT NOT NULL,
    max_running_s    BIGINT NOT NULL,
    configurations   BIGINT NOT NULL,
    expected_objects BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    submitted_at     BIGINT,
    started_at       BIGINT,
    ended_at         BIGINT,
    harvester        TEXT,
    lease_token      BIGINT NOT NULL DEFAULT 0,
    lease_until      BIGINT,
    attempts         BIGINT NOT NULL DEFAULT 0,
    stop_wanted      BIGINT NOT NULL DEFAULT 0,
    harvest_errors   TEXT,
    harvest_details  TEXT,
    upload_errors    TEXT,
    upload_details   TEXT,
    resubmitted_as   BIGINT,
    continuation_of  BIGINT
) WITH (fillfactor = 70);
CREATE INDEX jobs_to_claim ON jobs (channel, id) WHERE status = 'new';
CREATE INDEX jobs_running ON jobs (id) WHERE status IN ('submitted', 'started');
CREATE INDEX jobs_of_run ON jobs (harvest_id, run);
CREATE INDEX jobs_by_status ON jobs (status, id);

-- A configuration as it was when the job was planned.
CREATE TABLE job_configurations (
    job_id           BIGINT NOT NULL,
    configuration_id BIGINT NOT NULL,
    domain_id        BIGINT NOT NULL,
    name             TEXT NOT NULL,
    max_objects      BIGINT NOT NULL,
    max_bytes        BIGINT NOT NULL,
    max_running_s    BIGINT NOT NULL,
    expected_objects BIGINT NOT NULL,
    seeds            TEXT NOT NULL,
    traps            TEXT NOT NULL,
    PRIMARY KEY (job_id, configuration_id)
);
CREATE INDEX job_configurations_domain ON job_configurations (domain_id, job_id);

CREATE TABLE domain_history (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain_id        BIGINT NOT NULL,
    configuration_id BIGINT NOT NULL,
    configuration    TEXT NOT NULL,
    harvest_id       BIGINT NOT NULL,
    run              BIGINT NOT NULL,
    job_id           BIGINT NOT NULL,
    stop_reason      TEXT NOT NULL,
    objects          BIGINT NOT NULL,
    bytes            BIGINT NOT NULL,
    ended_at         BIGINT NOT NULL
);
CREATE INDEX domain_history_domain ON domain_history (domain_id, id);
CREATE INDEX domain_history_run ON domain_history (harvest_id, run);
CREATE UNIQUE INDEX domain_history_job ON domain_history (job_id, configuration_id);

-- The newest word on a running job, and samples of earlier ones.
CREATE TABLE job_progress (
    job_id     BIGINT NOT NULL PRIMARY KEY,
    at         BIGINT NOT NULL,
    sampled_at BIGINT NOT NULL,
    body       TEXT NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE job_progress_samples (
    job_id BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (job_id, at)
);

-- What a library wants to write down beyond what Grange knows; body is the field as JSON.
CREATE TABLE custom_fields (
    noun TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (noun, name)
);
