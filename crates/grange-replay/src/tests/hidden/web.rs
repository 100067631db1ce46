//! The small web of the test, its readers, and rule sets with what they hide.

use std::collections::HashMap;

use grange_index::{Batch, Capture, Stamp};
use serde_json::{Value, json};

use crate::collection::{Account, Collections};
use crate::tests::Bed;
use crate::tests::bed::{gzip, http, record, revisit};

/// A capture of the small web, and what rules may know of it. Each has a day of January 2020 of its own.
#[derive(Clone, Copy)]
pub(super) struct Captured {
    pub(super) url: &'static str,
    pub(super) day: u8,
    pub(super) file: &'static str,
    pub(super) on_hidden: bool,
    pub(super) private: bool,
    pub(super) video: bool,
    pub(super) documentation: bool,
    /// A revisit of the capture of this day, which has another URL; no visible capture has that body where that one is hidden.
    pub(super) original: Option<u8>,
}

const fn page(url: &'static str, day: u8) -> Captured {
    Captured {
        url,
        day,
        file: "a.warc.gz",
        on_hidden: false,
        private: false,
        video: false,
        documentation: false,
        original: None,
    }
}

const fn private(url: &'static str, day: u8) -> Captured {
    Captured { on_hidden: true, private: true, ..page(url, day) }
}

pub(super) const WEB: [Captured; 21] = [
    Captured { video: true, ..private("http://hidden.org/private/film", 1) },
    Captured { video: true, ..private("http://hidden.org/private/film", 2) },
    Captured { on_hidden: true, video: true, original: Some(1), ..page("http://hidden.org/copy", 3) },
    private("http://hidden.org/private", 4),
    private("http://hidden.org/private/?q=1", 5),
    page("http://visible.org/dup", 6),
    page("http://visible.org/again", 7),
    page("http://visible.org/", 8),
    private("urn:text:http://hidden.org/private/film", 9),
    Captured { on_hidden: true, ..page("dns:hidden.org", 10) },
    Captured {
        documentation: true,
        file: "7-metadata-1.warc.gz",
        ..page("metadata://crawl.org/crawl/logs/crawl.log", 11)
    },
    Captured { file: "shared.warc.gz", ..private("http://hidden.org/private/shared", 12) },
    Captured { file: "shared.warc.gz", ..page("http://visible.org/shared", 13) },
    private("http://hidden.org/private/a%20b", 14),
    private("http://hidden.org/private/film", 15),
    // The URL that it is about has another one as an argument.
    private("urn:text:https://hidden.org/private/share?u=http://visible.org/", 16),
    // The answer to a form.
    private("http://hidden.org/private/form?__wb_method=post&q=1", 18),
    // Known from lines of another program, under keys of its own.
    private("http://www.hidden.org/private/line", 19),
    private("http://www2.hidden.org/private/line2", 20),
    private("http://hidden.org/Private/Case", 21),
    Captured { original: Some(5), file: "b.warc.gz", ..page("http://visible.org/borrowed", 22) },
];

/// The days and keys under which [`WEB`]'s last captures are listed. The last two suggest just the URLs that they have.
const LINE_KEYS: [(u8, &str); 3] = [
    (19, "org,hidden,www)/private/line"),
    (20, "org,hidden,www2)/private/line2"),
    (21, "org,hidden)/Private/Case"),
];

/// Bodies as the WARC files have them; those of the same content are the same.
pub(super) fn content(day: u8) -> String {
    match day {
        1..=3 => "content-of-the-film".to_owned(),
        4 | 6 | 7 => "content-of-the-page".to_owned(),
        22 => content(5),
        day => format!("content-{day:02}"),
    }
}

