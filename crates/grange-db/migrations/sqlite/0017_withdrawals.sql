-- A deposit of which no replica has the bytes can be withdrawn: its rows go, and are not counted any more.
CREATE TRIGGER replica_files_removed AFTER DELETE ON replica_files BEGIN
    INSERT INTO replica_totals VALUES (OLD.replica_id, OLD.state, OLD.presence, OLD.verdict, 0, -1, -OLD.size)
    ON CONFLICT DO UPDATE SET files = files + excluded.files, bytes = bytes + excluded.bytes;
END;

-- How many states a finding stands for, as it was last seen: one that stands for more than before is announced again.
ALTER TABLE findings ADD COLUMN states INTEGER NOT NULL DEFAULT 1;
