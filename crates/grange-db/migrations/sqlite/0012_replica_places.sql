-- The id of this archive, which the markers on its replicas bear. One row.
CREATE TABLE archive_identity (
    one          INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    archive      TEXT    NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;

-- The disks, buckets and collections of each replica that have borne its marker. One of them without its marker is not
-- mounted or was emptied; nothing is judged by it and nothing is written to it.
CREATE TABLE replica_places (
    replica_id   INTEGER NOT NULL REFERENCES replicas (id),
    place        TEXT    NOT NULL,
    marked_at    INTEGER NOT NULL,
    PRIMARY KEY (replica_id, place)
) STRICT;

-- Why the replica cannot be used now.
ALTER TABLE replicas ADD COLUMN away TEXT;
