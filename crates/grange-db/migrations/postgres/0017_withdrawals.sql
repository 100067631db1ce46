-- A deposit of which no replica has the bytes can be withdrawn: its rows go, and are not counted any more.
CREATE FUNCTION replica_files_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO replica_totals
    SELECT replica_id, state, presence, verdict, pg_backend_pid() % 16, -count(*), -sum(size)
    FROM removed GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (replica_id, state, presence, verdict, slot) DO UPDATE
    SET files = replica_totals.files + excluded.files, bytes = replica_totals.bytes + excluded.bytes;
    RETURN NULL;
END $$;
CREATE TRIGGER replica_files_removed AFTER DELETE ON replica_files REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION replica_files_removed();

-- How many states a finding stands for, as it was last seen: one that stands for more than before is announced again.
ALTER TABLE findings ADD COLUMN states BIGINT NOT NULL DEFAULT 1;
