//! The routes as clients meet them.

use std::io::Read as _;
use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use grange_index::access::{Decision, Rule, RuleSet};
use grange_index::{Index, Settings};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::{Options, routes};
use crate::{Collection, Collections, Holdings, HoldingsError};

#[derive(Debug)]
struct Nothing;

#[async_trait]
impl Holdings for Nothing {
    async fn read_at(&self, _: &str, _: u64, _: u64) -> Result<Option<Bytes>, HoldingsError> {
        Ok(None)
    }
}

pub(super) struct Bed {
    _folder: tempfile::TempDir,
    pub(super) collections: Collections,
    pub(super) options: Options,
}

pub(super) struct Said {
    pub(super) status: StatusCode,
    content_type: String,
    encoding: Option<String>,
    body: Vec<u8>,
}

impl Said {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Bed {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let collections = Collections::default();
        for name in ["news", "archive"] {
            let index = Index::open(folder.path().join(name), Settings::default()).unwrap();
            collections.add(Collection::new(name, Arc::new(index), Arc::new(Nothing)));
        }
        Self { _folder: folder, collections, options: Options::default() }
    }

    fn load(&self, name: &str, lines: &str) {
        self.collections.get(name).unwrap().index.load(lines.as_bytes(), None).unwrap();
    }

    async fn send(&self, request: Request<Body>) -> Said {
        let answer = routes(self.collections.clone(), self.options.clone()).oneshot(request).await.unwrap();
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (content_type, encoding) =
            (header("content-type").unwrap_or_default(), header("content-encoding"));
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes().to_vec();
        Said { status, content_type, encoding, body }
    }

    pub(super) async fn get(&self, path: &str) -> Said {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(super) async fn post(&self, path: &str, body: &str) -> Said {
        self.send(Request::post(path).body(Body::from(body.to_owned())).unwrap()).await
    }
}

fn line(key: &str, time: u64, url: &str) -> String {
    format!(
        "{key} {time} {{\"url\": \"{url}\", \"mime\": \"text/html\", \"status\": \"200\", \"digest\": \"sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\", \"length\": \"10\", \"offset\": \"{}\", \"filename\": \"a.warc.gz\"}}\n",
        time % 1000
    )
}

fn few() -> String {
    [
        line("com,example)/", 20_200_101_000_001, "http://example.com/"),
        line("com,example)/secret", 20_200_101_000_002, "http://example.com/secret"),
    ]
    .concat()
}

#[tokio::test]
async fn each_dialect_answers_on_its_route() {
    let bed = Bed::new();
    bed.load("news", &few());
    let cdx =
        "com,example)/ 20200101000001 http://example.com/ text/html 200 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (path, content_type, begins) in [
        ("/news/cdx/ia?url=example.com", "text/plain; charset=utf-8", format!("{cdx} 10\n")),
        ("/cdx/ia?url=example.com&collection=news", "text/plain; charset=utf-8", format!("{cdx} 10\n")),
        ("/news/cdx?url=example.com", "text/x-cdxj", "com,example)/ 20200101000001 {\"url\": ".to_owned()),
        (
            "/news/index?url=example.com&output=json",
            "text/x-ndjson",
            "{\"urlkey\": \"com,example)/\"".to_owned(),
        ),
        ("/news?url=example.com", "text/plain; charset=utf-8", format!("{cdx} - - 10 1 a.warc.gz\n")),
        ("/news?q=type:urlquery+url:example.com", "application/xml", "<?xml".to_owned()),
        ("/news/cdx/ia?url=example.com&output=json", "application/json", "[[\"urlkey\",".to_owned()),
        ("/news/stats", "application/json", "{\"estimatedRecordCount\":2".to_owned()),
        (
            "/news/cube",
            "text/csv; charset=utf-8",
            "host,mime,status,year,captures,bytes\nexample.com,text/html,200,2020,2,20\n".to_owned(),
        ),
    ] {
        let said = bed.get(path).await;
        assert_eq!((said.status, said.content_type.as_str()), (StatusCode::OK, content_type), "{path}");
        assert!(said.text().starts_with(&begins), "{path}: {}", said.text());
    }
    // Nothing is found in the other collection, which is the one meant when none is named.
    assert_eq!(bed.get("/cdx/ia?url=example.com").await.text(), "");
}

#[tokio::test]
async fn pywb_is_told_of_what_differs_only_in_arguments_that_do_not_matter() {
    let bed = Bed::new();
    bed.load("news", &line("com,example)/x?a=1", 20_200_101_000_001, "http://example.com/x?a=1"));
    let asked = "/news/cdx?url=http://example.com/x%3Fa%3D1%26_%3D1600000000000";
    assert_eq!(bed.get(asked).await.text().lines().count(), 1);
    assert_eq!(bed.get(&format!("{asked}&allowFuzzy=0")).await.text(), "");
    assert_eq!(bed.get("/news/cdx?url=http://example.com/other").await.text(), "");
}

#[tokio::test]
async fn refusals_are_in_the_words_of_the_dialect() {
    let bed = Bed::new();
    for (path, status, body) in [
        ("/news/cdx/ia", 400, "the parameter \"url\" is missing\n"),
        ("/news/cdx", 400, "{\"message\":\"the parameter \\\"url\\\" is missing\"}"),
        ("/news", 400, "the parameter \"url\" is missing\n"),
        ("/none/cdx?url=a", 404, "{\"message\":\"no collection is named none; known: archive, news\"}"),
        ("/none?url=a", 404, "no collection is named none; known: archive, news\n"),
        ("/none/cube", 404, "no collection is named none\n"),
    ] {
        let said = bed.get(path).await;
        assert_eq!((said.status.as_u16(), said.text()), (status, body), "{path}");
    }
    assert!(bed.get("/news?q=x").await.text().contains("<error>"));
}

