//! What is known so far of the answer and of the item being read.

use super::part::{Container, Leaf};
use crate::problem::Problems;
use crate::{
    Datestamp, DeletedRecord, ErrorCode, Granularity, Header, Identify, Item, Kind, MetadataFormat, OaiError,
    Record, ResumptionToken, Set, Verb,
};

/// Errors kept of one answer: a server that repeats itself says nothing new.
const ERRORS_MAX: usize = 64;

/// What stands in a page beside its items.
#[derive(Debug, Default)]
pub(super) struct PageDraft {
    pub(super) response_date: Option<Datestamp>,
    pub(super) verb: Option<Verb>,
    pub(super) token: Option<ResumptionToken>,
    pub(super) errors: Vec<OaiError>,
    pub(super) problems: Problems,
    pub(super) complete: bool,
}

/// The item being read; the fields of the other kinds of item are empty.
#[derive(Debug, Default)]
pub(super) struct ItemDraft {
    /// Where it starts, while there is one.
    pub(super) start: Option<u64>,
    /// It is a record, which carries its own problems.
    pub(super) is_record: bool,
    pub(super) problems: Problems,
    /// Why its content is lost.
    pub(super) lost: Option<Kind>,
    pub(super) header: Header,
    bad_datestamp: bool,
    metadata: Option<String>,
    about: Vec<String>,
    set: Set,
    format: MetadataFormat,
    identify: Identify,
}

impl ItemDraft {
    /// A container's element was read.
    pub(super) fn contains(&mut self, container: Container, xml: String) {
        match container {
            Container::Metadata => _ = self.metadata.get_or_insert(xml),
            Container::About => self.about.push(xml),
            Container::SetDescription => self.set.descriptions.push(xml),
            Container::Description => self.identify.descriptions.push(xml),
        }
    }

    /// The record, and what the protocol finds wrong with it.
    pub(super) fn into_record(mut self, offset: u64) -> Record {
        if let Some(kind) = self.lost {
            self.problems.take();
            self.problems.add(offset, kind);
            self.metadata = None;
            self.about.clear();
        }
        self.check_header(offset);
        if self.metadata.is_none() && !self.header.deleted && self.lost.is_none() {
            self.problems.add(offset, Kind::MissingMetadata);
        }
        Record {
            header: self.header,
            metadata: self.metadata,
            about: self.about,
            offset,
            problems: self.problems.take(),
        }
    }

    fn check_header(&mut self, offset: u64) {
        if self.header.identifier.is_empty() {
            self.problems.add(offset, Kind::MissingIdentifier);
        }
        if self.header.datestamp.is_none() && !self.bad_datestamp {
            self.problems.add(offset, Kind::MissingDatestamp);
        }
    }

    pub(super) fn into_header(mut self, offset: u64, page: &mut Problems) -> Item {
        self.check_header(offset);
        self.hand_over(offset, page);
        Item::Header(self.header)
    }

    pub(super) fn into_set(mut self, offset: u64, page: &mut Problems) -> Item {
        self.hand_over(offset, page);
        Item::Set(self.set)
    }

    pub(super) fn into_format(mut self, offset: u64, page: &mut Problems) -> Item {
        self.hand_over(offset, page);
        Item::MetadataFormat(self.format)
    }

    pub(super) fn into_identify(mut self, offset: u64, page: &mut Problems) -> Item {
        let missing = [
            ("repositoryName", self.identify.repository_name.is_empty()),
            ("baseURL", self.identify.base_url.is_empty()),
            ("protocolVersion", self.identify.protocol_version.is_empty()),
            ("adminEmail", self.identify.admin_emails.is_empty()),
            ("earliestDatestamp", self.identify.earliest_datestamp.is_none()),
            ("granularity", self.identify.granularity.is_none()),
        ];
        for (name, _) in missing.iter().filter(|(_, missing)| *missing) {
            self.problems.add_with(offset, Kind::MissingField, || name);
        }
        self.hand_over(offset, page);
        Item::Identify(Box::new(self.identify))
    }

    /// Gives the problems of an item that is no record to the page.
    fn hand_over(&mut self, offset: u64, page: &mut Problems) {
        if let Some(kind) = self.lost {
            page.add(offset, kind);
            self.set.descriptions.clear();
            self.identify.descriptions.clear();
        }
        for problem in self.problems.take() {
            page.push(problem);
        }
    }
}

/// Attributes of elements that have some of interest.
#[derive(Debug, Default)]
pub(super) struct LeafAttributes {
    pub(super) code: String,
    pub(super) cursor: Option<u64>,
    pub(super) complete_list_size: Option<u64>,
    pub(super) expiration_date: Option<Datestamp>,
}

/// A date, and whether it is of the form it should have.
fn date(text: &str) -> (Option<Datestamp>, bool) {
    match Datestamp::parse(text) {
        Some(date) => (Some(date), true),
        None => (Datestamp::parse_lenient(text), false),
    }
}

/// The text of an element was read. Gives what is wrong with it.
pub(super) fn fill(
    leaf: Leaf,
    text: &str,
    attributes: LeafAttributes,
    page: &mut PageDraft,
    item: &mut ItemDraft,
) -> Option<Kind> {
    let text = text.trim();
    let once = |field: &mut String| {
        // The first one counts, as in every repeated field.
        if field.is_empty() {
            text.clone_into(field);
        }
    };
    let mut wrong = None;
    let mut dated = |field: &mut Option<Datestamp>| {
        let (date, exact) = date(text);
        if !exact {
            wrong = Some(Kind::BadDatestamp);
        }
        *field = field.or(date);
    };
    let filled = |list: &mut Vec<String>| {
        if !text.is_empty() {
            list.push(text.to_owned());
        }
    };
    match leaf {
        Leaf::ResponseDate => dated(&mut page.response_date),
        Leaf::Error => {
            if page.errors.len() < ERRORS_MAX {
                page.errors.push(OaiError::new(ErrorCode::parse(&attributes.code), text));
            }
        }
        Leaf::Token => {
            page.token = Some(ResumptionToken {
                value: text.to_owned(),
                cursor: attributes.cursor,
                complete_list_size: attributes.complete_list_size,
                expiration_date: attributes.expiration_date,
            });
        }
        Leaf::Identifier => once(&mut item.header.identifier),
        Leaf::Datestamp => {
            dated(&mut item.header.datestamp);
            item.bad_datestamp = wrong.is_some();
        }
        Leaf::HeaderSet => filled(&mut item.header.sets),
        Leaf::SetSpec => once(&mut item.set.spec),
        Leaf::SetName => once(&mut item.set.name),
        Leaf::Prefix => once(&mut item.format.prefix),
        Leaf::Schema => once(&mut item.format.schema),
        Leaf::Namespace => once(&mut item.format.namespace),
        Leaf::RepositoryName => once(&mut item.identify.repository_name),
        Leaf::BaseUrl => once(&mut item.identify.base_url),
        Leaf::ProtocolVersion => once(&mut item.identify.protocol_version),
        Leaf::AdminEmail => filled(&mut item.identify.admin_emails),
        Leaf::EarliestDatestamp => dated(&mut item.identify.earliest_datestamp),
        Leaf::DeletedRecord => {
            item.identify.deleted_record = DeletedRecord::parse(text).unwrap_or_default();
        }
        Leaf::Granularity => item.identify.granularity = Granularity::parse(text),
        Leaf::Compression => filled(&mut item.identify.compressions),
    }
    wrong
}
