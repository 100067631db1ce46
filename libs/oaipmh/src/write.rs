//! Writes answers as a repository gives them: the six verbs and the errors, valid against the protocol's schema.

use std::borrow::Cow;
use std::fmt::Write;

use crate::{
    Datestamp, ErrorCode, Granularity, Header, Identify, MetadataFormat, NAMESPACE, OaiError, Record,
    Request, ResumptionToken, Set, Verb,
};

/// What every answer says, whatever was asked.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// The repository's address.
    pub base_url: &'a str,
    /// Its clock.
    pub response_date: Datestamp,
    /// What was asked; `None` if it could not be understood.
    pub request: Option<&'a Request>,
}

impl Envelope<'_> {
    /// Who the repository is.
    pub fn identify(&self, identify: &Identify) -> String {
        self.answer(Verb::Identify, |out| {
            field("repositoryName", &identify.repository_name, out);
            field("baseURL", &identify.base_url, out);
            field("protocolVersion", &identify.protocol_version, out);
            for email in &identify.admin_emails {
                field("adminEmail", email, out);
            }
            if let Some(earliest) = identify.earliest_datestamp {
                field("earliestDatestamp", &earliest.to_string(), out);
            }
            field("deletedRecord", identify.deleted_record.as_str(), out);
            field("granularity", identify.granularity.unwrap_or_default().as_str(), out);
            for compression in &identify.compressions {
                field("compression", compression, out);
            }
            for description in &identify.descriptions {
                container("description", description, out);
            }
        })
    }

    /// Which formats there are.
    pub fn formats(&self, formats: &[MetadataFormat]) -> String {
        self.answer(Verb::ListMetadataFormats, |out| {
            for format in formats {
                out.push_str("<metadataFormat>");
                field("metadataPrefix", &format.prefix, out);
                field("schema", &format.schema, out);
                field("metadataNamespace", &format.namespace, out);
                out.push_str("</metadataFormat>\n");
            }
        })
    }

    /// Which sets there are.
    pub fn sets(&self, sets: &[Set], next: Option<&ResumptionToken>) -> String {
        self.answer(Verb::ListSets, |out| {
            for set in sets {
                out.push_str("<set>");
                field("setSpec", &set.spec, out);
                field("setName", &set.name, out);
                for description in &set.descriptions {
                    container("setDescription", description, out);
                }
                out.push_str("</set>\n");
            }
            token(next, out);
        })
    }

    /// A page of headers.
    pub fn identifiers<'h>(
        &self,
        headers: impl IntoIterator<Item = &'h Header>,
        next: Option<&ResumptionToken>,
    ) -> String {
        self.answer(Verb::ListIdentifiers, |out| {
            headers.into_iter().for_each(|one| header(one, out));
            token(next, out);
        })
    }

    /// A page of records.
    pub fn records<'r>(
        &self,
        records: impl IntoIterator<Item = &'r Record>,
        next: Option<&ResumptionToken>,
    ) -> String {
        self.answer(Verb::ListRecords, |out| {
            records.into_iter().for_each(|one| record(one, out));
            token(next, out);
        })
    }

    /// One record.
    pub fn record(&self, one: &Record) -> String {
        self.answer(Verb::GetRecord, |out| record(one, out))
    }

    /// Errors; there must be one at least.
    pub fn errors(&self, errors: &[OaiError]) -> String {
        // After these two the protocol forbids to repeat the arguments, which may be anything.
        let hidden = [ErrorCode::BadVerb, ErrorCode::BadArgument];
        let echo = !errors.iter().any(|error| hidden.contains(&error.code));
        self.wrap(echo, |out| {
            for error in errors {
                out.push_str("<error code=\"");
                escape_into(error.code.as_str(), out);
                out.push_str("\">");
                escape_into(&error.message, out);
                out.push_str("</error>\n");
            }
        })
    }

    fn answer(&self, verb: Verb, inside: impl FnOnce(&mut String)) -> String {
        self.wrap(true, |out| {
            _ = writeln!(out, "<{verb}>");
            inside(out);
            _ = writeln!(out, "</{verb}>");
        })
    }

    fn wrap(&self, echo: bool, inside: impl FnOnce(&mut String)) -> String {
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"{NAMESPACE}\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"{NAMESPACE} http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
             <responseDate>{}</responseDate>\n<request",
            self.response_date.to_granularity(Granularity::Second)
        );
        if let Some(request) = self.request.filter(|_| echo) {
            _ = write!(out, " verb=\"{}\"", request.verb());
            for (name, value) in request.arguments() {
                _ = write!(out, " {name}=\"");
                escape_into(&value, &mut out);
                out.push('"');
            }
        }
        out.push('>');
        escape_into(self.base_url, &mut out);
        out.push_str("</request>\n");
        inside(&mut out);
        out.push_str("</OAI-PMH>\n");
        out
    }
}