pub(super) fn bed() -> Bed {
    let bed = Bed::new();
    let at = |day: u8| format!("2020-01-{day:02}T00:00:00Z");
    let video = "HTTP/1.1 200 OK\r\nContent-Type: Video/MP4; codecs=x\r\nSet-Cookie: secret=1";
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html";
    let bytes = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream";
    let url = |day: u8| WEB.iter().find(|one| one.day == day).unwrap().url;
    let response = |day: u8, head: &str| http(url(day), &at(day), head, content(day).as_bytes());
    let again = |day: u8, head: &str| revisit(url(day), &at(day), head, content(day).as_bytes(), "");
    let resource = |day: u8, mime: &str| {
        record("resource", url(day), &at(day), &format!("Content-Type: {mime}\r\n"), content(day).as_bytes())
    };
    let form = http("http://hidden.org/private/form", &at(18), html, content(18).as_bytes());
    let text = String::from_utf8_lossy(&form).into_owned();
    let id = text.lines().find_map(|line| line.strip_prefix("WARC-Record-ID: ")).unwrap();
    let sent = record(
        "request",
        "http://hidden.org/private/form",
        &at(18),
        &format!("WARC-Concurrent-To: {id}\r\nContent-Type: application/http; msgtype=request\r\n"),
        b"POST /private/form HTTP/1.1\r\nHost: hidden.org\r\nContent-Type: application/x-www-form-urlencoded\r\n\
          Content-Length: 3\r\n\r\nq=1",
    );
    bed.add_gz(
        "a.warc.gz",
        &[
            response(1, video),
            again(2, video),
            again(3, bytes),
            response(4, html),
            response(5, html),
            response(6, html),
            again(7, html),
            response(8, html),
            resource(9, "text/plain"),
            resource(10, "text/dns"),
            response(14, html),
            response(15, html),
            resource(16, "text/plain"),
            form,
            sent,
        ],
    );
    bed.add_gz("b.warc.gz", &[again(22, html)]);
    bed.add_gz("7-metadata-1.warc.gz", &[resource(11, "text/plain")]);
    bed.add("shared.warc.gz", &gzip(&[response(12, html), response(13, html)].concat()));
    let mut file = std::fs::read(bed.folder.path().join("a.warc.gz")).unwrap();
    let mut batch = Batch::new();
    for (day, key) in LINE_KEYS {
        batch.add(&Capture {
            surt: key.to_owned(),
            time: Stamp::parse(format!("202001{day:02}000000")).unwrap(),
            url: Some(url(day).to_owned()),
            mime: Some("text/html".to_owned()),
            status: Some(200),
            offset: Some(file.len() as u64),
            file: "a.warc.gz".to_owned(),
            ..Capture::default()
        });
        file.extend(gzip(&response(day, html)));
    }
    std::fs::write(bed.folder.path().join("a.warc.gz"), file).unwrap();
    let section = crate::holdings::Section::whole(bed.folder.path().join("a.warc.gz")).unwrap();
    bed.files.add("a.warc.gz", section);
    bed.collection.index.commit(batch).unwrap();
    bed
}

/// A reader on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// Nobody is signed in.
    Stranger,
    /// `anna`, whose account only reads.
    Viewer,
    /// `bert`, whose account works at the archive.
    Curator,
    /// `carl`, whom the front server names, but whose account was disabled.
    Former,
}

impl Reader {
    pub(super) const ALL: [Self; 4] = [Self::Stranger, Self::Viewer, Self::Curator, Self::Former];

    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Stranger => None,
            Self::Viewer => Some("Anna"),
            Self::Curator => Some("bert"),
            Self::Former => Some("carl"),
        }
    }
}

pub(super) fn set_accounts(collections: &Collections) {
    let account = |role: &str, staff| Account { role: role.to_owned(), staff };
    collections.set_accounts(HashMap::from([
        ("anna".to_owned(), account("viewer", false)),
        ("bert".to_owned(), account("curator", true)),
    ]));
}

