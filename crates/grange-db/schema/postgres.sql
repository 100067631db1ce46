-- Drawn from the migrations; do not edit.

-- table access_rules
id BIGINT NOT NULL IDENTITY
rule TEXT COLLATE "C" NOT NULL
note TEXT COLLATE "C" NOT NULL DEFAULT ''::text
created_at BIGINT NOT NULL
created_by TEXT COLLATE "C" NOT NULL
edition BIGINT NOT NULL DEFAULT 1
key TEXT COLLATE "C"

-- table access_rules_removed
key TEXT COLLATE "C" NOT NULL
removed_at BIGINT NOT NULL
removed_by TEXT COLLATE "C" NOT NULL

-- table archive_identity
one BIGINT NOT NULL
archive TEXT COLLATE "C" NOT NULL
created_at BIGINT NOT NULL
recovery_pending_since BIGINT

-- table audit_log
number BIGINT NOT NULL IDENTITY
at BIGINT NOT NULL
who TEXT COLLATE "C" NOT NULL
via TEXT COLLATE "C" NOT NULL
act TEXT COLLATE "C" NOT NULL
subject TEXT COLLATE "C" NOT NULL
state_before TEXT
state_after TEXT

-- table audits
id TEXT COLLATE "C" NOT NULL
replica_id BIGINT NOT NULL
kind TEXT COLLATE "C" NOT NULL
state TEXT COLLATE "C" NOT NULL
position TEXT COLLATE "C"
files BIGINT NOT NULL DEFAULT 0
bytes BIGINT NOT NULL DEFAULT 0
ok BIGINT NOT NULL DEFAULT 0
missing BIGINT NOT NULL DEFAULT 0
corrupt BIGINT NOT NULL DEFAULT 0
undecided BIGINT NOT NULL DEFAULT 0
extra BIGINT NOT NULL DEFAULT 0
asked_by TEXT COLLATE "C" NOT NULL
started_at BIGINT NOT NULL
updated_at BIGINT NOT NULL
ended_at BIGINT
last_error TEXT COLLATE "C"
edition BIGINT NOT NULL DEFAULT 1

-- table channels
id BIGINT NOT NULL IDENTITY
name TEXT COLLATE "C" NOT NULL
kind TEXT NOT NULL
is_default BIGINT NOT NULL DEFAULT 0
comments TEXT NOT NULL DEFAULT ''::text

-- table collection_files
id BIGINT NOT NULL IDENTITY
collection TEXT COLLATE "C" NOT NULL
name TEXT COLLATE "C" NOT NULL
path TEXT COLLATE "C"
size BIGINT NOT NULL
job TEXT COLLATE "C"
state TEXT COLLATE "C" NOT NULL DEFAULT 'waiting'::text
due_at BIGINT NOT NULL DEFAULT 0
lease_owner TEXT COLLATE "C"
lease_token BIGINT NOT NULL DEFAULT 0
attempts BIGINT NOT NULL DEFAULT 0
captures BIGINT NOT NULL DEFAULT 0
problems BIGINT NOT NULL DEFAULT 0
told TEXT COLLATE "C" NOT NULL DEFAULT '[]'::text
changed_at BIGINT NOT NULL DEFAULT 0
edition BIGINT NOT NULL DEFAULT 1
after_leaving TEXT COLLATE "C" NOT NULL DEFAULT 'out'::text
abandoned BIGINT NOT NULL DEFAULT 0

-- table collections
name TEXT COLLATE "C" NOT NULL
description TEXT COLLATE "C" NOT NULL DEFAULT ''::text
created_at BIGINT NOT NULL
removed_at BIGINT
changed_at BIGINT NOT NULL
changed_by TEXT COLLATE "C" NOT NULL
edition BIGINT NOT NULL DEFAULT 1
identity TEXT COLLATE "C" NOT NULL DEFAULT 'first'::text

-- table configuration_credentials
configuration_id BIGINT NOT NULL
credential_id BIGINT NOT NULL

-- table configuration_seed_lists
configuration_id BIGINT NOT NULL
seed_list_id BIGINT NOT NULL

