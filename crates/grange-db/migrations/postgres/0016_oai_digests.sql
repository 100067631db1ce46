-- By which rules the records of the last whole harvest were judged; '' means none. For other rules next_from does not hold.
ALTER TABLE oai_progress ADD COLUMN rules TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Text of repositories has any length, and a row of an index at most 2,704 bytes: indexes hold digests of such text. The
-- conversion is stable only because an encoding could be redefined; that to the database's own is not.
CREATE FUNCTION oai_text_digest(text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.sha256(pg_catalog.convert_to($1, 'UTF8')) $$;

-- The first letters keep identifiers in order.
ALTER TABLE oai_records DROP CONSTRAINT oai_records_repository_id_prefix_identifier_key;
CREATE UNIQUE INDEX oai_records_identifier
    ON oai_records (repository_id, prefix, substr(identifier, 1, 200), oai_text_digest(identifier));
ALTER TABLE oai_record_sets DROP CONSTRAINT oai_record_sets_pkey;
CREATE UNIQUE INDEX oai_record_sets_spec ON oai_record_sets (record_id, oai_text_digest(spec));
ALTER TABLE oai_sets DROP CONSTRAINT oai_sets_pkey;
CREATE UNIQUE INDEX oai_sets_spec ON oai_sets (repository_id, oai_text_digest(spec));
ALTER TABLE oai_formats DROP CONSTRAINT oai_formats_prefix_namespace_schema_key;
CREATE UNIQUE INDEX oai_formats_text
    ON oai_formats (oai_text_digest(prefix), oai_text_digest(namespace), oai_text_digest(schema));

-- Incomplete harvests need a person as failed ones do.
DROP INDEX oai_history_failed;
CREATE INDEX oai_history_failed ON oai_history (id) WHERE outcome IN ('failed', 'incomplete');