/// A name, the rules, and what they hide from a reader besides the documentation of crawls.
pub(super) type Case = (&'static str, Vec<Value>, fn(&Captured, Reader) -> bool);

fn about(url: &str, matches: &str) -> Vec<Value> {
    let keys = grange_index::rule_keys(url, Some(matches)).unwrap();
    let rule = |keys: grange_index::RuleKeys| json!({ "surt_prefix": keys.prefix, "exact": keys.exact, "decision": block() });
    keys.into_iter().map(rule).collect()
}

fn block() -> Value {
    json!({ "block": { "message": "Taken down." } })
}

fn everything(more: Value) -> Value {
    let mut rule = json!({ "surt_prefix": "", "decision": block() });
    rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    rule
}

pub(super) fn cases() -> Vec<Case> {
    let only = |network: &str| everything(json!({ "decision": { "networks": { "networks": [network] } } }));
    let users = |name: &str| everything(json!({ "decision": { "users": { "users": [name] } } }));
    let embargo = || everything(json!({ "decision": { "embargo": { "seconds": 9_999_999_999_u64 } } }));
    let allow = |audience: &str| everything(json!({ "decision": "allow", "audience": [audience] }));
    vec![
        ("no rule", vec![], |_, _| false),
        ("a prefix with a slash", about("http://hidden.org/private/", "prefix"), |one, _| one.private),
        ("a prefix", about("https://www.hidden.org:443/private", "prefix"), |one, _| one.private),
        ("an exact URL", about("http://hidden.org/private/film", "exact"), |one, _| {
            one.url.ends_with("/private/film")
        }),
        ("a host", about("hidden.org", "host"), |one, _| one.on_hidden),
        ("a domain", about("HIDDEN.org", "domain"), |one, _| one.on_hidden),
        ("a kind of types", vec![everything(json!({ "mime": "video/*" }))], |one, _| one.video),
        ("a type", vec![everything(json!({ "mime": "Video/mp4" }))], |one, _| one.video),
        ("a span", vec![everything(json!({ "captured_to": "20200103" }))], |one, _| one.day <= 3),
        ("this collection", vec![everything(json!({ "collection": "local" }))], |_, _| true),
        ("another collection", vec![everything(json!({ "collection": "other" }))], |_, _| false),
        ("everything", vec![everything(json!({}))], |_, _| true),
        ("an embargo", vec![embargo()], |_, _| true),
        ("this network", vec![only("127.0.0.0/8")], |_, _| false),
        ("another network", vec![only("192.0.2.0/24")], |_, _| true),
        ("users", vec![users("*")], |_, reader| reader == Reader::Stranger),
        ("one user", vec![users("anna")], |_, reader| reader != Reader::Viewer),
        (
            "a network and a host",
            [vec![only("127.0.0.0/8")], about("hidden.org", "host")].concat(),
            |one, _| one.on_hidden,
        ),
        ("an embargo lifted here", vec![embargo(), allow("network:127.0.0.1")], |_, _| false),
        ("an embargo lifted elsewhere", vec![embargo(), allow("network:192.0.2.0/24")], |_, _| true),
        ("an embargo lifted for staff", vec![embargo(), allow("staff")], |_, reader| {
            reader != Reader::Curator
        }),
        ("a network lifted for a role", vec![only("192.0.2.0/24"), allow("role:viewer")], |_, reader| {
            reader != Reader::Viewer
        }),
        ("an embargo lifted for a user", vec![embargo(), allow("user:bert")], |_, reader| {
            reader != Reader::Curator
        }),
        (
            "a block of a host, allowed as a whole",
            [about("hidden.org", "host"), vec![allow("network:127.0.0.1")]].concat(),
            |one, _| one.on_hidden,
        ),
        (
            "a block of a host, allowed to staff as a host",
            [
                about("hidden.org", "host"),
                about("hidden.org", "host")
                    .into_iter()
                    .map(|mut rule| {
                        rule["decision"] = json!("allow");
                        rule["audience"] = json!(["staff"]);
                        rule
                    })
                    .collect(),
            ]
            .concat(),
            |one, reader| one.on_hidden && reader != Reader::Curator,
        ),
    ]
}
