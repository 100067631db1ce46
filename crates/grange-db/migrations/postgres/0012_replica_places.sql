-- The id of this archive, which the markers on its replicas bear. One row.
CREATE TABLE archive_identity (
    one          BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    archive      TEXT   COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL
);

-- The disks, buckets and collections of each replica that have borne its marker. One of them without its marker is not
-- mounted or was emptied; nothing is judged by it and nothing is written to it.
CREATE TABLE replica_places (
    replica_id   BIGINT NOT NULL REFERENCES replicas (id),
    place        TEXT   COLLATE "C" NOT NULL,
    marked_at    BIGINT NOT NULL,
    PRIMARY KEY (replica_id, place)
);

-- Why the replica cannot be used now.
ALTER TABLE replicas ADD COLUMN away TEXT COLLATE "C";
