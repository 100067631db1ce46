//! The six verbs and their arguments, to and from the wire.

use std::fmt;

use crate::{Datestamp, ErrorCode, OaiError};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Who are you?
    Identify,
    /// Which formats are there?
    ListMetadataFormats,
    /// Which sets are there?
    ListSets,
    /// The headers of all records that match.
    ListIdentifiers,
    /// All records that match.
    ListRecords,
    /// One record.
    GetRecord,
}

impl Verb {
    /// All six.
    pub const ALL: [Verb; 6] = [
        Verb::Identify,
        Verb::ListMetadataFormats,
        Verb::ListSets,
        Verb::ListIdentifiers,
        Verb::ListRecords,
        Verb::GetRecord,
    ];

    /// As the protocol writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Identify => "Identify",
            Verb::ListMetadataFormats => "ListMetadataFormats",
            Verb::ListSets => "ListSets",
            Verb::ListIdentifiers => "ListIdentifiers",
            Verb::ListRecords => "ListRecords",
            Verb::GetRecord => "GetRecord",
        }
    }

    /// Reads a verb; they are case-sensitive.
    pub fn parse(text: &str) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| verb.as_str() == text)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which records a list is to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// The format.
    pub metadata_prefix: String,
    /// Changed then or later.
    pub from: Option<Datestamp>,
    /// Changed then or earlier.
    pub until: Option<Datestamp>,
    /// Only of this set and those below it.
    pub set: Option<String>,
}

impl Selection {
    /// All records in one format.
    pub fn all(metadata_prefix: impl Into<String>) -> Selection {
        Selection { metadata_prefix: metadata_prefix.into(), ..Selection::default() }
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Who are you?
    Identify,
    /// Which formats are there, for one item or at all?
    ListMetadataFormats {
        /// The item.
        identifier: Option<String>,
    },
    /// Which sets are there?
    ListSets,
    /// The first page of a list of headers.
    ListIdentifiers(Selection),
    /// The first page of a list of records.
    ListRecords(Selection),
    /// One record.
    GetRecord {
        /// The item.
        identifier: String,
        /// The format.
        metadata_prefix: String,
    },
    /// The next page of a list.
    Resume {
        /// The verb that started the list.
        verb: Verb,
        /// The token its last page gave.
        token: String,
        /// Against the protocol, some repositories want the format again (pycsw does).
        metadata_prefix: Option<String>,
    },
}

/// How a token goes into a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TokenStyle {
    /// Percent-encoded, as the protocol demands.
    #[default]
    Encoded,
    /// As it came, for repositories that do not decode it.
    Verbatim,
}

impl Request {
    /// The next page of a list.
    pub fn resume(verb: Verb, token: impl Into<String>) -> Request {
        Request::Resume { verb, token: token.into(), metadata_prefix: None }
    }

    /// What is asked.
    pub fn verb(&self) -> Verb {
        match self {
            Request::Identify => Verb::Identify,
            Request::ListMetadataFormats { .. } => Verb::ListMetadataFormats,
            Request::ListSets => Verb::ListSets,
            Request::ListIdentifiers(_) => Verb::ListIdentifiers,
            Request::ListRecords(_) => Verb::ListRecords,
            Request::GetRecord { .. } => Verb::GetRecord,
            Request::Resume { verb, .. } => *verb,
        }
    }

