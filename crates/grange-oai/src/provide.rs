//! The provider's side: what a request wants, and the answer made of what was found. Pure; whoever has the records
//! looks them up in between.

use grange_model::oai::{Format, OaiRecord, RecordStatus};
use jiff::Timestamp;
use oaipmh::write::Envelope;
use oaipmh::{
    Datestamp, DeletedRecord, ErrorCode, Granularity, Header, Identify, MetadataFormat, OaiError, Record,
    Request, ResumptionToken, Selection, Set, Verb,
};

/// A request, understood or not.
#[derive(Debug)]
pub struct Question {
    request: Result<Request, OaiError>,
    now: Timestamp,
    selected: Option<Selected>,
}

/// What has to be looked up for an answer.
#[derive(Debug)]
pub enum Wants {
    /// The answer is an error, or needs nothing.
    Nothing,
    Identify,
    Formats {
        identifier: Option<String>,
    },
    Sets,
    Record {
        identifier: String,
        prefix: String,
    },
    Records(Selected),
}

/// Which records a list is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    pub headers_only: bool,
    pub prefix: String,
    pub set: Option<String>,
    pub from: Option<Timestamp>,
    /// Inclusive, to the second.
    pub until: Option<Timestamp>,
    /// After this record in the order of (changed, number).
    pub after: Option<(Timestamp, i64)>,
    /// Records that came before this page.
    pub cursor: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Listing {
    pub records: Vec<(OaiRecord, Option<String>)>,
    /// The list goes on.
    pub more: bool,
    /// The format, or the item, is known at all.
    pub known: bool,
    pub formats: Vec<Format>,
    pub sets: Vec<(String, String)>,
    pub earliest: Option<Timestamp>,
}

/// Reads the arguments of a request.
pub fn understand(arguments: Vec<(String, String)>, now: Timestamp) -> Question {
    let request = Request::parse(arguments);
    let (request, selected) = match request {
        Ok(request) => match selected(&request) {
            Ok(selected) => (Ok(request), selected),
            Err(error) => (Err(error), None),
        },
        Err(error) => (Err(error), None),
    };
    Question { request, now, selected }
}

fn selected(request: &Request) -> Result<Option<Selected>, OaiError> {
    let of = |selection: &Selection, headers_only| Selected {
        headers_only,
        prefix: selection.metadata_prefix.clone(),
        set: selection.set.clone(),
        from: selection.from.map(Datestamp::timestamp),
        until: selection.until.map(|until| until.last_second().timestamp()),
        after: None,
        cursor: 0,
    };
    match request {
        Request::ListRecords(selection) => Ok(Some(of(selection, false))),
        Request::ListIdentifiers(selection) => Ok(Some(of(selection, true))),
        Request::Resume { verb: verb @ (Verb::ListRecords | Verb::ListIdentifiers), token, .. } => {
            let bad = || OaiError::new(ErrorCode::BadResumptionToken, "this token was not given here");
            Ok(Some(from_token(token, *verb == Verb::ListIdentifiers).ok_or_else(bad)?))
        }
        // All sets come on one page, so no token of theirs was ever given.
        Request::Resume { .. } => {
            Err(OaiError::new(ErrorCode::BadResumptionToken, "this token was not given here"))
        }
        _ => Ok(None),
    }
}

impl Question {
    pub fn wants(&self) -> Wants {
        match (&self.request, &self.selected) {
            (Err(_), _) => Wants::Nothing,
            (Ok(_), Some(selected)) => Wants::Records(selected.clone()),
            (Ok(Request::Identify), None) => Wants::Identify,
            (Ok(Request::ListMetadataFormats { identifier }), None) => {
                Wants::Formats { identifier: identifier.clone() }
            }
            (Ok(Request::ListSets), None) => Wants::Sets,
            (Ok(Request::GetRecord { identifier, metadata_prefix }), None) => {
                Wants::Record { identifier: identifier.clone(), prefix: metadata_prefix.clone() }
            }
            (Ok(_), None) => Wants::Nothing,
        }
    }

