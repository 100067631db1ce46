-- Drawn from the migrations; do not edit.

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

-- table grange_migrations
number BIGINT NOT NULL
name TEXT NOT NULL
checksum TEXT NOT NULL
applied_at BIGINT NOT NULL

-- table log_checkpoints
size BIGINT NOT NULL
at BIGINT NOT NULL
root TEXT COLLATE "C" NOT NULL
public_key TEXT COLLATE "C" NOT NULL
signature TEXT COLLATE "C" NOT NULL

-- table log_head
id BIGINT NOT NULL
size BIGINT NOT NULL

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

-- table sessions
id TEXT COLLATE "C" NOT NULL
user_id TEXT COLLATE "C" NOT NULL
hash TEXT COLLATE "C" NOT NULL
csrf_hash TEXT COLLATE "C" NOT NULL
created_at BIGINT NOT NULL
expires_at BIGINT NOT NULL
last_seen_at BIGINT NOT NULL

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

CREATE INDEX audit_log_by_who ON audit_log USING btree (who, number);
CREATE INDEX audit_log_of_subject ON audit_log USING btree (subject, number);
CREATE UNIQUE INDEX audit_log_pkey ON audit_log USING btree (number);
CREATE INDEX audits_by_start ON audits USING btree (started_at);
CREATE UNIQUE INDEX audits_pkey ON audits USING btree (id);
CREATE UNIQUE INDEX audits_running ON audits USING btree (replica_id, kind) WHERE (state = 'running'::text);
CREATE UNIQUE INDEX files_name_key ON files USING btree (name);
CREATE UNIQUE INDEX files_pkey ON files USING btree (id);
CREATE UNIQUE INDEX grange_migrations_pkey ON grange_migrations USING btree (number);
CREATE UNIQUE INDEX log_checkpoints_pkey ON log_checkpoints USING btree (size);
CREATE UNIQUE INDEX log_head_pkey ON log_head USING btree (id);
CREATE INDEX log_leaves_of_file ON log_leaves USING btree (name, number) WHERE (name IS NOT NULL);
CREATE UNIQUE INDEX log_leaves_pkey ON log_leaves USING btree (number);
CREATE UNIQUE INDEX nodes_pkey ON nodes USING btree (id);
CREATE INDEX repairs_by_time ON repairs USING btree (asked_at);
CREATE UNIQUE INDEX repairs_open ON repairs USING btree (file_id, replica_id) WHERE (state = ANY (ARRAY['waiting'::text, 'confirmed'::text]));
CREATE UNIQUE INDEX repairs_pkey ON repairs USING btree (id);
CREATE INDEX replica_files_corrupt ON replica_files USING btree (replica_id, file_id) WHERE (verdict = 'corrupt'::text);
CREATE INDEX replica_files_missing ON replica_files USING btree (replica_id, file_id) WHERE (presence = 'missing'::text);
CREATE UNIQUE INDEX replica_files_pkey ON replica_files USING btree (file_id, replica_id);
CREATE INDEX replica_files_unproven ON replica_files USING btree (replica_id, file_id) WHERE (state <> 'upload_completed'::text);
CREATE UNIQUE INDEX replica_totals_pkey ON replica_totals USING btree (replica_id, state, presence, verdict, slot);
CREATE UNIQUE INDEX replicas_name_key ON replicas USING btree (name);
CREATE UNIQUE INDEX replicas_pkey ON replicas USING btree (id);
CREATE INDEX sessions_by_end ON sessions USING btree (expires_at);
CREATE UNIQUE INDEX sessions_hash_key ON sessions USING btree (hash);
CREATE INDEX sessions_of_user ON sessions USING btree (user_id);
CREATE UNIQUE INDEX sessions_pkey ON sessions USING btree (id);
CREATE UNIQUE INDEX tokens_hash_key ON tokens USING btree (hash);
CREATE INDEX tokens_of_user ON tokens USING btree (user_id);
CREATE UNIQUE INDEX tokens_pkey ON tokens USING btree (id);
CREATE UNIQUE INDEX users_name_key ON users USING btree (name);
CREATE UNIQUE INDEX users_pkey ON users USING btree (id);
CREATE INDEX work_ended ON work USING btree (kind, outcome, ended_at) WHERE (outcome IS NOT NULL);
CREATE UNIQUE INDEX work_key_kind_key ON work USING btree (key, kind);
CREATE UNIQUE INDEX work_pkey ON work USING btree (id);
CREATE INDEX work_to_claim ON work USING btree (kind, priority DESC, id) WHERE (outcome IS NULL);
