-- Since when replicas may exist that this database does not know: it was restored, or made again beside replicas that bear
-- markers. Until a rebuild has read every replica, a place without a marker is not taken for a new one.
ALTER TABLE archive_identity ADD COLUMN recovery_pending_since BIGINT;
