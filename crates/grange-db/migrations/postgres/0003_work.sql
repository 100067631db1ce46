-- Everything that has to be done by somebody, once.
-- Open while outcome is absent: claimed if it has a lease_owner, else ready. due_at is when somebody may take it: the
-- earliest start while it is ready, the end of the lease while it is claimed. Ended as outcome 'done' or 'failed'.
-- lease_token grows with every claim and fences late claimers off.
CREATE TABLE work (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind         TEXT COLLATE "C" NOT NULL,
    key          TEXT COLLATE "C" NOT NULL,
    payload      TEXT             NOT NULL,
    priority     BIGINT           NOT NULL,
    due_at       BIGINT           NOT NULL,
    lease_owner  TEXT,
    lease_token  BIGINT           NOT NULL DEFAULT 0,
    attempts     BIGINT           NOT NULL DEFAULT 0,
    attempts_max BIGINT           NOT NULL,
    last_error   TEXT,
    outcome      TEXT COLLATE "C",
    ended_at     BIGINT,
    created_at   BIGINT           NOT NULL,
    updated_at   BIGINT           NOT NULL,
    edition      BIGINT           NOT NULL DEFAULT 1,
    -- In this order, so that no planner takes it for the order of claiming.
    UNIQUE (key, kind)
) WITH (
    -- Room for a claim's new version on the page of the old one, so that no index has to be touched.
    fillfactor = 70,
    -- A queue leaves dead rows at its head, which every claim has to pass until they are vacuumed.
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 500
);
-- The order of claiming: ids are made in order of time, so the smaller is the older. No index has a column that a
-- claim changes.
CREATE INDEX work_to_claim ON work (kind, priority DESC, id) WHERE outcome IS NULL;
-- Counting what has ended, and deleting it when it is old.
CREATE INDEX work_ended ON work (kind, outcome, ended_at) WHERE outcome IS NOT NULL;