    /// The answer, in XML.
    pub fn answer(self, base_url: &str, contact: &str, found: Listing) -> String {
        let response_date = Datestamp::from_timestamp(self.now, Granularity::Second);
        let envelope = |request| Envelope { base_url, response_date, request };
        let request = match &self.request {
            Ok(request) => request,
            Err(error) => return envelope(None).errors(std::slice::from_ref(error)),
        };
        let answer = envelope(Some(request));
        let error = |code, text: &str| answer.errors(&[OaiError::new(code, text)]);
        if let Some(selected) = &self.selected {
            if !found.known {
                return error(ErrorCode::CannotDisseminateFormat, "no record is held in this format");
            }
            if found.records.is_empty() && selected.cursor == 0 {
                return error(ErrorCode::NoRecordsMatch, "there are none");
            }
            let next = next_token(selected, &found);
            let records: Vec<_> = found.records.into_iter().map(record).collect();
            return if selected.headers_only {
                answer.identifiers(records.iter().map(|record| &record.header), next.as_ref())
            } else {
                answer.records(&records, next.as_ref())
            };
        }
        match request {
            Request::Identify => answer.identify(&identify(base_url, contact, found.earliest)),
            Request::ListMetadataFormats { identifier } => {
                if found.formats.is_empty() && identifier.is_some() {
                    return error(ErrorCode::IdDoesNotExist, "there is no such item");
                }
                let format = |format: Format| MetadataFormat {
                    prefix: format.prefix,
                    schema: format.schema,
                    namespace: format.namespace,
                };
                answer.formats(&found.formats.into_iter().map(format).collect::<Vec<_>>())
            }
            Request::ListSets if found.sets.is_empty() => {
                error(ErrorCode::NoSetHierarchy, "there are no sets")
            }
            Request::ListSets => {
                let set = |(spec, name)| Set { spec, name, descriptions: Vec::new() };
                answer.sets(&found.sets.into_iter().map(set).collect::<Vec<_>>(), None)
            }
            _ => match found.records.into_iter().next() {
                Some(one) => answer.record(&record(one)),
                None if found.known => {
                    error(ErrorCode::CannotDisseminateFormat, "the item is not held in this format")
                }
                None => error(ErrorCode::IdDoesNotExist, "there is no such item"),
            },
        }
    }
}

fn identify(base_url: &str, contact: &str, earliest: Option<Timestamp>) -> Identify {
    let email = if contact.contains('@') { contact } else { "nobody@localhost.localdomain" };
    Identify {
        repository_name: "Grange".to_owned(),
        base_url: base_url.to_owned(),
        protocol_version: "2.0".to_owned(),
        admin_emails: vec![email.to_owned()],
        earliest_datestamp: Some(Datestamp::from_timestamp(
            earliest.unwrap_or(Timestamp::UNIX_EPOCH),
            Granularity::Second,
        )),
        deleted_record: DeletedRecord::Persistent,
        granularity: Some(Granularity::Second),
        compressions: Vec::new(),
        descriptions: Vec::new(),
    }
}

/// A record as it is served. One whose file is gone cannot be given and counts as deleted.
fn record((held, content): (OaiRecord, Option<String>)) -> Record {
    let deleted = held.status == RecordStatus::Deleted;
    let metadata = content.map(|text| match text.find("?>") {
        Some(end) if text.starts_with("<?xml") => text[end + 2..].trim().to_owned(),
        _ => text,
    });
    let mut sets = vec![format!("r{}", held.repository)];
    sets.extend(held.sets.iter().map(|set| format!("r{}:{set}", held.repository)));
    let header = Header {
        identifier: held.identifier,
        datestamp: Some(Datestamp::from_timestamp(held.changed_at, Granularity::Second)),
        sets,
        deleted,
    };
    Record { header, metadata, ..Record::default() }
}

fn next_token(selected: &Selected, found: &Listing) -> Option<ResumptionToken> {
    let cursor = Some(selected.cursor);
    let last = found.records.last().filter(|_| found.more);
    match last {
        Some((last, _)) => {
            let after = Some((last.changed_at, last.id));
            let next =
                Selected { after, cursor: selected.cursor + found.records.len() as u64, ..selected.clone() };
            Some(ResumptionToken { value: to_token(&next), cursor, ..ResumptionToken::default() })
        }
        // The last page of a list that was split says so.
        None if selected.cursor > 0 => Some(ResumptionToken { cursor, ..ResumptionToken::default() }),
        None => None,
    }
}

