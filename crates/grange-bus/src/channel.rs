//! One channel: its name taken apart, its kind, and the way back from the name.
//!
//! ```text
//! <environment>_<prefix>_<replica | COMMON>[_<machine>][_<instance>]
//!  PROD         _THE_BAMON_TWO
//!  PROD         _THIS_REPOS_CLIENT_COMMON   _130_226_258_7_HCA_HIGH
//! ```
//!
//! This is the order of the design documents. Newer NetarchiveSuite code puts the replica before the prefix and
//! marks a topic by a suffix `_TOPIC`; Grange takes the documents' order and their rule that only a prefix
//! beginning `ALL_` makes a topic. A topic that NetarchiveSuite names otherwise (HARVESTER_STATUS) gets an `ALL_`.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::channels::{Row, TABLE, Where};
use crate::error::Error;
use crate::part;

/// Bytes of a whole name. A PostgreSQL notification carries name and message in less than 8,000 bytes; the
/// longest name Grange makes of real host and node names is under 120.
pub const NAME_BYTES_MAX: usize = 200;

/// Stands where the replica would, on a channel that belongs to no replica.
const COMMON: &str = "COMMON";

/// How a message on the channel is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One of the listeners takes it.
    Queue,
    /// Every listener gets a copy.
    Topic,
}

/// What the first word of the prefix promises about who listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Convention {
    /// `THE_`: the only one of its sort in the system.
    Singleton,
    /// `THIS_`: one uniquely named instance out of many.
    Instance,
    /// `ANY_`: many listen, whoever is free takes it.
    Competing,
    /// `ALL_`: all who listen.
    Everyone,
    /// The old names without a word in front (ERROR, MONITOR, INDEX_SERVER, …): queues.
    Plain,
}

/// One running application of one kind: `HCA_HIGH` is the HarvestControllerApplication with the id HIGH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    application: String,
    id: String,
}

impl Instance {
    /// Abbreviates the application as the documents do, to the capital letters of its name
    /// (`IndexServerApplication` → `ISA`); a name without capitals, as Grange's roles have, is written whole in
    /// capitals (`harvester` → `HARVESTER`). The id tells several on one machine apart and may be empty.
    pub fn new(application: &str, id: &str) -> Result<Self, Error> {
        let capitals: String = application.chars().filter(char::is_ascii_uppercase).collect();
        let application = if capitals.is_empty() { application.to_ascii_uppercase() } else { capitals };
        if application.is_empty() || !application.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(Error::name(&application, "an application is named with letters and digits"));
        }
        Ok(Self { application, id: id.trim().to_owned() })
    }

    pub fn application(&self) -> &str {
        &self.application
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    fn encode(&self) -> String {
        if self.id.is_empty() {
            self.application.clone()
        } else {
            format!("{}_{}", self.application, part::encode(&self.id))
        }
    }

    fn decode(text: &str) -> Option<Self> {
        let (application, id) = text.split_once('_').unwrap_or((text, ""));
        let abbreviated = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
        (!application.is_empty() && application.bytes().all(abbreviated)).then_some(())?;
        Some(Self { application: application.to_owned(), id: part::decode(id)? })
    }
}

/// What distinguishes channels of one row of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub lane: Option<String>,
    pub replica: Option<String>,
    pub at: Option<(String, Instance)>,
}

/// A place to publish on and listen to. Made by [`crate::Channels`] or read back by [`Channel::parse`].
#[derive(Clone)]
pub struct Channel {
    name: String,
    row: &'static Row,
    environment: String,
    parts: Parts,
}

impl Channel {
    pub(crate) fn make(environment: &str, row: &'static Row, parts: Parts) -> Result<Self, Error> {
        let mut name = format!("{environment}_");
        match (row.prefix.split_once('*'), &parts.lane) {
            (Some((head, tail)), Some(lane)) => {
                let lane = named(lane, "a harvest channel")?;
                name.extend([head, &lane, tail]);
            }
            _ => name.push_str(row.prefix),
        }
        name.push('_');
        match &parts.replica {
            Some(replica) if replica == COMMON => {
                return Err(Error::name(replica, "COMMON stands for \"no replica\" and names none"));
            }
            Some(replica) => name.push_str(&named(replica, "a replica")?),
            None => name.push_str(COMMON),
        }
        if let Some((machine, instance)) = &parts.at {
            named(machine, "a machine")?;
            name.extend(["_", &part::encode_machine(machine), "_", &instance.encode()]);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::name(&name, "a channel name has at most 200 bytes"));
        }
        Ok(Self { name, row, environment: environment.to_owned(), parts })
    }

    /// Reads a name that [`crate::Channels`] made; anything else, also a name not in its one proper form, is refused.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let refuse = || Error::name(name, "it is not one of Grange's channels");
        let (environment, rest) = name.split_once('_').ok_or_else(refuse)?;
        let channel = TABLE
            .iter()
            .find_map(|row| {
                let (lane, rest) = row.strip(rest)?;
                let (replica, at) = rest.split_once('_').unwrap_or((rest, ""));
                let replica = if replica == COMMON { None } else { Some(part::decode(replica)?) };
                let at = match (row.place, at) {
                    (Where::Instance, at) => {
                        let (machine, instance) = part::decode_machine(at)?;
                        Some((machine, Instance::decode(instance)?))
                    }
                    (_, "") => None,
                    _ => return None,
                };
                (replica.is_some() == (row.place == Where::Replica)).then_some(())?;
                Self::make(environment, row, Parts { lane, replica, at }).ok()
            })
            .ok_or_else(refuse)?;
        crate::channels::check_environment(environment)?;
        if channel.name == name { Ok(channel) } else { Err(refuse()) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// The row of the table this channel is of; with `*` for the harvest channel. Few in number: fit for a metric.
    pub fn prefix(&self) -> &'static str {
        self.row.prefix
    }

    pub fn kind(&self) -> Kind {
        if self.row.prefix.starts_with("ALL_") { Kind::Topic } else { Kind::Queue }
    }

    pub fn convention(&self) -> Convention {
        match self.row.prefix.split('_').next() {
            Some("THE") => Convention::Singleton,
            Some("THIS") => Convention::Instance,
            Some("ANY") => Convention::Competing,
            Some("ALL") => Convention::Everyone,
            _ => Convention::Plain,
        }
    }

    /// The harvest channel, on the job queues.
    pub fn lane(&self) -> Option<&str> {
        self.parts.lane.as_deref()
    }

    pub fn replica(&self) -> Option<&str> {
        self.parts.replica.as_deref()
    }

    pub fn machine(&self) -> Option<&str> {
        self.parts.at.as_ref().map(|(machine, _)| machine.as_str())
    }

    pub fn instance(&self) -> Option<&Instance> {
        self.parts.at.as_ref().map(|(_, instance)| instance)
    }
}

fn named(text: &str, what: &str) -> Result<String, Error> {
    if text.trim().is_empty() {
        return Err(Error::name(text, &format!("{what} needs a name")));
    }
    Ok(part::encode(text))
}

// The name says it all: two channels are one when their names are.
impl PartialEq for Channel {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Channel {}

impl Hash for Channel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel({})", self.name)
    }
}
