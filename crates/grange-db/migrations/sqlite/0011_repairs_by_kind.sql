-- The checksum that a repair of kind 'record' is to record: what the first person saw is what the second confirms.
ALTER TABLE repairs ADD COLUMN new_checksum TEXT;