/// Everything a list needs to go on, so that no list is kept on this side and no token expires.
fn to_token(selected: &Selected) -> String {
    let time = |at: Option<Timestamp>| at.map(|at| at.as_microsecond().to_string()).unwrap_or_default();
    let (at, id) = selected.after.map_or((None, 0), |(at, id)| (Some(at), id));
    let (from, until, at) = (time(selected.from), time(selected.until), time(at));
    // The set comes last: it may hold any sign.
    let set = selected.set.as_deref().unwrap_or_default();
    format!("{at}!{id}!{}!{from}!{until}!{}!{set}", selected.cursor, selected.prefix)
}

fn from_token(token: &str, headers_only: bool) -> Option<Selected> {
    let parts: Vec<_> = token.splitn(7, '!').collect();
    let [at, id, cursor, from, until, prefix, set] = parts[..] else { return None };
    let time = |text: &str| -> Option<Option<Timestamp>> {
        if text.is_empty() {
            return Some(None);
        }
        Some(Some(Timestamp::from_microsecond(text.parse().ok()?).ok()?))
    };
    Some(Selected {
        headers_only,
        prefix: prefix.to_owned(),
        set: Some(set.to_owned()).filter(|set| !set.is_empty()),
        from: time(from)?,
        until: time(until)?,
        after: Some((time(at)??, id.parse().ok()?)),
        cursor: cursor.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ask(arguments: &[(&str, &str)]) -> Question {
        let owned = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        understand(owned, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn errors_are_those_of_the_protocol() {
        let known = || Listing { known: true, ..Listing::default() };
        for (arguments, found, code) in [
            (vec![], Listing::default(), "badVerb"),
            (vec![("verb", "Identify"), ("x", "y")], Listing::default(), "badArgument"),
            (vec![("verb", "ListRecords")], Listing::default(), "badArgument"),
            (
                vec![("verb", "ListRecords"), ("metadataPrefix", "x")],
                Listing::default(),
                "cannotDisseminateFormat",
            ),
            (vec![("verb", "ListRecords"), ("metadataPrefix", "x")], known(), "noRecordsMatch"),
            (
                vec![("verb", "ListRecords"), ("resumptionToken", "x")],
                Listing::default(),
                "badResumptionToken",
            ),
            (vec![("verb", "ListSets"), ("resumptionToken", "x")], Listing::default(), "badResumptionToken"),
            (vec![("verb", "ListSets")], Listing::default(), "noSetHierarchy"),
            (
                vec![("verb", "GetRecord"), ("identifier", "a"), ("metadataPrefix", "x")],
                Listing::default(),
                "idDoesNotExist",
            ),
            (
                vec![("verb", "GetRecord"), ("identifier", "a"), ("metadataPrefix", "x")],
                known(),
                "cannotDisseminateFormat",
            ),
            (
                vec![("verb", "ListMetadataFormats"), ("identifier", "a")],
                Listing::default(),
                "idDoesNotExist",
            ),
        ] {
            let answer = ask(&arguments).answer("http://x/oai", "a@b", found);
            assert!(answer.contains(&format!("code=\"{code}\"")), "{arguments:?}: {answer}");
        }
    }

    proptest! {
        #[test]
        fn a_token_reads_back_as_the_list_it_goes_on_with(
            at in 0_i64..4_000_000_000_000_000, id in 0_i64.., cursor: u64, from in proptest::option::of(0_i64..1_000_000),
            prefix in "[A-Za-z0-9_]{1,10}", set in proptest::option::of("[a-z!:]{1,20}"),
        ) {
            let time = |micros| Timestamp::from_microsecond(micros).unwrap();
            let selected = Selected {
                headers_only: false, prefix, set, from: from.map(time), until: None,
                after: Some((time(at), id)), cursor,
            };
            prop_assert_eq!(from_token(&to_token(&selected), false), Some(selected));
        }

        #[test]
        fn no_token_panics(text in "\\PC{0,60}") {
            let _ = from_token(&text, true);
        }
    }
}
