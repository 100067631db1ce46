-- Repairs that were confirmed before confirmed repairs had a row in work: without one nobody would perform them.
INSERT INTO work (id, kind, key, payload, priority, due_at, attempts_max, created_at, updated_at)
SELECT p.id, 'archive.repair', p.id, '{}', 0, 0, 0, COALESCE(p.confirmed_at, p.asked_at), COALESCE(p.confirmed_at, p.asked_at)
FROM repairs p WHERE p.state = 'confirmed'
ON CONFLICT DO NOTHING;

-- What becomes of a row whose captures are being taken out of the index: 'out', kept for the person who asked for it;
-- 'removed', its deposit was withdrawn; 'waiting', and then another deposit took the name.
ALTER TABLE collection_files ADD COLUMN after_leaving TEXT NOT NULL DEFAULT 'out';

DROP TRIGGER replica_files_first_verified;
CREATE TRIGGER replica_files_first_verified AFTER INSERT ON replica_files WHEN NEW.state = 'upload_completed' BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    SELECT 'archive', f.name, f.size, NEW.changed_at FROM files f
    JOIN replicas r ON r.id = NEW.replica_id AND r.kind = 'bitarchive'
    WHERE f.id = NEW.file_id
    ON CONFLICT (collection, name) DO UPDATE SET after_leaving = 'waiting', size = excluded.size
    WHERE state = 'leaving' AND after_leaving = 'removed';
END;
DROP TRIGGER replica_files_verified;
CREATE TRIGGER replica_files_verified AFTER UPDATE OF state ON replica_files
WHEN NEW.state = 'upload_completed' AND OLD.state <> 'upload_completed' BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    SELECT 'archive', f.name, f.size, NEW.changed_at FROM files f
    JOIN replicas r ON r.id = NEW.replica_id AND r.kind = 'bitarchive'
    WHERE f.id = NEW.file_id
    ON CONFLICT (collection, name) DO UPDATE SET after_leaving = 'waiting', size = excluded.size
    WHERE state = 'leaving' AND after_leaving = 'removed';
END;
