-- Drawn from the migrations; do not edit.

CREATE TABLE access_rules (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    rule         TEXT    NOT NULL,
    note         TEXT    NOT NULL DEFAULT '',
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1
, key TEXT) STRICT;

CREATE UNIQUE INDEX access_rules_by_key ON access_rules (key) WHERE key IS NOT NULL;

CREATE TABLE access_rules_removed (
    key          TEXT    NOT NULL PRIMARY KEY,
    removed_at   INTEGER NOT NULL,
    removed_by   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE archive_identity (
    one          INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    archive      TEXT    NOT NULL,
    created_at   INTEGER NOT NULL
, recovery_pending_since INTEGER) STRICT;

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

CREATE INDEX audit_log_by_who ON audit_log (who, number);

CREATE INDEX audit_log_of_subject ON audit_log (subject, number);

CREATE TABLE audits (
    id           TEXT    NOT NULL PRIMARY KEY,
    replica_id   INTEGER NOT NULL REFERENCES replicas (id),
    kind         TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    position     TEXT,
    files        INTEGER NOT NULL DEFAULT 0,
    bytes        INTEGER NOT NULL DEFAULT 0,
    ok           INTEGER NOT NULL DEFAULT 0,
    missing      INTEGER NOT NULL DEFAULT 0,
    corrupt      INTEGER NOT NULL DEFAULT 0,
    undecided    INTEGER NOT NULL DEFAULT 0,
    extra        INTEGER NOT NULL DEFAULT 0,
    asked_by     TEXT    NOT NULL,
    started_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    last_error   TEXT,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE INDEX audits_by_start ON audits (started_at);

CREATE UNIQUE INDEX audits_running ON audits (replica_id, kind) WHERE state = 'running';

CREATE TABLE channels (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    kind       TEXT NOT NULL,
    is_default INTEGER NOT NULL DEFAULT 0,
    comments   TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE UNIQUE INDEX channels_default ON channels (kind) WHERE is_default = 1;

CREATE TABLE collection_files (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    collection   TEXT    NOT NULL REFERENCES collections (name),
    name         TEXT    NOT NULL,
    path         TEXT,
    size         INTEGER NOT NULL,
    job          TEXT,
    state        TEXT    NOT NULL DEFAULT 'waiting',
    due_at       INTEGER NOT NULL DEFAULT 0,
    lease_owner  TEXT,
    lease_token  INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    captures     INTEGER NOT NULL DEFAULT 0,
    problems     INTEGER NOT NULL DEFAULT 0,
    -- JSON: the first few problems, or why it failed.
    told         TEXT    NOT NULL DEFAULT '[]',
    changed_at   INTEGER NOT NULL DEFAULT 0,
    edition      INTEGER NOT NULL DEFAULT 1, after_leaving TEXT NOT NULL DEFAULT 'out', abandoned INTEGER NOT NULL DEFAULT 0,
    UNIQUE (collection, name)
) STRICT;

CREATE UNIQUE INDEX collection_files_by_path ON collection_files (collection, path) WHERE path IS NOT NULL;

CREATE INDEX collection_files_due ON collection_files (id)
WHERE state IN ('waiting', 'leaving') OR (state = 'failed' AND due_at > 0);

CREATE INDEX collection_files_failed ON collection_files (id) WHERE state = 'failed';

CREATE INDEX collection_files_of_job ON collection_files (collection, job) WHERE job IS NOT NULL;

CREATE TABLE collections (
    name         TEXT    NOT NULL PRIMARY KEY,
    description  TEXT    NOT NULL DEFAULT '',
    created_at   INTEGER NOT NULL,
    removed_at   INTEGER,
    changed_at   INTEGER NOT NULL,
    changed_by   TEXT    NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1
, identity TEXT NOT NULL DEFAULT 'first') STRICT, WITHOUT ROWID;

CREATE TABLE configuration_credentials (
    configuration_id INTEGER NOT NULL REFERENCES configurations (id),
    credential_id    INTEGER NOT NULL REFERENCES credentials (id),
    PRIMARY KEY (configuration_id, credential_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX configuration_credentials_used ON configuration_credentials (credential_id);

CREATE TABLE configuration_seed_lists (
    configuration_id INTEGER NOT NULL REFERENCES configurations (id),
    seed_list_id     INTEGER NOT NULL REFERENCES seed_lists (id),
    PRIMARY KEY (configuration_id, seed_list_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX configuration_seed_lists_used ON configuration_seed_lists (seed_list_id);

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
    changed_by TEXT NOT NULL, form TEXT,
    UNIQUE (domain_id, name)
) STRICT;

CREATE TABLE custom_fields (
    noun TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (noun, name)
) STRICT;

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

CREATE UNIQUE INDEX domain_history_job ON domain_history (job_id, configuration_id);

CREATE INDEX domain_history_run ON domain_history (harvest_id, run);

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

CREATE TRIGGER files_entered AFTER INSERT ON files WHEN NEW.stored_at IS NOT NULL BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    VALUES ('archive', NEW.name, NEW.size, NEW.stored_at) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER files_stored AFTER UPDATE OF stored_at ON files
WHEN NEW.stored_at IS NOT NULL AND OLD.stored_at IS NULL BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    VALUES ('archive', NEW.name, NEW.size, NEW.stored_at) ON CONFLICT DO NOTHING;
END;

CREATE TABLE files (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL UNIQUE,
    size         INTEGER NOT NULL,
    checksum     TEXT    NOT NULL,
    checksums    TEXT    NOT NULL,
    source       TEXT,
    created_at   INTEGER NOT NULL,
    -- When all replicas were proven for the first time.
    stored_at    INTEGER,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE INDEX files_unstored ON files (id) WHERE stored_at IS NULL;

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
, states INTEGER NOT NULL DEFAULT 1) STRICT;

CREATE INDEX findings_closed ON findings (closed_at) WHERE closed_at IS NOT NULL;

CREATE UNIQUE INDEX findings_open ON findings (kind, subject) WHERE closed_at IS NULL;

CREATE INDEX findings_unannounced ON findings (id) WHERE announced_at IS NULL;

CREATE TABLE grange_migrations (
    number     BIGINT NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    checksum   TEXT   NOT NULL,
    applied_at BIGINT NOT NULL
);

CREATE TABLE harvest_configurations (
    harvest_id       INTEGER NOT NULL REFERENCES harvest_definitions (id),
    configuration_id INTEGER NOT NULL REFERENCES configurations (id),
    PRIMARY KEY (harvest_id, configuration_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX harvest_configurations_used ON harvest_configurations (configuration_id);

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

CREATE TABLE harvesters (
    name       TEXT NOT NULL PRIMARY KEY,
    host       TEXT NOT NULL,
    channels   TEXT NOT NULL,
    state      TEXT NOT NULL,
    free_bytes INTEGER,
    seen_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE index_owners (
    collection TEXT    NOT NULL PRIMARY KEY REFERENCES collections (name),
    owner      TEXT    NOT NULL,
    token      INTEGER NOT NULL DEFAULT 0,
    until_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE TABLE job_orders (
    job_id INTEGER NOT NULL PRIMARY KEY REFERENCES jobs (id),
    body   TEXT NOT NULL
) STRICT;

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

CREATE INDEX jobs_by_status ON jobs (status, id);

CREATE INDEX jobs_of_run ON jobs (harvest_id, run);

CREATE INDEX jobs_running ON jobs (id) WHERE status IN ('submitted', 'started');

CREATE INDEX jobs_to_claim ON jobs (channel, id) WHERE status = 'new';

CREATE TABLE log_checkpoints (
    size         INTEGER NOT NULL PRIMARY KEY,
    at           INTEGER NOT NULL,
    root         TEXT    NOT NULL,
    public_key   TEXT    NOT NULL,
    signature    TEXT    NOT NULL
) STRICT;

CREATE TABLE log_head (
    id           INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    size         INTEGER NOT NULL
) STRICT;

CREATE TABLE log_key_vouches (
    public_key   TEXT    NOT NULL,
    by_key       TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    signature    TEXT    NOT NULL,
    PRIMARY KEY (public_key, by_key)
) STRICT;

CREATE TABLE log_keys (
    public_key   TEXT    NOT NULL PRIMARY KEY,
    node         TEXT    NOT NULL,
    since        INTEGER NOT NULL,
    retired_at   INTEGER,
    proof        TEXT,
    edition      INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE TABLE log_leaves (
    number       INTEGER NOT NULL PRIMARY KEY,
    name         TEXT,
    body         TEXT    NOT NULL
) STRICT;

CREATE INDEX log_leaves_of_file ON log_leaves (name, number) WHERE name IS NOT NULL;

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
, clock_ahead_ms INTEGER) STRICT;

CREATE TABLE oai_folders (
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    path          TEXT NOT NULL,
    files         INTEGER NOT NULL,
    PRIMARY KEY (repository_id, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE oai_formats (
    id        INTEGER PRIMARY KEY,
    prefix    TEXT NOT NULL,
    namespace TEXT NOT NULL,
    schema    TEXT NOT NULL,
    UNIQUE (prefix, namespace, schema)
) STRICT;

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

CREATE INDEX oai_history_failed ON oai_history (id) WHERE outcome IN ('failed', 'incomplete');

CREATE INDEX oai_history_job ON oai_history (job_id, id);

CREATE INDEX oai_history_repository ON oai_history (repository_id, id);

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

CREATE UNIQUE INDEX oai_jobs_one ON oai_jobs (repository_id) WHERE status <> 'scheduled';

CREATE TABLE oai_progress (
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    prefix        TEXT NOT NULL,
    set_spec      TEXT NOT NULL,
    next_from     INTEGER,
    position      TEXT, rules TEXT NOT NULL DEFAULT '', lacking INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (repository_id, prefix, set_spec)
) STRICT, WITHOUT ROWID;

CREATE TABLE oai_record_sets (
    record_id INTEGER NOT NULL,
    spec      TEXT NOT NULL,
    PRIMARY KEY (record_id, spec)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE oai_repository_formats (
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    format_id     INTEGER NOT NULL REFERENCES oai_formats (id),
    PRIMARY KEY (repository_id, format_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE oai_sets (
    repository_id INTEGER NOT NULL REFERENCES oai_repositories (id),
    spec          TEXT NOT NULL,
    name          TEXT NOT NULL,
    PRIMARY KEY (repository_id, spec)
) STRICT, WITHOUT ROWID;

CREATE TABLE repairs (
    id           TEXT    NOT NULL PRIMARY KEY,
    file_id      INTEGER NOT NULL REFERENCES files (id),
    replica_id   INTEGER NOT NULL REFERENCES replicas (id),
    kind         TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    bad_checksum TEXT,
    asked_by     TEXT    NOT NULL,
    asked_at     INTEGER NOT NULL,
    confirmed_by TEXT,
    confirmed_at INTEGER,
    ended_at     INTEGER,
    last_error   TEXT,
    edition      INTEGER NOT NULL DEFAULT 1
, new_checksum TEXT) STRICT;

CREATE INDEX repairs_by_time ON repairs (asked_at);

CREATE UNIQUE INDEX repairs_open ON repairs (file_id, replica_id) WHERE state IN ('waiting', 'confirmed');

CREATE TRIGGER replica_files_added AFTER INSERT ON replica_files BEGIN
    INSERT INTO replica_totals VALUES (NEW.replica_id, NEW.state, NEW.presence, NEW.verdict, 0, 1, NEW.size)
    ON CONFLICT DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER replica_files_changed AFTER UPDATE OF state, presence, verdict ON replica_files
WHEN NEW.state <> OLD.state OR NEW.presence <> OLD.presence OR NEW.verdict <> OLD.verdict BEGIN
    INSERT INTO replica_totals VALUES (OLD.replica_id, OLD.state, OLD.presence, OLD.verdict, 0, -1, -OLD.size)
    ON CONFLICT DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes;
    INSERT INTO replica_totals VALUES (NEW.replica_id, NEW.state, NEW.presence, NEW.verdict, 0, 1, NEW.size)
    ON CONFLICT DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER replica_files_first_verified AFTER INSERT ON replica_files WHEN NEW.state = 'upload_completed' BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    SELECT 'archive', f.name, f.size, NEW.changed_at FROM files f
    JOIN replicas r ON r.id = NEW.replica_id AND r.kind = 'bitarchive'
    WHERE f.id = NEW.file_id
    ON CONFLICT (collection, name) DO UPDATE SET after_leaving = 'waiting', size = excluded.size
    WHERE state = 'leaving' AND after_leaving = 'removed';
END;

CREATE TRIGGER replica_files_removed AFTER DELETE ON replica_files BEGIN
    INSERT INTO replica_totals VALUES (OLD.replica_id, OLD.state, OLD.presence, OLD.verdict, 0, -1, -OLD.size)
    ON CONFLICT DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER replica_files_verified AFTER UPDATE OF state ON replica_files
WHEN NEW.state = 'upload_completed' AND OLD.state <> 'upload_completed' BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    SELECT 'archive', f.name, f.size, NEW.changed_at FROM files f
    JOIN replicas r ON r.id = NEW.replica_id AND r.kind = 'bitarchive'
    WHERE f.id = NEW.file_id
    ON CONFLICT (collection, name) DO UPDATE SET after_leaving = 'waiting', size = excluded.size
    WHERE state = 'leaving' AND after_leaving = 'removed';
END;

CREATE TABLE replica_files (
    file_id      INTEGER NOT NULL REFERENCES files (id),
    replica_id   INTEGER NOT NULL REFERENCES replicas (id),
    size         INTEGER NOT NULL,
    state        TEXT    NOT NULL DEFAULT 'unknown',
    presence     TEXT    NOT NULL DEFAULT 'unknown',
    verdict      TEXT    NOT NULL DEFAULT 'unknown',
    checksum     TEXT,
    attempts     INTEGER NOT NULL DEFAULT 0,
    last_error   TEXT,
    listed_at    INTEGER,
    checked_at   INTEGER,
    changed_at   INTEGER NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (file_id, replica_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX replica_files_corrupt ON replica_files (replica_id, file_id) WHERE verdict = 'corrupt';

CREATE INDEX replica_files_missing ON replica_files (replica_id, file_id) WHERE presence = 'missing';

CREATE INDEX replica_files_unproven ON replica_files (replica_id, file_id) WHERE state <> 'upload_completed';

CREATE TABLE replica_places (
    replica_id   INTEGER NOT NULL REFERENCES replicas (id),
    place        TEXT    NOT NULL,
    marked_at    INTEGER NOT NULL,
    PRIMARY KEY (replica_id, place)
) STRICT;

CREATE TABLE replica_totals (
    replica_id   INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    presence     TEXT    NOT NULL,
    verdict      TEXT    NOT NULL,
    slot         INTEGER NOT NULL,
    files        INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    PRIMARY KEY (replica_id, state, presence, verdict, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE replicas (
    id           INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL UNIQUE,
    kind         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    -- When the last whole check of either kind ended.
    listed_at    INTEGER,
    checked_at   INTEGER,
    edition      INTEGER NOT NULL DEFAULT 1
, away TEXT) STRICT;

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

CREATE TABLE schedules (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    body       TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    edition    INTEGER NOT NULL DEFAULT 1
) STRICT;

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

CREATE TABLE sessions (
    id           TEXT    NOT NULL PRIMARY KEY,
    user_id      TEXT    NOT NULL REFERENCES users (id),
    hash         TEXT    NOT NULL UNIQUE,
    csrf_hash    TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE INDEX sessions_of_user ON sessions (user_id);

CREATE TABLE stray_files (
    replica_id   INTEGER NOT NULL REFERENCES replicas (id),
    name         TEXT    NOT NULL,
    size         INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL,
    PRIMARY KEY (replica_id, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX stray_files_by_name ON stray_files (name);

CREATE TABLE template_versions (
    template_id INTEGER NOT NULL REFERENCES templates (id),
    version     INTEGER NOT NULL,
    text        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    PRIMARY KEY (template_id, version)
) STRICT;

CREATE TABLE templates (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    version    INTEGER NOT NULL,
    active     INTEGER NOT NULL DEFAULT 1,
    comments   TEXT NOT NULL DEFAULT '',
    changed_at INTEGER NOT NULL,
    changed_by TEXT NOT NULL
) STRICT;

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

CREATE TABLE waiting_deposits (
    harvester    TEXT    NOT NULL,
    folder       TEXT    NOT NULL,
    job_id       INTEGER NOT NULL,
    files        INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    reason       TEXT,
    since        INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL, claim_token INTEGER,
    PRIMARY KEY (harvester, folder)
) STRICT, WITHOUT ROWID;

CREATE INDEX waiting_deposits_of_job ON waiting_deposits (job_id);

CREATE TABLE work (
    id           TEXT    NOT NULL PRIMARY KEY,
    kind         TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    payload      TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    lease_owner  TEXT,
    lease_token  INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    attempts_max INTEGER NOT NULL,
    last_error   TEXT,
    outcome      TEXT,
    ended_at     INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1,
    -- In this order, so that no planner takes it for the order of claiming.
    UNIQUE (key, kind)
) STRICT;

CREATE INDEX work_ended ON work (kind, outcome, ended_at) WHERE outcome IS NOT NULL;

CREATE INDEX work_to_claim ON work (kind, priority DESC, id) WHERE outcome IS NULL;
