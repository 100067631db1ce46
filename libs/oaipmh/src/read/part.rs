//! Which element of the protocol stands where. Names are compared inside their parent only, so an identifier in a
//! header is never taken for one in a record's metadata.

use crate::Verb;

/// What an open element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Root,
    Verb(Verb),
    Record,
    Header,
    Set,
    Format,
    /// Holds one element of another namespace.
    Container(Container),
    /// Holds text.
    Leaf(Leaf),
    /// Inside a container.
    Foreign,
    /// Nothing of interest.
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    Metadata,
    About,
    SetDescription,
    Description,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    ResponseDate,
    Error,
    Token,
    Identifier,
    Datestamp,
    HeaderSet,
    SetSpec,
    SetName,
    Prefix,
    Schema,
    Namespace,
    RepositoryName,
    BaseUrl,
    ProtocolVersion,
    AdminEmail,
    EarliestDatestamp,
    DeletedRecord,
    Granularity,
    Compression,
}

type Table = &'static [(&'static str, Part)];

const ROOT: Table = &[
    ("ListRecords", Part::Verb(Verb::ListRecords)),
    ("ListIdentifiers", Part::Verb(Verb::ListIdentifiers)),
    ("GetRecord", Part::Verb(Verb::GetRecord)),
    ("Identify", Part::Verb(Verb::Identify)),
    ("ListSets", Part::Verb(Verb::ListSets)),
    ("ListMetadataFormats", Part::Verb(Verb::ListMetadataFormats)),
    ("responseDate", Part::Leaf(Leaf::ResponseDate)),
    ("request", Part::Ignored),
    ("error", Part::Leaf(Leaf::Error)),
    ("resumptionToken", Part::Leaf(Leaf::Token)),
];
const LIST: Table = &[
    ("record", Part::Record),
    ("header", Part::Header),
    ("resumptionToken", Part::Leaf(Leaf::Token)),
    ("set", Part::Set),
    ("metadataFormat", Part::Format),
    // Where the protocol does not put it, but some do.
    ("error", Part::Leaf(Leaf::Error)),
];
const IDENTIFY: Table = &[
    ("repositoryName", Part::Leaf(Leaf::RepositoryName)),
    ("baseURL", Part::Leaf(Leaf::BaseUrl)),
    ("protocolVersion", Part::Leaf(Leaf::ProtocolVersion)),
    ("adminEmail", Part::Leaf(Leaf::AdminEmail)),
    ("earliestDatestamp", Part::Leaf(Leaf::EarliestDatestamp)),
    ("deletedRecord", Part::Leaf(Leaf::DeletedRecord)),
    ("granularity", Part::Leaf(Leaf::Granularity)),
    ("compression", Part::Leaf(Leaf::Compression)),
    ("description", Part::Container(Container::Description)),
];
const RECORD: Table = &[
    ("header", Part::Header),
    ("metadata", Part::Container(Container::Metadata)),
    ("about", Part::Container(Container::About)),
];
const HEADER: Table = &[
    ("identifier", Part::Leaf(Leaf::Identifier)),
    ("datestamp", Part::Leaf(Leaf::Datestamp)),
    ("setSpec", Part::Leaf(Leaf::HeaderSet)),
];
const SET: Table = &[
    ("setSpec", Part::Leaf(Leaf::SetSpec)),
    ("setName", Part::Leaf(Leaf::SetName)),
    ("setDescription", Part::Container(Container::SetDescription)),
];
const FORMAT: Table = &[
    ("metadataPrefix", Part::Leaf(Leaf::Prefix)),
    ("schema", Part::Leaf(Leaf::Schema)),
    ("metadataNamespace", Part::Leaf(Leaf::Namespace)),
];

/// What an element of the protocol's namespace is inside its parent, and whether its name is spelt right.
pub(super) fn child(parent: Part, local: &str) -> (Part, bool) {
    let table = match parent {
        Part::Root => ROOT,
        Part::Verb(Verb::Identify) => IDENTIFY,
        Part::Verb(_) => LIST,
        Part::Record => RECORD,
        Part::Header => HEADER,
        Part::Set => SET,
        Part::Format => FORMAT,
        Part::Container(_) | Part::Leaf(_) | Part::Foreign | Part::Ignored => &[],
    };
    if let Some((_, part)) = table.iter().find(|(name, _)| *name == local) {
        return (*part, true);
    }
    match table.iter().find(|(name, _)| name.eq_ignore_ascii_case(local)) {
        Some((_, part)) => (*part, false),
        None => (Part::Ignored, true),
    }
}