-- table configurations
id BIGINT NOT NULL IDENTITY
domain_id BIGINT NOT NULL
name TEXT COLLATE "C" NOT NULL
is_default BIGINT NOT NULL DEFAULT 0
template_id BIGINT NOT NULL
max_objects BIGINT NOT NULL DEFAULT '-1'::integer
max_bytes BIGINT NOT NULL DEFAULT '-1'::integer
max_running_s BIGINT NOT NULL DEFAULT '-1'::integer
comments TEXT NOT NULL DEFAULT ''::text
best_objects BIGINT
best_bytes BIGINT
best_complete BIGINT
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table credentials
id BIGINT NOT NULL IDENTITY
domain_id BIGINT NOT NULL
name TEXT COLLATE "C" NOT NULL
url TEXT NOT NULL
realm TEXT NOT NULL
username TEXT NOT NULL
sealed TEXT NOT NULL
comments TEXT NOT NULL DEFAULT ''::text
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
form TEXT COLLATE "C"

-- table custom_fields
noun TEXT COLLATE "C" NOT NULL
name TEXT COLLATE "C" NOT NULL
body TEXT NOT NULL

-- table domain_history
id BIGINT NOT NULL IDENTITY
domain_id BIGINT NOT NULL
configuration_id BIGINT NOT NULL
configuration TEXT NOT NULL
harvest_id BIGINT NOT NULL
run BIGINT NOT NULL
job_id BIGINT NOT NULL
stop_reason TEXT NOT NULL
objects BIGINT NOT NULL
bytes BIGINT NOT NULL
ended_at BIGINT NOT NULL

-- table domains
id BIGINT NOT NULL IDENTITY
name TEXT COLLATE "C" NOT NULL
comments TEXT NOT NULL DEFAULT ''::text
traps TEXT NOT NULL DEFAULT ''::text
fields TEXT NOT NULL DEFAULT '{}'::text
alias_of BIGINT
alias_at BIGINT
created_at BIGINT NOT NULL
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table files
id BIGINT NOT NULL IDENTITY
name TEXT COLLATE "C" NOT NULL
size BIGINT NOT NULL
checksum TEXT COLLATE "C" NOT NULL
checksums TEXT COLLATE "C" NOT NULL
source TEXT COLLATE "C"
created_at BIGINT NOT NULL
stored_at BIGINT
edition BIGINT NOT NULL DEFAULT 1

-- table findings
id BIGINT NOT NULL IDENTITY
kind TEXT COLLATE "C" NOT NULL
grouped_by TEXT COLLATE "C" NOT NULL
subject TEXT COLLATE "C" NOT NULL
detail TEXT COLLATE "C" NOT NULL
file_id BIGINT
replica_id BIGINT
opened_at BIGINT NOT NULL
due_at BIGINT NOT NULL
announced_at BIGINT
closed_at BIGINT
lease_owner TEXT COLLATE "C"
lease_until BIGINT
states BIGINT NOT NULL DEFAULT 1

-- table grange_migrations
number BIGINT NOT NULL
name TEXT NOT NULL
checksum TEXT NOT NULL
applied_at BIGINT NOT NULL

-- table harvest_configurations
harvest_id BIGINT NOT NULL
configuration_id BIGINT NOT NULL

-- table harvest_definitions
id BIGINT NOT NULL IDENTITY
name TEXT COLLATE "C" NOT NULL
kind TEXT NOT NULL
comments TEXT NOT NULL DEFAULT ''::text
audience TEXT NOT NULL DEFAULT ''::text
active BIGINT NOT NULL DEFAULT 0
deactivated TEXT
runs BIGINT NOT NULL DEFAULT 0
next_at BIGINT
schedule_id BIGINT
channel_id BIGINT
max_objects BIGINT NOT NULL DEFAULT '-1'::integer
max_bytes BIGINT NOT NULL DEFAULT '-1'::integer
max_running_s BIGINT NOT NULL DEFAULT '-1'::integer
continues BIGINT
traps TEXT NOT NULL DEFAULT ''::text
fields TEXT NOT NULL DEFAULT '{}'::text
plan_owner TEXT
plan_token BIGINT NOT NULL DEFAULT 0
plan_until BIGINT
created_at BIGINT NOT NULL
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table harvesters
name TEXT COLLATE "C" NOT NULL
host TEXT NOT NULL
channels TEXT NOT NULL
state TEXT NOT NULL
free_bytes BIGINT
seen_at BIGINT NOT NULL

-- table index_owners
collection TEXT COLLATE "C" NOT NULL
owner TEXT COLLATE "C" NOT NULL
token BIGINT NOT NULL DEFAULT 0
until_at BIGINT NOT NULL