    /// The arguments beside the verb, in the order of the protocol's text.
    pub fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = Vec::new();
        match self {
            Request::Identify | Request::ListSets => {}
            Request::ListMetadataFormats { identifier } => {
                arguments.extend(identifier.clone().map(|identifier| ("identifier", identifier)));
            }
            Request::ListIdentifiers(selection) | Request::ListRecords(selection) => {
                arguments.extend(selection.from.map(|from| ("from", from.to_string())));
                arguments.extend(selection.until.map(|until| ("until", until.to_string())));
                arguments.push(("metadataPrefix", selection.metadata_prefix.clone()));
                arguments.extend(selection.set.clone().map(|set| ("set", set)));
            }
            Request::GetRecord { identifier, metadata_prefix } => {
                arguments.push(("identifier", identifier.clone()));
                arguments.push(("metadataPrefix", metadata_prefix.clone()));
            }
            Request::Resume { token, metadata_prefix, .. } => {
                arguments.extend(metadata_prefix.clone().map(|prefix| ("metadataPrefix", prefix)));
                arguments.push(("resumptionToken", token.clone()));
            }
        }
        arguments
    }

    /// `verb=…&…`: the query of a GET, and the body of a POST as `application/x-www-form-urlencoded`.
    pub fn to_form(&self, style: TokenStyle) -> String {
        let mut form = format!("verb={}", self.verb());
        for (name, value) in self.arguments() {
            form.push('&');
            form.push_str(name);
            form.push('=');
            if style == TokenStyle::Verbatim && name == "resumptionToken" {
                form.push_str(&value);
            } else {
                encode(&value, &mut form);
            }
        }
        form
    }

    /// The URL of a GET. A base URL with a query of its own keeps it.
    pub fn to_url(&self, base_url: &str) -> String {
        self.to_url_styled(base_url, TokenStyle::Encoded)
    }

    /// The URL of a GET, with a say in how the token is written.
    pub fn to_url_styled(&self, base_url: &str, style: TokenStyle) -> String {
        let base = base_url.split_once('#').map_or(base_url, |(base, _)| base);
        let joint = match base.split_once('?') {
            None => "?",
            Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
            Some(_) => "&",
        };
        format!("{base}{joint}{}", self.to_form(style))
    }

    /// Reads the arguments of a request as a repository gets them, already decoded.
    pub fn parse<N, V>(arguments: impl IntoIterator<Item = (N, V)>) -> Result<Request, OaiError>
    where
        N: AsRef<str>,
        V: Into<String>,
    {
        let mut given = Given::default();
        for (name, value) in arguments {
            given.put(name.as_ref(), value.into())?;
        }
        given.into_request()
    }
}

/// The arguments of a request, each at most once.
#[derive(Default)]
struct Given {
    verb: Option<String>,
    identifier: Option<String>,
    metadata_prefix: Option<String>,
    from: Option<String>,
    until: Option<String>,
    set: Option<String>,
    token: Option<String>,
}

fn bad_argument(message: impl Into<String>) -> OaiError {
    OaiError::new(ErrorCode::BadArgument, message)
}

impl Given {
    fn put(&mut self, name: &str, value: String) -> Result<(), OaiError> {
        let place = match name {
            "verb" => &mut self.verb,
            "identifier" => &mut self.identifier,
            "metadataPrefix" => &mut self.metadata_prefix,
            "from" => &mut self.from,
            "until" => &mut self.until,
            "set" => &mut self.set,
            "resumptionToken" => &mut self.token,
            _ => return Err(bad_argument(format!("there is no argument {name}"))),
        };
        if place.replace(value).is_none() {
            Ok(())
        } else if name == "verb" {
            Err(OaiError::new(ErrorCode::BadVerb, "the verb is repeated"))
        } else {
            Err(bad_argument(format!("the argument {name} is repeated")))
        }
    }

    fn into_request(mut self) -> Result<Request, OaiError> {
        let verb = match self.verb.take() {
            None => return Err(OaiError::new(ErrorCode::BadVerb, "the verb is missing")),
            Some(verb) => Verb::parse(&verb)
                .ok_or_else(|| OaiError::new(ErrorCode::BadVerb, format!("there is no verb {verb}")))?,
        };
        let lists = matches!(verb, Verb::ListSets | Verb::ListIdentifiers | Verb::ListRecords);
        let request = if let Some(token) = self.token.take_if(|_| lists) {
            Request::resume(verb, token)
        } else {
            match verb {
                Verb::Identify => Request::Identify,
                Verb::ListMetadataFormats => {
                    Request::ListMetadataFormats { identifier: self.identifier.take() }
                }
                Verb::ListSets => Request::ListSets,
                Verb::ListIdentifiers => Request::ListIdentifiers(self.selection()?),
                Verb::ListRecords => Request::ListRecords(self.selection()?),
                Verb::GetRecord => Request::GetRecord {
                    identifier: self
                        .identifier
                        .take()
                        .ok_or_else(|| bad_argument("identifier is missing"))?,
                    metadata_prefix: self.prefix()?,
                },
            }
        };
        let left = [
            ("identifier", &self.identifier),
            ("metadataPrefix", &self.metadata_prefix),
            ("from", &self.from),
            ("until", &self.until),
            ("set", &self.set),
            ("resumptionToken", &self.token),
        ];
        match left.iter().find(|(_, value)| value.is_some()) {
            Some((name, _)) => Err(bad_argument(format!("{name} is not allowed here"))),
            None => Ok(request),
        }
    }

    fn prefix(&mut self) -> Result<String, OaiError> {
        self.metadata_prefix.take().ok_or_else(|| bad_argument("metadataPrefix is missing"))
    }

