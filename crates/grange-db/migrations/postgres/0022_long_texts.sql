-- Sets of repositories and paths of files have lengths of their own, and a row of an index at most 2,704 bytes: indexes hold
-- digests of such text. The conversion is stable only because an encoding could be redefined; that to the database's own is
-- not.
CREATE FUNCTION text_digest(text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.sha256(pg_catalog.convert_to($1, 'UTF8')) $$;

ALTER TABLE oai_progress DROP CONSTRAINT oai_progress_pkey;
CREATE UNIQUE INDEX oai_progress_list ON oai_progress (repository_id, text_digest(prefix), text_digest(set_spec));

-- A name takes as many parts of the path as tell the file from others.
DROP INDEX collection_files_by_path;
CREATE UNIQUE INDEX collection_files_by_path ON collection_files (collection, text_digest(path)) WHERE path IS NOT NULL;
ALTER TABLE collection_files DROP CONSTRAINT collection_files_collection_name_key;
CREATE UNIQUE INDEX collection_files_by_name ON collection_files (collection, text_digest(name));
CREATE OR REPLACE FUNCTION replica_files_verified() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO collection_files (collection, name, size, changed_at)
    SELECT 'archive', f.name, f.size, NEW.changed_at FROM files f
    JOIN replicas r ON r.id = NEW.replica_id AND r.kind = 'bitarchive'
    WHERE f.id = NEW.file_id
    ON CONFLICT (collection, text_digest(name)) DO UPDATE SET after_leaving = 'waiting', size = excluded.size
    WHERE collection_files.state = 'leaving' AND collection_files.after_leaving = 'removed';
    RETURN NULL;
END $$;
