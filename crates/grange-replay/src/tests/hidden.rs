//! Every rule, every way out, every capture and every form of its URL: what is hidden is not seen, counted or hinted at, and
//! what is visible is not lost.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use grange_index::access::{Rule, RuleSet};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::Bed;
use super::bed::{gzip, http, record, revisit};
use crate::cdx::Options;
use crate::collection::{Collection, Collections};
use crate::proxy::{Proxy, tests::resolve};

/// A capture of the small web, and what rules may know of it.
#[derive(Clone, Copy)]
struct Captured {
    url: &'static str,
    day: u8,
    file: &'static str,
    on_hidden: bool,
    private: bool,
    video: bool,
    documentation: bool,
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
    }
}

const WEB: [Captured; 14] = [
    Captured { on_hidden: true, private: true, video: true, ..page("http://hidden.org/private/film", 1) },
    Captured { on_hidden: true, private: true, video: true, ..page("http://hidden.org/private/film", 2) },
    Captured { on_hidden: true, video: true, ..page("http://hidden.org/copy", 3) },
    Captured { on_hidden: true, private: true, ..page("http://hidden.org/private", 4) },
    Captured { on_hidden: true, private: true, ..page("http://hidden.org/private/?q=1", 5) },
    page("http://visible.org/dup", 6),
    page("http://visible.org/again", 7),
    page("http://visible.org/", 8),
    Captured { on_hidden: true, private: true, ..page("urn:text:http://hidden.org/private/film", 9) },
    Captured { on_hidden: true, ..page("dns:hidden.org", 10) },
    Captured {
        documentation: true,
        file: "7-metadata-1.warc.gz",
        ..page("metadata://crawl.org/crawl/logs/crawl.log", 11)
    },
    Captured {
        on_hidden: true,
        private: true,
        file: "shared.warc.gz",
        ..page("http://hidden.org/private/shared", 12)
    },
    Captured { file: "shared.warc.gz", ..page("http://visible.org/shared", 13) },
    Captured { on_hidden: true, private: true, ..page("http://hidden.org/private/a%20b", 14) },
];

fn bed() -> Bed {
    let bed = Bed::new();
    let at = |day: u8| format!("2020-01-{day:02}T00:00:00Z");
    let video = "HTTP/1.1 200 OK\r\nContent-Type: Video/MP4; codecs=x\r\nSet-Cookie: secret=1";
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html";
    let bytes = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream";
    let url = |number: usize| WEB[number].url;
    bed.add_gz(
        "a.warc.gz",
        &[
            http(url(0), &at(1), video, b"the film"),
            revisit(url(1), &at(2), video, b"the film", ""),
            revisit(url(2), &at(3), bytes, b"the film", ""),
            http(url(3), &at(4), html, b"the page"),
            http(url(4), &at(5), html, b"the answer"),
            http(url(5), &at(6), html, b"the page"),
            revisit(url(6), &at(7), html, b"the page", ""),
            http(url(7), &at(8), html, b"the root"),
            record("resource", url(8), &at(9), "Content-Type: text/plain\r\n", b"what the film says"),
            record(
                "resource",
                url(9),
                &at(10),
                "Content-Type: text/dns\r\n",
                b"hidden.org. 60 IN A 192.0.2.1",
            ),
            http(url(13), &at(14), html, b"the space"),
        ],
    );
    bed.add_gz(
        "7-metadata-1.warc.gz",
        &[record(
            "resource",
            url(10),
            &at(11),
            "Content-Type: text/plain\r\n",
            b"http://hidden.org/private/film",
        )],
    );
    let shared =
        [http(url(11), &at(12), html, b"the first of two"), http(url(12), &at(13), html, b"the second")];
    bed.add("shared.warc.gz", &gzip(&shared.concat()));
    bed
}