#[tokio::test]
async fn blocked_captures_are_in_no_answer() {
    let bed = Bed::new();
    bed.load("news", &few());
    let rule = Rule::new("com,example)/secret", Decision::Block { message: "asked for".to_owned() });
    bed.collections.get("news").unwrap().set_rules(RuleSet::from(vec![rule]));
    for path in [
        "/news/cdx/ia?url=example.com/*",
        "/news/cdx?url=example.com/*",
        "/news?url=example.com/*",
        "/news?q=type:prefixquery+url:example.com/",
        "/news/cdx/ia?url=example.com/secret",
    ] {
        let said = bed.get(path).await;
        assert_eq!(said.status, StatusCode::OK);
        assert!(!said.text().contains("secret"), "{path}: {}", said.text());
    }
    assert!(bed.get("/news/cube").await.text().ends_with("2020,1,10\n"));
}

#[tokio::test]
async fn a_long_answer_is_whole_also_when_it_is_packed() {
    let bed = Bed::new();
    let lines: String = (0..20_000)
        .map(|n| {
            let (key, url) = (format!("com,example)/{n:06}"), format!("http://example.com/{n:06}"));
            line(&key, 20_200_101_000_000 + n, &url)
        })
        .collect();
    bed.load("news", &lines);
    let plain = bed.get("/news/cdx/ia?url=example.com/*&fl=urlkey").await;
    assert_eq!(plain.text().lines().count(), 20_000);
    assert_eq!(plain.text().lines().last(), Some("com,example)/019999"));
    let ask = |path: &str| Request::get(path).header("accept-encoding", "gzip").body(Body::empty()).unwrap();
    for path in
        ["/news/cdx/ia?url=example.com/*&fl=urlkey", "/news/cdx/ia?url=example.com/*&fl=urlkey&limit=200"]
    {
        let packed = bed.send(ask(path)).await;
        assert_eq!(packed.encoding.as_deref(), Some("gzip"));
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(packed.body.as_slice()).read_to_string(&mut text).unwrap();
        assert!(plain.text().starts_with(&text) && !text.is_empty(), "{path}");
    }
    assert_eq!(bed.send(ask("/news/cdx/ia?url=example.com/000001")).await.encoding, None);
}

#[tokio::test]
async fn lines_are_taken_only_where_writing_is_on_and_never_from_browsers() {
    let mut bed = Bed::new();
    let cdx11 = "- 20200101000000 http://example.com/ text/html 200 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA - - 10 0 a.warc.gz\n";
    assert_eq!(bed.post("/news", cdx11).await.status, StatusCode::FORBIDDEN);
    bed.options.writing = true;
    let from_page =
        Request::post("/news").header("origin", "http://127.0.0.1").body(Body::from(cdx11)).unwrap();
    assert_eq!(bed.send(from_page).await.status, StatusCode::FORBIDDEN);
    assert_eq!(bed.get("/news?url=example.com").await.text(), "");
    for (path, body, status, said) in [
        ("/news", cdx11, 200, "Added 1 records\n"),
        ("/news", cdx11, 200, "Added 1 records\n"),
        (
            "/news",
            "nonsense\n",
            400,
            "At line 1: not a CDX or CDXJ line; badLines=skip passes over such lines\n",
        ),
        ("/news?badLines=skip", "nonsense\n", 200, "Added 0 records\nSkipped 1 bad lines\n"),
        ("/none", cdx11, 404, "no collection is named none\n"),
    ] {
        let answer = bed.post(path, body).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (status, said), "{path} {body}");
    }
    assert_eq!(bed.get("/news?url=example.com&fl=length").await.text(), "10\n");
    assert_eq!(bed.post("/news/delete", cdx11).await.text(), "Deleted 1 records\n");
    assert_eq!(bed.get("/news?url=example.com&fl=length").await.text(), "");
}

/// What takes longer than an answer in place may take is judged in a thread, and as it is.
#[tokio::test]
async fn a_revisit_among_many_is_judged_by_its_original() {
    let bed = Bed::new();
    let digest = format!("sha1:{}", "A".repeat(32));
    let lines: Vec<String> = (0..5_000)
        .map(|n| {
            let mime = if n == 0 { "video/mp4" } else { "warc/revisit" };
            format!(
                "com,example)/ {} {{\"url\": \"http://example.com/\", \"mime\": \"{mime}\", \"digest\": \"{digest}\", \
                 \"offset\": \"{n}\", \"filename\": \"a.warc.gz\"}}\n",
                20_200_101_000_000_u64 + n
            )
        })
        .collect();
    bed.load("news", &lines.concat());
    for (mime, shown) in [("image/*", 1), ("video/*", 0)] {
        let rule = Rule {
            mime: Some(mime.to_owned()),
            ..Rule::new("com,example)/", Decision::Block { message: String::new() })
        };
        bed.collections.get("news").unwrap().set_rules(RuleSet::from(vec![rule]));
        // The last one alone, and the last one behind others.
        for path in [
            "/news/cdx?url=example.com&from=20200101004999",
            "/news/cdx/ia?url=example.com&from=20200101004999",
            "/news/cdx?url=example.com&limit=1&sort=reverse",
        ] {
            let said = bed.get(path).await;
            assert_eq!(said.text().lines().count(), shown, "{path}: {}", said.text());
        }
    }
}
