-- Everything that has to be done by somebody, once. state: ready, claimed, done, failed.
-- due_at is when somebody may take the row: the earliest start while it is ready, the end of the lease while it is
-- claimed, absent when nobody may (done, failed). lease_token grows with every claim and fences late claimers off.
CREATE TABLE work (
    id           TEXT    NOT NULL PRIMARY KEY,
    kind         TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    payload      TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    due_at       INTEGER,
    attempts     INTEGER NOT NULL DEFAULT 0,
    attempts_max INTEGER NOT NULL,
    lease_owner  TEXT,
    lease_token  INTEGER NOT NULL DEFAULT 0,
    last_error   TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    edition      INTEGER NOT NULL DEFAULT 1,
    UNIQUE (kind, key)
) STRICT;
-- The order of claiming. due_at rides along so that rows not yet due are passed over without reading them.
CREATE INDEX work_to_claim ON work (kind, priority DESC, created_at, id, due_at) WHERE due_at IS NOT NULL;
-- Leases by their end, to find the dead ones.
CREATE INDEX work_leases ON work (due_at) WHERE state = 'claimed';
-- Counting and listing by state.
CREATE INDEX work_by_state ON work (kind, state);