/// A name, the rules, and what they hide besides the documentation of crawls.
type Case = (&'static str, Vec<Value>, fn(&Captured) -> bool);

fn about(url: &str, matches: &str) -> Vec<Value> {
    let keys = grange_index::rule_keys(url, matches).unwrap();
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

fn cases() -> Vec<Case> {
    let only = |network: &str| json!({ "decision": { "networks": { "networks": [network] } } });
    let embargo = json!({ "decision": { "embargo": { "seconds": 9_999_999_999_u64 } } });
    let allow = |audience: &str| everything(json!({ "decision": "allow", "audience": [audience] }));
    vec![
        ("no rule", vec![], |_| false),
        ("a prefix with a slash", about("http://hidden.org/private/", "prefix"), |one| one.private),
        ("a prefix", about("https://www.hidden.org:443/private", "prefix"), |one| one.private),
        ("an exact URL", about("http://hidden.org/private/film", "exact"), |one| {
            one.url.ends_with("/private/film")
        }),
        ("a host", about("hidden.org", "host"), |one| one.on_hidden),
        ("a domain", about("HIDDEN.org", "domain"), |one| one.on_hidden),
        ("a kind of types", vec![everything(json!({ "mime": "video/*" }))], |one| one.video),
        ("a type", vec![everything(json!({ "mime": "Video/mp4" }))], |one| one.video),
        ("a span", vec![everything(json!({ "captured_to": "20200103" }))], |one| one.day <= 3),
        ("this collection", vec![everything(json!({ "collection": "local" }))], |_| true),
        ("another collection", vec![everything(json!({ "collection": "other" }))], |_| false),
        ("everything", vec![everything(json!({}))], |_| true),
        ("an embargo", vec![everything(embargo.clone())], |_| true),
        ("this network", vec![everything(only("127.0.0.0/8"))], |_| false),
        ("another network", vec![everything(only("192.0.2.0/24"))], |_| true),
        ("users", vec![everything(json!({ "decision": { "users": { "users": ["*"] } } }))], |_| true),
        (
            "a network and a host",
            [vec![everything(only("127.0.0.0/8"))], about("hidden.org", "host")].concat(),
            |one| one.on_hidden,
        ),
        ("an embargo lifted here", vec![everything(embargo.clone()), allow("network:127.0.0.1")], |_| false),
        ("an embargo lifted elsewhere", vec![everything(embargo), allow("network:192.0.2.0/24")], |_| true),
        (
            "a block of a host, allowed as a whole",
            [about("hidden.org", "host"), vec![allow("network:127.0.0.1")]].concat(),
            |one| one.on_hidden,
        ),
    ]
}

/// The ways of spelling a URL that have one key; one where no URL is asked for.
fn forms(way: &str, url: &str) -> Vec<String> {
    let Some(rest) = url.strip_prefix("http://") else { return vec![url.to_owned()] };
    if ["start", "file", "record", "metadata"].contains(&way) {
        return vec![url.to_owned()];
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    vec![
        url.to_owned(),
        format!("https://{rest}"),
        format!("http://www.{rest}"),
        format!("http://{host}:80/{path}"),
        format!("HTTP://{}/{path}", host.to_uppercase()),
        format!("http://{host}/{}", path.to_uppercase()),
        format!("http://{host}/{}", path.replacen("film", "%66ilm", 1).replacen("shared", "sh%61red", 1)),
    ]
}

/// Asks on the replay port from this machine.
async fn get(site: &Router, path: &str) -> (u16, String, Vec<u8>) {
    let mut request = Request::get(path).header("host", "h").body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 9))));
    let response = site.clone().oneshot(request).await.unwrap();
    let header =
        |name: &str| response.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let told = format!("{} {}", header("memento-datetime"), header("location"));
    let status = response.status().as_u16();
    (status, told, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

fn encoded(url: &str) -> String {
    percent_encoding::utf8_percent_encode(url, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn unpacked(bytes: &[u8]) -> String {
    let mut plain = Vec::new();
    let _ = flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut plain);
    String::from_utf8_lossy(&plain).into_owned()
}

/// The records of a WACZ, whose first member is stored as it is.
fn wacz_records(bytes: &[u8]) -> String {
    let start = bytes.windows(3).position(|three| three == [0x1f, 0x8b, 8]).unwrap_or(bytes.len());
    let index = String::from_utf8_lossy(bytes).into_owned();
    unpacked(&bytes[start..]) + &index
}

/// Everything that a way out says, as text.
async fn said(way: &str, site: &Router, proxy: &Proxy, one: &Captured, offset: u64, form: &str) -> String {
    let time = format!("202001{:02}000000", one.day);
    let (url, file, encoded) = (form, one.file, encoded(form));
    let path = match way {
        "replay" => format!("/local/{time}id_/{url}"),
        "rewritten" => format!("/local/{time}mp_/{url}"),
        "framed" => format!("/local/{time}/{url}"),
        "timegate" => format!("/local/{url}"),
        "timemap link" => format!("/local/timemap/link/{url}"),
        "timemap json" => format!("/local/timemap/json/{url}"),
        "timemap cdxj" => format!("/local/timemap/cdxj/{url}"),
        "calendar" => format!("/local/*/{url}"),
        "list" => format!("/local/2020*/{url}?grange-view=list"),
        "urls" => format!("/local/*/{url}*"),
        "start" => "/local/".to_owned(),
        "ia" => format!("/local/cdx/ia?url={encoded}"),
        "ia prefix" => format!("/local/cdx/ia?url={encoded}&matchType=prefix&showResumeKey=true&limit=99"),
        "pywb" => format!("/local/cdx?url={encoded}&allowFuzzy=0"),
        "pywb resolved" => format!("/local/cdx?url={encoded}&allowFuzzy=0&resolveRevisits=true"),
        "outback" => format!("/local?url={encoded}"),
        "access point" => format!("/local/ap/x?url={encoded}"),
        "xml" => format!("/local?q=type:urlquery+url:{encoded}"),
        "warc" => format!("/local/export/warc?url={encoded}"),
        "wacz" => format!("/local/export/wacz?url={encoded}"),
        _ => String::new(),
    };
    if path.is_empty() {
        let target = match way {
            "proxy" => form.to_owned(),
            "file" => format!("http://viewerproxy.invalid/getFile?arcFile={file}"),
            "record" => format!("http://viewerproxy.invalid/getRecord?arcFile={file}&arcOffset={offset}"),
            _ => "http://viewerproxy.invalid/getMetadata?jobID=7".to_owned(),
        };
        let (status, told, body) =
            resolve(proxy, &target, &format!("{:02} Jan 2020 00:00:00 GMT", one.day)).await;
        let text = if way == "file" { unpacked(&body) } else { String::from_utf8_lossy(&body).into_owned() };
        return if status < 400 { format!("{status} {told} {text}") } else { String::new() };
    }
    let (status, told, body) = get(site, &path).await;
    let text = match way {
        "warc" => unpacked(&body),
        "wacz" => wacz_records(&body),
        _ => String::from_utf8_lossy(&body).into_owned(),
    };
    if status < 400 { format!("{status} {told} {text}") } else { String::new() }
}

/// Whether an answer speaks of a capture: each has a day of its own.
fn shows(way: &str, one: &Captured, said: &str) -> bool {
    let day = one.day;
    let digits = format!("202001{day:02}000000");
    match way {
        "replay" | "rewritten" | "proxy" => {
            said.contains(&format!("{day:02} Jan 2020 00:00:00 GMT"))
                || said.split('\n').next().unwrap_or_default().contains(&digits)
        }
        "warc" | "wacz" | "file" => {
            said.contains(&format!("2020-01-{day:02}T00:00:00")) || said.contains(&digits)
        }
        // Of two records in one place the first is meant.
        "record" => said.starts_with("200") && day != 13,
        "metadata" => said.contains(one.url) && one.documentation,
        "framed" | "timegate" => {
            said.starts_with("200") && said.contains(&digits)
                || said.split('\n').next().unwrap_or_default().contains(&digits)
        }
        "timemap json" | "timemap cdxj" | "timemap link" => {
            said.contains(&digits) || said.contains(&format!("{day:02} Jan 2020"))
        }
        _ => said.contains(&digits) || said.contains(&format!("2020-01-{day:02}")),
    }
}

const WAYS: [&str; 24] = [
    "replay",
    "rewritten",
    "framed",
    "timegate",
    "timemap link",
    "timemap json",
    "timemap cdxj",
    "calendar",
    "list",
    "urls",
    "start",
    "ia",
    "ia prefix",
    "pywb",
    "pywb resolved",
    "outback",
    "access point",
    "xml",
    "warc",
    "wacz",
    "proxy",
    "file",
    "record",
    "metadata",
];

struct Served {
    site: Router,
    proxy: Proxy,
}

fn served(bed: &Bed, rules: &[Value]) -> Served {
    let collections = Collections::default();
    let collection = Collection::new("local", bed.collection.index.clone(), bed.collection.holdings.clone());
    let rules: Vec<Rule> = rules.iter().map(|rule| serde_json::from_value(rule.clone()).unwrap()).collect();
    collection.set_rules(RuleSet::from(rules));
    collections.add(collection);
    let site = crate::routes(collections.clone(), Options::default());
    let proxy = Proxy::open(collections, Options::default(), &bed.folder.path().join("secrets")).unwrap();
    Served { site, proxy }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hidden_is_nowhere_and_what_is_visible_is_everywhere() {
    let bed = bed();
    let offsets: Vec<u64> = WEB
        .iter()
        .map(|one| {
            let mut rows = bed
                .collection
                .index
                .snapshot()
                .captures(&grange_index::key(one.url), grange_index::Stamp::MIN)
                .unwrap();
            let mut found = None;
            while let Some(view) = rows.next().unwrap() {
                if view.time().to_string() == format!("202001{:02}000000", one.day) {
                    found = view.offset();
                }
            }
            found.unwrap_or_else(|| panic!("{} is not in the index", one.url))
        })
        .collect();
    let allowed = json!({ "surt_prefix": "metadata:", "decision": "allow" });
    let open = served(&bed, std::slice::from_ref(&allowed));
    // What can be seen at all, so that nothing counts as hidden that this way never shows.
    let mut reachable: BTreeSet<(usize, &str, String)> = BTreeSet::new();
    for (number, one) in WEB.iter().enumerate() {
        for way in WAYS {
            for form in forms(way, one.url) {
                let text = said(way, &open.site, &open.proxy, one, offsets[number], &form).await;
                if shows(way, one, &text) {
                    reachable.insert((number, way, form));
                }
            }
        }
    }
    for way in WAYS {
        assert!(reachable.iter().any(|(_, shown, _)| *shown == way), "{way} shows nothing at all");
    }
    let (mut cells, mut wrong) = (0u64, Vec::new());
    for (name, rules, hides) in cases() {
        // That the documentation of crawls is hidden by itself need not be tried with every rule.
        let tried = if ["no rule", "everything", "this network"].contains(&name) {
            &[false, true][..]
        } else {
            &[true]
        };
        for &documentation in tried {
            let rules =
                if documentation { [rules.clone(), vec![allowed.clone()]].concat() } else { rules.clone() };
            let served = served(&bed, &rules);
            // All these rules are less narrow than the one that allows documentation to everybody.
            let hidden = |one: &Captured| if one.documentation { !documentation } else { hides(one) };
            let visible = WEB.iter().filter(|one| !hidden(one)).count() as u64;
            let stats = get(&served.site, "/local/stats").await.2;
            let stats: Value = serde_json::from_slice(&stats).unwrap();
            let cube = String::from_utf8(get(&served.site, "/local/cube").await.2).unwrap();
            let counted: u64 = cube
                .lines()
                .skip(1)
                .map(|line| line.rsplit(',').nth(1).unwrap().parse::<u64>().unwrap())
                .sum();
            if (stats["estimatedRecordCount"].as_u64(), counted) != (Some(visible), visible) {
                wrong.push(format!("{name}: {stats} and {counted}, not {visible}"));
            }
            cells += 2;
            for (number, one) in WEB.iter().enumerate() {
                for way in WAYS {
                    for form in forms(way, one.url) {
                        let text = said(way, &served.site, &served.proxy, one, offsets[number], &form).await;
                        let expected = !hidden(one) && reachable.contains(&(number, way, form.clone()));
                        if shows(way, one, &text) != expected {
                            wrong.push(format!(
                                "{name}: {way} of {form} on day {}, visible: {expected}",
                                one.day
                            ));
                        }
                        cells += 1;
                    }
                }
            }
        }
    }
    eprintln!("{cells} cells of rules, ways out, captures and forms of their URLs");
    let count = wrong.len();
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{count} of {cells} are wrong:\n{}", wrong.join("\n"));
}
