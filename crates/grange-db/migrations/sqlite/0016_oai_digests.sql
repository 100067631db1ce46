-- By which rules the records of the last whole harvest were judged; '' means none. For other rules next_from does not hold.
ALTER TABLE oai_progress ADD COLUMN rules TEXT NOT NULL DEFAULT '';

-- Text of repositories has any length. Rows of indexes here have, too; on PostgreSQL they hold digests of it.

-- Incomplete harvests need a person as failed ones do.
DROP INDEX oai_history_failed;
CREATE INDEX oai_history_failed ON oai_history (id) WHERE outcome IN ('failed', 'incomplete');
