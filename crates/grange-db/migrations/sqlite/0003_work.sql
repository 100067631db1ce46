-- Everything that has to be done by somebody, once.
-- Open while outcome is absent: claimed if it has a lease_owner, else ready. due_at is when somebody may take it: the
-- earliest start while it is ready, the end of the lease while it is claimed. Ended as outcome 'done' or 'failed'.
-- lease_token grows with every claim and fences late claimers off.
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
-- The order of claiming: ids are made in order of time, so the smaller is the older. No index has a column that a
-- claim changes.
CREATE INDEX work_to_claim ON work (kind, priority DESC, id) WHERE outcome IS NULL;
-- Counting what has ended, and deleting it when it is old.
CREATE INDEX work_ended ON work (kind, outcome, ended_at) WHERE outcome IS NOT NULL;
