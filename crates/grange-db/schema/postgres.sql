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

-- table grange_migrations
number BIGINT NOT NULL
name TEXT NOT NULL
checksum TEXT NOT NULL
applied_at BIGINT NOT NULL

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
CREATE UNIQUE INDEX grange_migrations_pkey ON grange_migrations USING btree (number);
CREATE UNIQUE INDEX nodes_pkey ON nodes USING btree (id);
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
