//! Memento (RFC 7089): times as HTTP writes them, links between a URL and its captures, TimeMaps.

use std::fmt::Write as _;

use grange_index::{CaptureView, Stamp};
use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::rewrite::{encoded_address, with_path};

/// How a TimeMap is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapFormat {
    Link,
    Json,
    Cdxj,
}

impl MapFormat {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "link" => Some(Self::Link),
            "json" => Some(Self::Json),
            "cdxj" => Some(Self::Cdxj),
            _ => None,
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Link => "application/link-format",
            Self::Json => "application/json",
            Self::Cdxj => "application/cdxj+ors",
        }
    }
}

/// The moment of a capture, as far as its digits name one.
pub(crate) fn moment(time: Stamp) -> Option<DateTime> {
    let part = |from: usize, to: usize| (time.leading(to) % 10u64.pow((to - from) as u32)) as i8;
    let year = time.leading(4) as i16;
    DateTime::new(
        year,
        part(4, 6).max(1),
        part(6, 8).max(1),
        part(8, 10),
        part(10, 12),
        part(12, 14).min(59),
        0,
    )
    .ok()
}

/// `Thu, 02 Jan 2020 03:04:05 GMT`; empty for digits that name no day.
pub(crate) fn http_date(time: Stamp) -> String {
    moment(time).map(|moment| moment.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()).unwrap_or_default()
}

/// Reads `Accept-Datetime`.
pub(crate) fn parse_http_date(text: &str) -> Option<Stamp> {
    let moment: Timestamp = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
    Some(Stamp::of(moment))
}

/// The 14 digits by which a capture is addressed.
pub(crate) fn digits(time: Stamp) -> String {
    format!("{:014}", time.leading(14))
}

/// Where the captures of one URL are told and replayed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links<'a> {
    /// Scheme, host and path of the collection, with a slash at the end.
    pub(crate) prefix: &'a str,
    pub(crate) url: &'a str,
}

impl Links<'_> {
    /// The `Link` header of a capture.
    pub(crate) fn header(&self, time: Stamp, around: &Around) -> String {
        let (prefix, url) = (encoded_address(self.prefix), encoded_address(self.url));
        let mut out = format!(
            "<{url}>; rel=\"original\", <{prefix}{url}>; rel=\"timegate\", \
             <{prefix}timemap/link/{url}>; rel=\"timemap\"; type=\"application/link-format\""
        );
        let mut add = |rel: &str, time: Option<Stamp>| {
            if let Some(time) = time {
                let _ = write!(
                    out,
                    ", <{prefix}{}mp_/{url}>; rel=\"{rel}\"; datetime=\"{}\"",
                    digits(time),
                    http_date(time)
                );
            }
        };
        let ends = match (around.first == Some(time), around.last == Some(time)) {
            (true, true) => "first last memento",
            (true, false) => "first memento",
            (false, true) => "last memento",
            (false, false) => "memento",
        };
        add(ends, Some(time));
        add("first memento", around.first.filter(|first| *first != time && around.previous != Some(*first)));
        add(
            if around.previous == around.first { "first prev memento" } else { "prev memento" },
            around.previous,
        );
        add(if around.next == around.last { "last next memento" } else { "next memento" }, around.next);
        add("last memento", around.last.filter(|last| *last != time && around.next != Some(*last)));
        out
    }

    /// The lines before the captures.
    pub(crate) fn map_head(&self, format: MapFormat, out: &mut Vec<u8>) {
        let Self { prefix, url } = self;
        let own = encoded_address(url);
        let text = match format {
            MapFormat::Link => format!(
                "<{prefix}timemap/link/{own}>; rel=\"self\"; type=\"application/link-format\",\n\
                 <{prefix}{own}>; rel=\"timegate\",\n<{own}>; rel=\"original\""
            ),
            MapFormat::Json => format!(
                "{{\"original_uri\": {}, \"self\": {}, \"timegate_uri\": {}, \"timemap_uri\": {{\"link_format\": {}, \
                 \"json_format\": {}, \"cdxj_format\": {}}}, \"mementos\": {{\"list\": [",
                json(url),
                json(&format!("{prefix}timemap/json/{url}")),
                json(&format!("{prefix}{url}")),
                json(&format!("{prefix}timemap/link/{url}")),
                json(&format!("{prefix}timemap/json/{url}")),
                json(&format!("{prefix}timemap/cdxj/{url}")),
            ),
            MapFormat::Cdxj => format!(
                "!context [\"http://tools.ietf.org/html/rfc7089\"]\n!id {{\"uri\": {}}}\n!keys [\"memento_datetime_YYYYMMDDhhmmss\"]\n\
                 !meta {{\"original_uri\": {}}}\n!meta {{\"timegate_uri\": {}}}\n",
                json(&format!("{prefix}timemap/cdxj/{url}")),
                json(url),
                json(&format!("{prefix}{url}")),
            ),
        };
        out.extend_from_slice(text.as_bytes());
    }

    /// One capture.
    pub(crate) fn map_line(&self, format: MapFormat, first: bool, view: &CaptureView<'_>, out: &mut Vec<u8>) {
        let mut url = String::new();
        if !view.url_into(&mut url) {
            self.url.clone_into(&mut url);
        }
        let uri = format!("{}{}mp_/{}", self.prefix, digits(view.time()), with_path(&url));
        let date = http_date(view.time());
        let text = match format {
            MapFormat::Link => {
                format!(",\n<{}>; rel=\"memento\"; datetime=\"{date}\"", encoded_address(&uri))
            }
            MapFormat::Json => {
                let comma = if first { "" } else { ", " };
                format!("{comma}\n{{\"datetime\": {}, \"uri\": {}}}", json(&iso(view.time())), json(&uri))
            }
            MapFormat::Cdxj => format!(
                "{} {{\"uri\": {}, \"rel\": \"memento\", \"datetime\": {}}}\n",
                digits(view.time()),
                json(&uri),
                json(&date)
            ),
        };
        out.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn map_tail(format: MapFormat, out: &mut Vec<u8>) {
        out.extend_from_slice(match format {
            MapFormat::Link => b"\n",
            MapFormat::Json => b"\n]}}\n",
            MapFormat::Cdxj => b"",
        });
    }
}

