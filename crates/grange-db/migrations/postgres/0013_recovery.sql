-- Files that a replica holds and no row of files knows, as the last audit or the look at the start found them. A name
-- that has a row by now is not a stray any more, whatever stands here.
CREATE TABLE stray_files (
    replica_id   BIGINT           NOT NULL REFERENCES replicas (id),
    name         TEXT COLLATE "C" NOT NULL,
    size         BIGINT           NOT NULL,
    seen_at      BIGINT           NOT NULL,
    PRIMARY KEY (replica_id, name)
);
CREATE INDEX stray_files_by_name ON stray_files (name);

-- Files that wait for a replica are few: counted without reading the others.
CREATE INDEX files_unstored ON files (id) WHERE stored_at IS NULL;

-- A file is to be indexed from the moment that one copy with bytes is verified.
INSERT INTO collection_files (collection, name, size, changed_at)
SELECT DISTINCT 'archive', f.name, f.size, f.created_at FROM files f
JOIN replica_files h ON h.file_id = f.id AND h.state = 'upload_completed'
JOIN replicas r ON r.id = h.replica_id AND r.kind = 'bitarchive'
WHERE f.stored_at IS NULL
ON CONFLICT DO NOTHING;
CREATE FUNCTION replica_files_verified() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    SELECT 'archive', f.name, f.size, NEW.changed_at FROM files f
    JOIN replicas r ON r.id = NEW.replica_id AND r.kind = 'bitarchive'
    WHERE f.id = NEW.file_id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER replica_files_first_verified AFTER INSERT ON replica_files
FOR EACH ROW WHEN (NEW.state = 'upload_completed') EXECUTE FUNCTION replica_files_verified();
CREATE TRIGGER replica_files_verified AFTER UPDATE OF state ON replica_files
FOR EACH ROW WHEN (NEW.state = 'upload_completed' AND OLD.state <> 'upload_completed')
EXECUTE FUNCTION replica_files_verified();

-- Job folders whose crawl has ended and whose files are not on every replica yet. files and bytes count what still
-- lies in the folder; reason says why the last attempt failed.
CREATE TABLE waiting_deposits (
    harvester    TEXT COLLATE "C" NOT NULL,
    folder       TEXT COLLATE "C" NOT NULL,
    job_id       BIGINT           NOT NULL,
    files        BIGINT           NOT NULL,
    bytes        BIGINT           NOT NULL,
    reason       TEXT COLLATE "C",
    since        BIGINT           NOT NULL,
    updated_at   BIGINT           NOT NULL,
    PRIMARY KEY (harvester, folder)
);
CREATE INDEX waiting_deposits_of_job ON waiting_deposits (job_id);

-- Access rules are kept beside the bits too, each under a key that no restored database gives to another rule.
ALTER TABLE access_rules ADD COLUMN key TEXT COLLATE "C";
CREATE UNIQUE INDEX access_rules_by_key ON access_rules (key) WHERE key IS NOT NULL;
CREATE TABLE access_rules_removed (
    key          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    removed_at   BIGINT           NOT NULL,
    removed_by   TEXT COLLATE "C" NOT NULL
);
