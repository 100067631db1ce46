//! What can be chosen, by fixed names. The numbers in the comments are those of the Illinois harvester's parameters.

use crate::nearest::named;

named! {
    /// How a list is taken.
    Method, "harvest method" {
        /// ListRecords, the records in the list (0).
        ListRecords = "list-records",
        /// ListIdentifiers, then GetRecord for each: slower, but a bad record spoils nothing else (1).
        ListIdentifiers = "list-identifiers",
    }
}

named! {
    /// How strictly records are judged.
    Validation, "validation level" {
        /// Everything must be well-formed, else the harvest fails (0).
        Strict = "strict",
        /// And right by the XML Schema of the format (1).
        VeryStrict = "very-strict",
        /// Bad records are skipped with a warning, and the harvest goes on (2).
        Loose = "loose",
    }
}

named! {
    /// What is done with the file of a record that its repository deleted. The row says "deleted" in any case.
    DeletedPolicy, "policy for deleted records" {
        /// The file goes.
        Remove = "remove",
        /// The file stays where it is.
        Keep = "keep",
        /// The file moves below `deleted/`.
        Mark = "mark",
    }
}

named! {
    /// What a repository promises about deleted records.
    DeletedSupport, "support for deleted records" {
        /// It never tells: only a full harvest finds out.
        No = "no",
        /// It may tell, and may forget.
        Transient = "transient",
        /// It always tells.
        Persistent = "persistent",
    }
}

named! {
    /// How fine a repository's dates are.
    Granularity, "granularity" {
        Day = "day",
        Second = "second",
    }
}

named! {
    /// Windows of dates that a long list is cut into, for servers that fail on long lists.
    Slices, "size of windows" {
        /// One list.
        Whole = "whole",
        Month = "month",
        Day = "day",
    }
}

named! {
    /// How a harvest, or a record of it, ended.
    Outcome, "outcome" {
        Success = "success",
        Failed = "failed",
        /// Everything that came is kept, but the list is known to lack records: the next harvest asks for the same again.
        Incomplete = "incomplete",
        /// A line about one bad record or page.
        Warning = "warning",
    }
}

impl Granularity {
    /// One step of a datestamp, in seconds.
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Day => 86_400,
            Self::Second => 1,
        }
    }
}