/// The captures around one, as far as they were looked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Around {
    pub(crate) first: Option<Stamp>,
    pub(crate) previous: Option<Stamp>,
    pub(crate) next: Option<Stamp>,
    pub(crate) last: Option<Stamp>,
}

fn iso(time: Stamp) -> String {
    moment(time).map(|moment| moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default()
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_both_ways() {
        for (digits14, date) in [
            ("20200102030405", "Thu, 02 Jan 2020 03:04:05 GMT"),
            ("19991231235959", "Fri, 31 Dec 1999 23:59:59 GMT"),
        ] {
            let time = Stamp::parse(digits14).unwrap();
            assert_eq!(http_date(time), date);
            assert_eq!(digits(parse_http_date(date).unwrap()), digits14);
        }
        assert_eq!(http_date(Stamp::parse("20201399").unwrap()), "");
        assert_eq!(parse_http_date("yesterday"), None);
    }

    #[test]
    fn a_capture_names_its_neighbours_once() {
        let time = |text: &str| Some(Stamp::parse(text).unwrap());
        let links = Links { prefix: "http://h/c/", url: "http://e.org/" };
        let (a, b, c) = (time("20200101000000"), time("20210101000000"), time("20220101000000"));
        let around = Around { first: a, previous: a, next: c, last: c };
        let header = links.header(b.unwrap(), &around);
        assert_eq!(header.matches("datetime=").count(), 3, "{header}");
        assert!(
            header.contains("rel=\"first prev memento\"") && header.contains("rel=\"last next memento\"")
        );
        let only = links.header(b.unwrap(), &Around { first: b, last: b, ..Around::default() });
        assert!(
            only.contains("rel=\"first last memento\"") && only.matches("datetime=").count() == 1,
            "{only}"
        );
    }

    #[test]
    fn a_url_adds_no_link_of_its_own() {
        let links =
            Links { prefix: "http://h/c/", url: "http://e.org/a b>; rel=\"memento\", <http://evil.org/'" };
        let mut map = Vec::new();
        links.map_head(MapFormat::Link, &mut map);
        let time = Stamp::parse("20200101000000").unwrap();
        for text in [links.header(time, &Around::default()), String::from_utf8(map).unwrap()] {
            assert!(
                !text.contains("<http://evil.org") && text.contains("/a%20b%3E;%20rel=%22memento%22,%20%3C"),
                "{text}"
            );
        }
    }
}
