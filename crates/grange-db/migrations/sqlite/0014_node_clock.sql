-- How far the clock of a node's machine is ahead of the database's, in milliseconds; negative when it is behind.
ALTER TABLE nodes ADD COLUMN clock_ahead_ms INTEGER;