-- table job_configurations
job_id BIGINT NOT NULL
configuration_id BIGINT NOT NULL
domain_id BIGINT NOT NULL
name TEXT NOT NULL
max_objects BIGINT NOT NULL
max_bytes BIGINT NOT NULL
max_running_s BIGINT NOT NULL
expected_objects BIGINT NOT NULL
seeds TEXT NOT NULL
traps TEXT NOT NULL

-- table job_orders
job_id BIGINT NOT NULL
body TEXT NOT NULL

-- table job_progress
job_id BIGINT NOT NULL
at BIGINT NOT NULL
sampled_at BIGINT NOT NULL
body TEXT NOT NULL

-- table job_progress_samples
job_id BIGINT NOT NULL
at BIGINT NOT NULL
body TEXT NOT NULL

-- table jobs
id BIGINT NOT NULL IDENTITY
harvest_id BIGINT NOT NULL
run BIGINT NOT NULL
status TEXT COLLATE "C" NOT NULL
channel TEXT COLLATE "C" NOT NULL
snapshot BIGINT NOT NULL
template_id BIGINT NOT NULL
template_version BIGINT NOT NULL
max_objects BIGINT NOT NULL
max_bytes BIGINT NOT NULL
max_running_s BIGINT NOT NULL
configurations BIGINT NOT NULL
expected_objects BIGINT NOT NULL
created_at BIGINT NOT NULL
submitted_at BIGINT
started_at BIGINT
ended_at BIGINT
harvester TEXT
lease_token BIGINT NOT NULL DEFAULT 0
lease_until BIGINT
attempts BIGINT NOT NULL DEFAULT 0
stop_wanted BIGINT NOT NULL DEFAULT 0
harvest_errors TEXT
harvest_details TEXT
upload_errors TEXT
upload_details TEXT
resubmitted_as BIGINT
continuation_of BIGINT

-- table log_checkpoints
size BIGINT NOT NULL
at BIGINT NOT NULL
root TEXT COLLATE "C" NOT NULL
public_key TEXT COLLATE "C" NOT NULL
signature TEXT COLLATE "C" NOT NULL

-- table log_head
id BIGINT NOT NULL
size BIGINT NOT NULL

-- table log_key_vouches
public_key TEXT COLLATE "C" NOT NULL
by_key TEXT COLLATE "C" NOT NULL
at BIGINT NOT NULL
signature TEXT COLLATE "C" NOT NULL

-- table log_keys
public_key TEXT COLLATE "C" NOT NULL
node TEXT COLLATE "C" NOT NULL
since BIGINT NOT NULL
retired_at BIGINT
proof TEXT COLLATE "C"
edition BIGINT NOT NULL DEFAULT 1

-- table log_leaves
number BIGINT NOT NULL
name TEXT COLLATE "C"
body TEXT COLLATE "C" NOT NULL

-- table nodes
id TEXT COLLATE "C" NOT NULL
name TEXT COLLATE "C" NOT NULL
host TEXT COLLATE "C" NOT NULL
roles TEXT NOT NULL
version TEXT NOT NULL
addresses TEXT NOT NULL
free_bytes BIGINT
started_at BIGINT NOT NULL
seen_at BIGINT NOT NULL
stopped_at BIGINT
edition BIGINT NOT NULL DEFAULT 1
clock_ahead_ms BIGINT

-- table oai_folders
repository_id BIGINT NOT NULL
path TEXT COLLATE "C" NOT NULL
files BIGINT NOT NULL

-- table oai_formats
id BIGINT NOT NULL IDENTITY
prefix TEXT COLLATE "C" NOT NULL
namespace TEXT COLLATE "C" NOT NULL
schema TEXT COLLATE "C" NOT NULL

-- table oai_history
id BIGINT NOT NULL IDENTITY
repository_id BIGINT NOT NULL
job_id BIGINT NOT NULL
recurring_id BIGINT
prefix TEXT COLLATE "C" NOT NULL
set_spec TEXT COLLATE "C" NOT NULL
outcome TEXT NOT NULL
reason TEXT
started_at BIGINT NOT NULL
ended_at BIGINT NOT NULL
counts TEXT NOT NULL
pages BIGINT NOT NULL

