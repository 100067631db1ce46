-- lacking is 1 where lists of the last whole harvest lacked records that exist, or may have. The first such harvest does not
-- move next_from, so that the next one asks for the same again; those behind it move it.
ALTER TABLE oai_progress ADD COLUMN lacking INTEGER NOT NULL DEFAULT 0;