fn field(name: &str, text: &str, out: &mut String) {
    _ = write!(out, "<{name}>");
    escape_into(text, out);
    _ = write!(out, "</{name}>");
}

/// One foreign element inside an element of the protocol.
fn container(name: &str, xml: &str, out: &mut String) {
    _ = write!(out, "<{name}>");
    out.push_str(&embeddable(xml));
    _ = write!(out, "</{name}>");
}

fn header(header: &Header, out: &mut String) {
    out.push_str(if header.deleted { "<header status=\"deleted\">" } else { "<header>" });
    field("identifier", &header.identifier, out);
    if let Some(datestamp) = header.datestamp {
        _ = write!(out, "<datestamp>{datestamp}</datestamp>");
    }
    for set in &header.sets {
        field("setSpec", set, out);
    }
    out.push_str("</header>\n");
}

fn record(record: &Record, out: &mut String) {
    out.push_str("<record>");
    header(&record.header, out);
    // The protocol forbids content of deleted records.
    if !record.header.deleted {
        if let Some(metadata) = &record.metadata {
            container("metadata", metadata, out);
        }
        for about in &record.about {
            container("about", about, out);
        }
    }
    out.push_str("</record>\n");
}

fn token(token: Option<&ResumptionToken>, out: &mut String) {
    let Some(token) = token else { return };
    out.push_str("<resumptionToken");
    if let Some(date) = token.expiration_date {
        _ = write!(out, " expirationDate=\"{}\"", date.to_granularity(Granularity::Second));
    }
    if let Some(size) = token.complete_list_size {
        _ = write!(out, " completeListSize=\"{size}\"");
    }
    if let Some(cursor) = token.cursor {
        _ = write!(out, " cursor=\"{cursor}\"");
    }
    out.push('>');
    escape_into(&token.value, out);
    out.push_str("</resumptionToken>\n");
}

/// A well-formed document as it may stand inside another: without its prolog, and out of the namespace that the
/// elements around it have.
fn embeddable(xml: &str) -> Cow<'_, str> {
    let mut rest = xml.trim_start_matches('\u{feff}').trim();
    // Declaration, comments and processing instructions before the root say nothing of the record.
    loop {
        let end = if rest.starts_with("<?") {
            rest.find("?>").map(|at| at + 2)
        } else if rest.starts_with("<!--") {
            rest.find("-->").map(|at| at + 3)
        } else {
            None
        };
        match end {
            Some(end) => rest = rest[end..].trim_start(),
            None => break,
        }
    }
    match crate::read::unqualified_root(rest) {
        Some(name_end) => Cow::Owned(format!("{} xmlns=\"\"{}", &rest[..name_end], &rest[name_end..])),
        None => Cow::Borrowed(rest),
    }
}

/// Appends text as XML may hold it, in elements and in attributes of either quote.
pub(crate) fn escape_into(text: &str, out: &mut String) {
    let mut done = 0;
    for (at, c) in text.char_indices() {
        let escaped = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\'' => "&apos;",
            c if crate::read::is_xml_char(c) => continue,
            // Nothing else could stand for it.
            _ => " ",
        };
        out.push_str(&text[done..at]);
        out.push_str(escaped);
        done = at + c.len_utf8();
    }
    out.push_str(&text[done..]);
}