-- table oai_jobs
id BIGINT NOT NULL IDENTITY
repository_id BIGINT NOT NULL
recurring_id BIGINT
prefix TEXT COLLATE "C" NOT NULL
set_spec TEXT COLLATE "C" NOT NULL
spec TEXT NOT NULL
status TEXT NOT NULL
due_at BIGINT NOT NULL
started_at BIGINT
owner TEXT
lease_token BIGINT NOT NULL DEFAULT 0
lease_until BIGINT
attempts BIGINT NOT NULL DEFAULT 0
stop_reason TEXT
pages BIGINT NOT NULL DEFAULT 0
expected BIGINT
counts TEXT NOT NULL DEFAULT '{}'::text

-- table oai_progress
repository_id BIGINT NOT NULL
prefix TEXT COLLATE "C" NOT NULL
set_spec TEXT COLLATE "C" NOT NULL
next_from BIGINT
position TEXT
rules TEXT COLLATE "C" NOT NULL DEFAULT ''::text
lacking BIGINT NOT NULL DEFAULT 0

-- table oai_record_sets
record_id BIGINT NOT NULL
spec TEXT COLLATE "C" NOT NULL

-- table oai_records
id BIGINT NOT NULL IDENTITY
repository_id BIGINT NOT NULL
prefix TEXT COLLATE "C" NOT NULL
identifier TEXT COLLATE "C" NOT NULL
filename TEXT NOT NULL
datestamp BIGINT NOT NULL
deleted BIGINT NOT NULL
digest TEXT NOT NULL
changed_at BIGINT NOT NULL
updated BIGINT NOT NULL
list BIGINT NOT NULL

-- table oai_recurring_jobs
id BIGINT NOT NULL IDENTITY
repository_id BIGINT NOT NULL
spec TEXT NOT NULL
starts_at BIGINT NOT NULL
ends_at BIGINT
every TEXT
state TEXT NOT NULL
failures BIGINT NOT NULL DEFAULT 0
added_at BIGINT NOT NULL
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table oai_repositories
id BIGINT NOT NULL IDENTITY
base_url TEXT COLLATE "C" NOT NULL
name TEXT NOT NULL
said TEXT NOT NULL
rules TEXT NOT NULL
lists BIGINT NOT NULL DEFAULT 0
added_at BIGINT NOT NULL
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table oai_repository_formats
repository_id BIGINT NOT NULL
format_id BIGINT NOT NULL

-- table oai_sets
repository_id BIGINT NOT NULL
spec TEXT COLLATE "C" NOT NULL
name TEXT NOT NULL

-- table repairs
id TEXT COLLATE "C" NOT NULL
file_id BIGINT NOT NULL
replica_id BIGINT NOT NULL
kind TEXT COLLATE "C" NOT NULL
state TEXT COLLATE "C" NOT NULL
bad_checksum TEXT COLLATE "C"
asked_by TEXT COLLATE "C" NOT NULL
asked_at BIGINT NOT NULL
confirmed_by TEXT COLLATE "C"
confirmed_at BIGINT
ended_at BIGINT
last_error TEXT COLLATE "C"
edition BIGINT NOT NULL DEFAULT 1
new_checksum TEXT COLLATE "C"

-- table replica_files
file_id BIGINT NOT NULL
replica_id BIGINT NOT NULL
size BIGINT NOT NULL
state TEXT COLLATE "C" NOT NULL DEFAULT 'unknown'::text
presence TEXT COLLATE "C" NOT NULL DEFAULT 'unknown'::text
verdict TEXT COLLATE "C" NOT NULL DEFAULT 'unknown'::text
checksum TEXT COLLATE "C"
attempts BIGINT NOT NULL DEFAULT 0
last_error TEXT COLLATE "C"
listed_at BIGINT
checked_at BIGINT
changed_at BIGINT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table replica_places
replica_id BIGINT NOT NULL
place TEXT COLLATE "C" NOT NULL
marked_at BIGINT NOT NULL

-- table replica_totals
replica_id BIGINT NOT NULL
state TEXT COLLATE "C" NOT NULL
presence TEXT COLLATE "C" NOT NULL
verdict TEXT COLLATE "C" NOT NULL
slot BIGINT NOT NULL
files BIGINT NOT NULL
bytes BIGINT NOT NULL

-- table replicas
id BIGINT NOT NULL IDENTITY
name TEXT COLLATE "C" NOT NULL
kind TEXT COLLATE "C" NOT NULL
created_at BIGINT NOT NULL
listed_at BIGINT
checked_at BIGINT
edition BIGINT NOT NULL DEFAULT 1
away TEXT COLLATE "C"

