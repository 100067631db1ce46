//! A holding: what is known of one file on one replica.

use crate::nearest::named;

named! {
    /// How far the upload of a file to a replica has come.
    UploadState, "state of an upload" {
        /// Nothing was tried yet.
        Unknown = "unknown",
        /// The bytes are on their way, or their arrival is being asked for.
        UploadStarted = "upload_started",
        /// The replica says it has the bytes; its own checksum is being asked for.
        DataUploaded = "data_uploaded",
        /// The replica's own checksum is that of the file.
        UploadCompleted = "upload_completed",
        /// It has not, or it could not be asked. Storing the same bytes again, or the next try, heals it.
        UploadFailed = "upload_failed",
    }
}

named! {
    /// Whether a replica has a file, as its last list said.
    Presence, "presence" {
        Unknown = "unknown",
        Ok = "ok",
        Missing = "missing",
    }
}

named! {
    /// Whether a replica's copy is the file, as the last vote said.
    Verdict, "verdict" {
        /// Never checked, or it contradicts the record and the vote could not say which is wrong.
        Unknown = "unknown",
        /// The replica answers the recorded checksum.
        Ok = "ok",
        /// It does not, and the record has most voices.
        Corrupt = "corrupt",
    }
}

named! {
    /// What is looked at by a check of a replica.
    AuditKind, "kind of check" {
        /// Which files are there, by name and size.
        List = "list",
        /// Every byte: each file is read from the disk and its checksum compared.
        Checksum = "checksum",
        /// Random files, read with a salt that was not known before, compared with another replica.
        Challenge = "challenge",
    }
}

named! {
    /// Where a check stands.
    AuditState, "state of a check" {
        Running = "running",
        Done = "done",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

named! {
    /// What a repair mends.
    RepairKind, "kind of repair" {
        /// The copy is not there: it is made again from a proven one.
        Missing = "missing",
        /// The copy is wrong: it goes to the attic and a proven one takes its place.
        Corrupt = "corrupt",
        /// The copies all contradict the record, and two people decided that it is the record that is wrong.
        Record = "record",
    }
}

named! {
    /// What people decide about a file whose copies contradict its record.
    RepairChoice, "side to keep" {
        /// The record is right: the copies that contradict it are replaced.
        Record = "record",
        /// The copies are right: the checksum that they all answer is recorded.
        Copies = "copies",
    }
}

named! {
    /// Where a repair stands.
    RepairState, "state of a repair" {
        /// It wants a second person's word, or the replica's credential.
        Waiting = "waiting",
        Confirmed = "confirmed",
        Done = "done",
        Failed = "failed",
        /// It waited, and a person took the request back.
        Withdrawn = "withdrawn",
    }
}
