//! What a repository answers, once read.

use crate::{Datestamp, ErrorCode, Granularity, OaiError, Problem, Verb};

/// What a repository says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identify {
    /// Its name.
    pub repository_name: String,
    /// Its address, as it sees it.
    pub base_url: String,
    /// `2.0`, or whatever it claims.
    pub protocol_version: String,
    /// At least one, by the protocol.
    pub admin_emails: Vec<String>,
    /// A lower bound of all datestamps. Not reliable in practice.
    pub earliest_datestamp: Option<Datestamp>,
    /// What it does with records that are gone.
    pub deleted_record: DeletedRecord,
    /// How fine its datestamps are; `None` if it said nothing that makes sense.
    pub granularity: Option<Granularity>,
    /// Compressions it offers beside identity.
    pub compressions: Vec<String>,
    /// Further containers, each one well-formed standalone element.
    pub descriptions: Vec<String>,
}

/// What a repository does with records that are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeletedRecord {
    /// It says nothing: a removal is seen only by harvesting everything again.
    #[default]
    No,
    /// It may say so, for a while.
    Transient,
    /// It always says so.
    Persistent,
}

impl DeletedRecord {
    /// Reads what Identify says, in any case.
    pub fn parse(text: &str) -> Option<DeletedRecord> {
        [DeletedRecord::No, DeletedRecord::Transient, DeletedRecord::Persistent]
            .into_iter()
            .find(|policy| text.trim().eq_ignore_ascii_case(policy.as_str()))
    }

    /// As Identify writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeletedRecord::No => "no",
            DeletedRecord::Transient => "transient",
            DeletedRecord::Persistent => "persistent",
        }
    }
}

/// A format a repository can give its records in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MetadataFormat {
    /// What requests call it.
    pub prefix: String,
    /// Where its XML Schema is said to be.
    pub schema: String,
    /// The namespace of its root element.
    pub namespace: String,
}

/// A set of records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Set {
    /// Its path, parts joined by colons.
    pub spec: String,
    /// Its name for people.
    pub name: String,
    /// Further containers, each one well-formed standalone element.
    pub descriptions: Vec<String>,
}

/// What a repository says about a record beside its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Header {
    /// The item's name. Empty only where the repository gave none (a [`crate::Kind::MissingIdentifier`]).
    pub identifier: String,
    /// When the record last changed, in this format; `None` where the repository gave nothing that makes sense.
    pub datestamp: Option<Datestamp>,
    /// The sets it is in.
    pub sets: Vec<String>,
    /// The record is gone.
    pub deleted: bool,
}

/// One record of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// What the repository says about it.
    pub header: Header,
    /// The one element inside `metadata`, well-formed by itself: every namespace in scope and used is declared
    /// on it. `None` for deleted records, and where nothing could be saved.
    pub metadata: Option<String>,
    /// The elements inside `about`, each well-formed by itself.
    pub about: Vec<String>,
    /// Where it starts; see [`Problem::offset`].
    pub offset: u64,
    /// What was wrong with it.
    pub problems: Vec<Problem>,
}

impl Record {
    /// The worst of its problems.
    pub fn level(&self) -> Option<crate::Level> {
        self.problems.iter().map(|problem| problem.kind.level()).max()
    }
}

/// The place where an incomplete list goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResumptionToken {
    /// What the next request must say; empty on the last page of a list.
    pub value: String,
    /// How many items came before this page, as claimed. For progress bars only.
    pub cursor: Option<u64>,
    /// How many items the list has, as claimed. For progress bars only.
    pub complete_list_size: Option<u64>,
    /// Until when the token works.
    pub expiration_date: Option<Datestamp>,
}

/// One thing a page holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// Of ListRecords and GetRecord.
    Record(Record),
    /// Of ListIdentifiers.
    Header(Header),
    /// Of ListSets.
    Set(Set),
    /// Of ListMetadataFormats.
    MetadataFormat(MetadataFormat),
    /// Of Identify.
    Identify(Box<Identify>),
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The server's clock when it answered.
    pub response_date: Option<Datestamp>,
    /// The element found in the answer, which should be the verb asked.
    pub verb: Option<Verb>,
    /// What it holds.
    pub items: Vec<T>,
    /// Its token, also when empty.
    pub token: Option<ResumptionToken>,
    /// Errors of the protocol.
    pub errors: Vec<OaiError>,
    /// What was wrong outside of records.
    pub problems: Vec<Problem>,
    /// The answer was OAI-PMH and was read to the end of its root element.
    pub complete: bool,
}

impl<T> Page<T> {
    /// What to ask next, if the list goes on.
    pub fn next_token(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether the repository gave this error.
    pub fn has_error(&self, code: &ErrorCode) -> bool {
        self.errors.iter().any(|error| error.code == *code)
    }

    fn keep<U>(self, mut pick: impl FnMut(T) -> Option<U>) -> Page<U> {
        Page {
            response_date: self.response_date,
            verb: self.verb,
            items: self.items.into_iter().filter_map(&mut pick).collect(),
            token: self.token,
            errors: self.errors,
            problems: self.problems,
            complete: self.complete,
        }
    }
}

impl Page<Item> {
    /// The records of the page.
    pub fn into_records(self) -> Page<Record> {
        self.keep(|item| if let Item::Record(record) = item { Some(record) } else { None })
    }

    /// The headers of the page, of ListIdentifiers.
    pub fn into_headers(self) -> Page<Header> {
        self.keep(|item| if let Item::Header(header) = item { Some(header) } else { None })
    }

    /// The sets of the page.
    pub fn into_sets(self) -> Page<Set> {
        self.keep(|item| if let Item::Set(set) = item { Some(set) } else { None })
    }

    /// The formats of the page.
    pub fn into_formats(self) -> Page<MetadataFormat> {
        self.keep(|item| if let Item::MetadataFormat(format) = item { Some(format) } else { None })
    }

    /// What Identify said: at most one item.
    pub fn into_identify(self) -> Page<Identify> {
        self.keep(|item| if let Item::Identify(identify) = item { Some(*identify) } else { None })
    }
}