-- table runs
harvest_id BIGINT NOT NULL
number BIGINT NOT NULL
due_at BIGINT NOT NULL
planned_at BIGINT NOT NULL
configurations BIGINT NOT NULL
left_out TEXT NOT NULL
skipped BIGINT NOT NULL
jobs BIGINT NOT NULL
schedule TEXT
comments TEXT NOT NULL
audience TEXT NOT NULL
traps TEXT NOT NULL
dedup_jobs TEXT NOT NULL

-- table schedules
id BIGINT NOT NULL IDENTITY
name TEXT COLLATE "C" NOT NULL
body TEXT NOT NULL
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table seed_lists
id BIGINT NOT NULL IDENTITY
domain_id BIGINT NOT NULL
name TEXT COLLATE "C" NOT NULL
comments TEXT NOT NULL DEFAULT ''::text
seeds TEXT NOT NULL
active TEXT
active_count BIGINT NOT NULL
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table sessions
id TEXT COLLATE "C" NOT NULL
user_id TEXT COLLATE "C" NOT NULL
hash TEXT COLLATE "C" NOT NULL
csrf_hash TEXT COLLATE "C" NOT NULL
created_at BIGINT NOT NULL
expires_at BIGINT NOT NULL
last_seen_at BIGINT NOT NULL

-- table stray_files
replica_id BIGINT NOT NULL
name TEXT COLLATE "C" NOT NULL
size BIGINT NOT NULL
seen_at BIGINT NOT NULL

-- table template_versions
template_id BIGINT NOT NULL
version BIGINT NOT NULL
text TEXT NOT NULL
created_at BIGINT NOT NULL
created_by TEXT NOT NULL

-- table templates
id BIGINT NOT NULL IDENTITY
name TEXT COLLATE "C" NOT NULL
version BIGINT NOT NULL
active BIGINT NOT NULL DEFAULT 1
comments TEXT NOT NULL DEFAULT ''::text
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL

-- table tokens
id TEXT COLLATE "C" NOT NULL
user_id TEXT COLLATE "C" NOT NULL
name TEXT NOT NULL
hash TEXT COLLATE "C" NOT NULL
created_at BIGINT NOT NULL
expires_at BIGINT
last_used_at BIGINT
revoked_at BIGINT
edition BIGINT NOT NULL DEFAULT 1

-- table trap_lists
id BIGINT NOT NULL IDENTITY
name TEXT COLLATE "C" NOT NULL
description TEXT NOT NULL DEFAULT ''::text
active BIGINT NOT NULL
expressions TEXT NOT NULL
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table users
id TEXT COLLATE "C" NOT NULL
name TEXT COLLATE "C" NOT NULL
role TEXT COLLATE "C" NOT NULL
password_hash TEXT
disabled_at BIGINT
created_at BIGINT NOT NULL
changed_at BIGINT NOT NULL
changed_by TEXT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

-- table waiting_deposits
harvester TEXT COLLATE "C" NOT NULL
folder TEXT COLLATE "C" NOT NULL
job_id BIGINT NOT NULL
files BIGINT NOT NULL
bytes BIGINT NOT NULL
reason TEXT COLLATE "C"
since BIGINT NOT NULL
updated_at BIGINT NOT NULL
claim_token BIGINT

-- table work
id TEXT COLLATE "C" NOT NULL
kind TEXT COLLATE "C" NOT NULL
key TEXT COLLATE "C" NOT NULL
payload TEXT NOT NULL
priority BIGINT NOT NULL
due_at BIGINT NOT NULL
lease_owner TEXT
lease_token BIGINT NOT NULL DEFAULT 0
attempts BIGINT NOT NULL DEFAULT 0
attempts_max BIGINT NOT NULL
last_error TEXT
outcome TEXT COLLATE "C"
ended_at BIGINT
created_at BIGINT NOT NULL
updated_at BIGINT NOT NULL
edition BIGINT NOT NULL DEFAULT 1