    fn selection(&mut self) -> Result<Selection, OaiError> {
        let date = |name: &str, text: Option<String>| match text {
            None => Ok(None),
            Some(text) => Datestamp::parse(&text)
                .map(Some)
                .ok_or_else(|| bad_argument(format!("{name} is not a UTC date: {text}"))),
        };
        let from = date("from", self.from.take())?;
        let until = date("until", self.until.take())?;
        if let (Some(from), Some(until)) = (from, until) {
            if from.granularity() != until.granularity() {
                return Err(bad_argument("from and until differ in granularity"));
            }
            if from > until {
                return Err(bad_argument("from is later than until"));
            }
        }
        Ok(Selection { metadata_prefix: self.prefix()?, from, until, set: self.set.take() })
    }
}

/// Percent-encodes everything but the unreserved characters of RFC 3986, which covers all the protocol names.
fn encode(value: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection() -> Selection {
        Selection {
            metadata_prefix: "oai_dc".into(),
            from: Datestamp::parse("2020-01-01"),
            until: Datestamp::parse("2020-02-01"),
            set: Some("a:b".into()),
        }
    }

    #[test]
    fn requests_become_urls() {
        let cases = [
            (Request::Identify, "http://x/oai", "http://x/oai?verb=Identify"),
            (Request::ListSets, "http://x/oai?mode=oaipmh", "http://x/oai?mode=oaipmh&verb=ListSets"),
            (Request::ListSets, "http://x/oai?", "http://x/oai?verb=ListSets"),
            (
                Request::ListRecords(selection()),
                "http://x/oai#top",
                "http://x/oai?verb=ListRecords&from=2020-01-01&until=2020-02-01&metadataPrefix=oai_dc&set=a%3Ab",
            ),
            (
                Request::GetRecord { identifier: "oai:x:1/2&é".into(), metadata_prefix: "oai_dc".into() },
                "http://x/",
                "http://x/?verb=GetRecord&identifier=oai%3Ax%3A1%2F2%26%C3%A9&metadataPrefix=oai_dc",
            ),
            (
                Request::resume(Verb::ListIdentifiers, "a b+c%20/?#=&:;"),
                "http://x/",
                "http://x/?verb=ListIdentifiers&resumptionToken=a%20b%2Bc%2520%2F%3F%23%3D%26%3A%3B",
            ),
        ];
        for (request, base, url) in cases {
            assert_eq!(request.to_url(base), url);
        }
        let token = Request::resume(Verb::ListRecords, "a%20b");
        assert_eq!(token.to_form(TokenStyle::Verbatim), "verb=ListRecords&resumptionToken=a%20b");
    }

    #[test]
    fn what_is_written_is_read_again() {
        for request in [
            Request::Identify,
            Request::ListMetadataFormats { identifier: None },
            Request::ListMetadataFormats { identifier: Some("oai:x:1".into()) },
            Request::ListSets,
            Request::ListIdentifiers(selection()),
            Request::ListRecords(Selection::all("marc21")),
            Request::GetRecord { identifier: "i".into(), metadata_prefix: "oai_dc".into() },
            Request::resume(Verb::ListSets, "t"),
        ] {
            let mut arguments = request.arguments();
            arguments.push(("verb", request.verb().to_string()));
            assert_eq!(Request::parse(arguments).unwrap(), request);
        }
    }

    #[test]
    fn bad_requests_are_refused_by_name() {
        for (arguments, code) in [
            ("", ErrorCode::BadVerb),
            ("verb=identify", ErrorCode::BadVerb),
            ("verb=Identify verb=Identify", ErrorCode::BadVerb),
            ("verb=Identify set=a", ErrorCode::BadArgument),
            ("verb=Identify resumptionToken=a", ErrorCode::BadArgument),
            ("verb=ListRecords", ErrorCode::BadArgument),
            ("verb=ListRecords metadataPrefix=a metadataPrefix=b", ErrorCode::BadArgument),
            ("verb=ListRecords metadataPrefix=a resumptionToken=b", ErrorCode::BadArgument),
            (
                "verb=ListRecords metadataPrefix=a from=2020-01-01 until=2020-01-02T00:00:00Z",
                ErrorCode::BadArgument,
            ),
            ("verb=ListRecords metadataPrefix=a from=2020-01-02 until=2020-01-01", ErrorCode::BadArgument),
            ("verb=ListRecords metadataPrefix=a from=yesterday", ErrorCode::BadArgument),
            ("verb=GetRecord metadataPrefix=a", ErrorCode::BadArgument),
            ("verb=GetRecord identifier=a", ErrorCode::BadArgument),
            ("verb=ListSets page=2", ErrorCode::BadArgument),
        ] {
            let pairs = arguments.split_whitespace().map(|pair| pair.split_once('=').unwrap());
            assert_eq!(Request::parse(pairs).unwrap_err().code, code, "{arguments}");
        }
    }
}