CREATE UNIQUE INDEX access_rules_by_key ON access_rules USING btree (key) WHERE (key IS NOT NULL);
CREATE UNIQUE INDEX access_rules_pkey ON access_rules USING btree (id);
CREATE UNIQUE INDEX access_rules_removed_pkey ON access_rules_removed USING btree (key);
CREATE UNIQUE INDEX archive_identity_pkey ON archive_identity USING btree (one);
CREATE INDEX audit_log_by_who ON audit_log USING btree (who, number);
CREATE INDEX audit_log_of_subject ON audit_log USING btree (subject, number);
CREATE UNIQUE INDEX audit_log_pkey ON audit_log USING btree (number);
CREATE INDEX audits_by_start ON audits USING btree (started_at);
CREATE UNIQUE INDEX audits_pkey ON audits USING btree (id);
CREATE UNIQUE INDEX audits_running ON audits USING btree (replica_id, kind) WHERE (state = 'running'::text);
CREATE UNIQUE INDEX channels_default ON channels USING btree (kind) WHERE (is_default = 1);
CREATE UNIQUE INDEX channels_name_key ON channels USING btree (name);
CREATE UNIQUE INDEX channels_pkey ON channels USING btree (id);
CREATE UNIQUE INDEX collection_files_by_name ON collection_files USING btree (collection, text_digest(name));
CREATE UNIQUE INDEX collection_files_by_path ON collection_files USING btree (collection, text_digest(path)) WHERE (path IS NOT NULL);
CREATE INDEX collection_files_due ON collection_files USING btree (id) WHERE ((state = ANY (ARRAY['waiting'::text, 'leaving'::text])) OR ((state = 'failed'::text) AND (due_at > 0)));
CREATE INDEX collection_files_failed ON collection_files USING btree (id) WHERE (state = 'failed'::text);
CREATE INDEX collection_files_of_job ON collection_files USING btree (collection, job) WHERE (job IS NOT NULL);
CREATE UNIQUE INDEX collection_files_pkey ON collection_files USING btree (id);
CREATE UNIQUE INDEX collections_pkey ON collections USING btree (name);
CREATE UNIQUE INDEX configuration_credentials_pkey ON configuration_credentials USING btree (configuration_id, credential_id);
CREATE INDEX configuration_credentials_used ON configuration_credentials USING btree (credential_id);
CREATE UNIQUE INDEX configuration_seed_lists_pkey ON configuration_seed_lists USING btree (configuration_id, seed_list_id);
CREATE INDEX configuration_seed_lists_used ON configuration_seed_lists USING btree (seed_list_id);
CREATE UNIQUE INDEX configurations_default ON configurations USING btree (domain_id) WHERE (is_default = 1);
CREATE UNIQUE INDEX configurations_domain_id_name_key ON configurations USING btree (domain_id, name);
CREATE UNIQUE INDEX configurations_pkey ON configurations USING btree (id);
CREATE UNIQUE INDEX credentials_domain_id_name_key ON credentials USING btree (domain_id, name);
CREATE UNIQUE INDEX credentials_pkey ON credentials USING btree (id);
CREATE UNIQUE INDEX custom_fields_pkey ON custom_fields USING btree (noun, name);
CREATE INDEX domain_history_domain ON domain_history USING btree (domain_id, id);
CREATE UNIQUE INDEX domain_history_job ON domain_history USING btree (job_id, configuration_id);
CREATE UNIQUE INDEX domain_history_pkey ON domain_history USING btree (id);
CREATE INDEX domain_history_run ON domain_history USING btree (harvest_id, run);
CREATE INDEX domains_aliases ON domains USING btree (alias_of) WHERE (alias_of IS NOT NULL);
CREATE UNIQUE INDEX domains_name_key ON domains USING btree (name);
CREATE UNIQUE INDEX domains_pkey ON domains USING btree (id);
CREATE UNIQUE INDEX files_name_key ON files USING btree (name);
CREATE UNIQUE INDEX files_pkey ON files USING btree (id);
CREATE INDEX files_unstored ON files USING btree (id) WHERE (stored_at IS NULL);
CREATE INDEX findings_closed ON findings USING btree (closed_at) WHERE (closed_at IS NOT NULL);
CREATE UNIQUE INDEX findings_open ON findings USING btree (kind, subject) WHERE (closed_at IS NULL);
CREATE UNIQUE INDEX findings_pkey ON findings USING btree (id);
CREATE INDEX findings_unannounced ON findings USING btree (id) WHERE (announced_at IS NULL);
CREATE UNIQUE INDEX grange_migrations_pkey ON grange_migrations USING btree (number);
CREATE UNIQUE INDEX harvest_configurations_pkey ON harvest_configurations USING btree (harvest_id, configuration_id);
CREATE INDEX harvest_configurations_used ON harvest_configurations USING btree (configuration_id);
CREATE INDEX harvest_definitions_due ON harvest_definitions USING btree (kind, next_at) WHERE ((active = 1) AND (next_at IS NOT NULL));
CREATE UNIQUE INDEX harvest_definitions_name_key ON harvest_definitions USING btree (name);
CREATE UNIQUE INDEX harvest_definitions_pkey ON harvest_definitions USING btree (id);
CREATE UNIQUE INDEX harvesters_pkey ON harvesters USING btree (name);
CREATE UNIQUE INDEX index_owners_pkey ON index_owners USING btree (collection);
CREATE INDEX job_configurations_domain ON job_configurations USING btree (domain_id, job_id);
CREATE UNIQUE INDEX job_configurations_pkey ON job_configurations USING btree (job_id, configuration_id);
CREATE UNIQUE INDEX job_orders_pkey ON job_orders USING btree (job_id);
CREATE UNIQUE INDEX job_progress_pkey ON job_progress USING btree (job_id);
CREATE UNIQUE INDEX job_progress_samples_pkey ON job_progress_samples USING btree (job_id, at);
CREATE INDEX jobs_by_status ON jobs USING btree (status, id);
CREATE INDEX jobs_of_run ON jobs USING btree (harvest_id, run);
CREATE UNIQUE INDEX jobs_pkey ON jobs USING btree (id);
CREATE INDEX jobs_running ON jobs USING btree (id) WHERE (status = ANY (ARRAY['submitted'::text, 'started'::text]));
CREATE INDEX jobs_to_claim ON jobs USING btree (channel, id) WHERE (status = 'new'::text);
CREATE UNIQUE INDEX log_checkpoints_pkey ON log_checkpoints USING btree (size);
CREATE UNIQUE INDEX log_head_pkey ON log_head USING btree (id);
CREATE UNIQUE INDEX log_key_vouches_pkey ON log_key_vouches USING btree (public_key, by_key);
CREATE UNIQUE INDEX log_keys_pkey ON log_keys USING btree (public_key);
CREATE INDEX log_leaves_of_file ON log_leaves USING btree (name, number) WHERE (name IS NOT NULL);
CREATE UNIQUE INDEX log_leaves_pkey ON log_leaves USING btree (number);
CREATE UNIQUE INDEX nodes_pkey ON nodes USING btree (id);
CREATE UNIQUE INDEX oai_folders_pkey ON oai_folders USING btree (repository_id, path);
CREATE UNIQUE INDEX oai_formats_pkey ON oai_formats USING btree (id);
CREATE UNIQUE INDEX oai_formats_text ON oai_formats USING btree (oai_text_digest(prefix), oai_text_digest(namespace), oai_text_digest(schema));
CREATE INDEX oai_history_failed ON oai_history USING btree (id) WHERE (outcome = ANY (ARRAY['failed'::text, 'incomplete'::text]));
CREATE INDEX oai_history_job ON oai_history USING btree (job_id, id);
CREATE UNIQUE INDEX oai_history_pkey ON oai_history USING btree (id);
CREATE INDEX oai_history_repository ON oai_history USING btree (repository_id, id);
CREATE INDEX oai_jobs_due ON oai_jobs USING btree (due_at, id) WHERE (status = 'scheduled'::text);
CREATE UNIQUE INDEX oai_jobs_one ON oai_jobs USING btree (repository_id) WHERE (status <> 'scheduled'::text);
CREATE UNIQUE INDEX oai_jobs_pkey ON oai_jobs USING btree (id);
CREATE UNIQUE INDEX oai_progress_list ON oai_progress USING btree (repository_id, text_digest(prefix), text_digest(set_spec));
CREATE UNIQUE INDEX oai_record_sets_spec ON oai_record_sets USING btree (record_id, oai_text_digest(spec));
CREATE INDEX oai_records_changed ON oai_records USING btree (prefix, changed_at, id);
CREATE UNIQUE INDEX oai_records_identifier ON oai_records USING btree (repository_id, prefix, substr(identifier, 1, 200), oai_text_digest(identifier));
CREATE UNIQUE INDEX oai_records_pkey ON oai_records USING btree (id);
CREATE INDEX oai_recurring_jobs_new ON oai_recurring_jobs USING btree (id) WHERE (state = 'new'::text);
CREATE UNIQUE INDEX oai_recurring_jobs_pkey ON oai_recurring_jobs USING btree (id);
CREATE UNIQUE INDEX oai_repositories_base_url_key ON oai_repositories USING btree (base_url);
CREATE UNIQUE INDEX oai_repositories_pkey ON oai_repositories USING btree (id);
CREATE UNIQUE INDEX oai_repository_formats_pkey ON oai_repository_formats USING btree (repository_id, format_id);
CREATE UNIQUE INDEX oai_sets_spec ON oai_sets USING btree (repository_id, oai_text_digest(spec));
CREATE INDEX repairs_by_time ON repairs USING btree (asked_at);
CREATE UNIQUE INDEX repairs_open ON repairs USING btree (file_id, replica_id) WHERE (state = ANY (ARRAY['waiting'::text, 'confirmed'::text]));
CREATE UNIQUE INDEX repairs_pkey ON repairs USING btree (id);
CREATE INDEX replica_files_corrupt ON replica_files USING btree (replica_id, file_id) WHERE (verdict = 'corrupt'::text);
CREATE INDEX replica_files_missing ON replica_files USING btree (replica_id, file_id) WHERE (presence = 'missing'::text);
CREATE UNIQUE INDEX replica_files_pkey ON replica_files USING btree (file_id, replica_id);
CREATE INDEX replica_files_unproven ON replica_files USING btree (replica_id, file_id) WHERE (state <> 'upload_completed'::text);
CREATE UNIQUE INDEX replica_places_pkey ON replica_places USING btree (replica_id, place);
CREATE UNIQUE INDEX replica_totals_pkey ON replica_totals USING btree (replica_id, state, presence, verdict, slot);
CREATE UNIQUE INDEX replicas_name_key ON replicas USING btree (name);
CREATE UNIQUE INDEX replicas_pkey ON replicas USING btree (id);
CREATE UNIQUE INDEX runs_pkey ON runs USING btree (harvest_id, number);
CREATE UNIQUE INDEX schedules_name_key ON schedules USING btree (name);
CREATE UNIQUE INDEX schedules_pkey ON schedules USING btree (id);
CREATE UNIQUE INDEX seed_lists_domain_id_name_key ON seed_lists USING btree (domain_id, name);
CREATE UNIQUE INDEX seed_lists_pkey ON seed_lists USING btree (id);
CREATE INDEX sessions_by_end ON sessions USING btree (expires_at);
CREATE UNIQUE INDEX sessions_hash_key ON sessions USING btree (hash);
CREATE INDEX sessions_of_user ON sessions USING btree (user_id);
CREATE UNIQUE INDEX sessions_pkey ON sessions USING btree (id);
CREATE INDEX stray_files_by_name ON stray_files USING btree (name);
CREATE UNIQUE INDEX stray_files_pkey ON stray_files USING btree (replica_id, name);
CREATE UNIQUE INDEX template_versions_pkey ON template_versions USING btree (template_id, version);
CREATE UNIQUE INDEX templates_name_key ON templates USING btree (name);
CREATE UNIQUE INDEX templates_pkey ON templates USING btree (id);
CREATE UNIQUE INDEX tokens_hash_key ON tokens USING btree (hash);
CREATE INDEX tokens_of_user ON tokens USING btree (user_id);
CREATE UNIQUE INDEX tokens_pkey ON tokens USING btree (id);
CREATE UNIQUE INDEX trap_lists_name_key ON trap_lists USING btree (name);
CREATE UNIQUE INDEX trap_lists_pkey ON trap_lists USING btree (id);
CREATE UNIQUE INDEX users_name_key ON users USING btree (name);
CREATE UNIQUE INDEX users_pkey ON users USING btree (id);
CREATE INDEX waiting_deposits_of_job ON waiting_deposits USING btree (job_id);
CREATE UNIQUE INDEX waiting_deposits_pkey ON waiting_deposits USING btree (harvester, folder);
CREATE INDEX work_ended ON work USING btree (kind, outcome, ended_at) WHERE (outcome IS NOT NULL);
CREATE UNIQUE INDEX work_key_kind_key ON work USING btree (key, kind);
CREATE UNIQUE INDEX work_pkey ON work USING btree (id);
CREATE INDEX work_to_claim ON work USING btree (kind, priority DESC, id) WHERE (outcome IS NULL);
