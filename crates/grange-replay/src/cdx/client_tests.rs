//! What OutbackCDX's documentation promises to its clients: Wayback machines, crawlers, and people with curl.

use axum::http::StatusCode;
use grange_index::access::{Decision, Rule, RuleSet};

use super::tests::Bed;

/// Lines as indexers write them: with 9, 10, 11 and 14 fields, and as CDXJ of a request with a body.
const LINES: [&str; 5] = [
    "- 20050614070159 http://library.example/ text/html 200 AKMCCEPOOWFMGGO5635HFZXGFRLRGWIX - 101 a.warc.gz",
    "- 20060614070159 http://library.example/ text/html 200 BKMCCEPOOWFMGGO5635HFZXGFRLRGWIX - - 102 a.warc.gz",
    "- 20070614070159 http://library.example/ text/html 200 CKMCCEPOOWFMGGO5635HFZXGFRLRGWIX - - 33 103 a.warc.gz",
    "- 20080614070159 http://library.example/ warc/revisit 200 CKMCCEPOOWFMGGO5635HFZXGFRLRGWIX - - 34 104 b.warc.gz 33 103 a.warc.gz",
    "- 20210203115119 {\"url\": \"http://library.example/\", \"mime\": \"text/plain\", \"status\": \"200\", \
     \"digest\": \"PPPCCEPOOWFMGGO5635HFZXGFRLRGWIX\", \"length\": \"832\", \"offset\": \"1234\", \
     \"filename\": \"c.warc.gz\", \"method\": \"POST\", \"requestBody\": \"x=1&y=2\"}",
];

async fn bed() -> Bed {
    let mut bed = Bed::new();
    bed.options.writing = true;
    for line in LINES {
        assert_eq!(bed.post("/news", &format!("{line}\n")).await.text(), "Added 1 records\n", "{line}");
    }
    bed
}

#[tokio::test]
async fn lines_of_every_width_are_taken_and_told_again() {
    let bed = bed().await;
    for (query, told) in [
        (
            "url=library.example&fl=timestamp,offset",
            "20050614070159 101\n20060614070159 102\n20070614070159 103\n20080614070159 104\n",
        ),
        ("url=library.example&sort=reverse&limit=1&fl=timestamp", "20080614070159\n"),
        (
            "url=library.example&sort=closest&closest=20060101&limit=2&fl=timestamp",
            "20060614070159\n20050614070159\n",
        ),
        (
            "url=library.example&filter=mimetype:text/html&fl=filename,length",
            "a.warc.gz -\na.warc.gz -\na.warc.gz 33\n",
        ),
        (
            "url=library.example&method=POST&requestBody=x%3D1%26y%3D2&fl=timestamp,filename",
            "20210203115119 c.warc.gz\n",
        ),
        ("url=library.example&from=2006&to=2007&fl=timestamp", "20060614070159\n20070614070159\n"),
        ("url=library.example/*&limit=1&fl=urlkey", "example,library)/\n"),
    ] {
        assert_eq!(bed.get(&format!("/news?{query}")).await.text(), told, "{query}");
    }
    let json: serde_json::Value = serde_json::from_str(
        bed.get("/news?url=library.example&output=json&limit=1&fl=urlkey,timestamp,status").await.text(),
    )
    .unwrap();
    let row = json.as_array().unwrap().last().unwrap();
    assert_eq!(row[0], "example,library)/", "{json}");
}

#[tokio::test]
async fn openwayback_is_answered_in_xml() {
    let bed = bed().await;
    let number = |xml: &str, name: &str| {
        let from =
            xml.find(&format!("<{name}>")).unwrap_or_else(|| panic!("{name} in {xml}")) + name.len() + 2;
        xml[from..].split('<').next().unwrap().to_owned()
    };
    for (query, returned, results) in [
        ("q=type:urlquery+url:http%3A%2F%2Flibrary.example%2F", "4", "4"),
        ("q=type:urlquery+url:http%3A%2F%2Flibrary.example%2F+limit:2+offset:0", "2", "4"),
        ("q=type:urlquery+url:http%3A%2F%2Flibrary.example%2F&count=3&start_page=1", "3", "4"),
        ("q=type:urlquery+url:http%3A%2F%2Flibrary.example%2F&count=3&start_page=2", "1", "4"),
    ] {
        let said = bed.get(&format!("/news?{query}")).await;
        let xml = said.text();
        assert_eq!(xml.matches("<result>").count().to_string(), returned, "{query}: {xml}");
        assert_eq!(
            (number(xml, "numreturned").as_str(), number(xml, "numresults").as_str()),
            (returned, results),
            "{query}"
        );
    }
    let near = bed.get("/news?q=type:urlquery+url:http%3A%2F%2Flibrary.example%2F+date:20070101").await;
    let marked =
        near.text().split("<result>").find(|result| result.contains("<closest>")).unwrap().to_owned();
    assert_eq!(number(&marked, "capturedate"), "20070614070159");
    assert_eq!(near.text().matches("<closest>").count(), 1);
    let said = bed.get("/news?q=type:urlquery+url:http%3A%2F%2Flibrary.example%2F").await;
    for part in [
        "<compressedoffset>103</compressedoffset>",
        "<mimetype>text/html</mimetype>",
        "<file>a.warc.gz</file>",
        "<urlkey>example,library)/</urlkey>",
        "<digest>CKMCCEPOOWFMGGO5635HFZXGFRLRGWIX</digest>",
        "<httpresponsecode>200</httpresponsecode>",
        "<url>http://library.example/</url>",
        "<capturedate>20070614070159</capturedate>",
        "<resultstype>resultstypecapture</resultstype>",
        "<type>urlquery</type>",
    ] {
        assert!(said.text().contains(part), "{part} in {}", said.text());
    }
}

#[tokio::test]
async fn lines_are_deleted_as_they_were_posted() {
    let bed = bed().await;
    for line in
        [LINES[1], LINES[4], "- 19990101000000 http://never.example/ text/html 200 - - - 1 2 z.warc.gz"]
    {
        assert_eq!(
            bed.post("/news/delete", &format!("{line}\n")).await.text(),
            "Deleted 1 records\n",
            "{line}"
        );
    }
    let left = bed.get("/news?url=library.example&fl=timestamp").await;
    assert_eq!(left.text(), "20050614070159\n20070614070159\n20080614070159\n");
    let posted = bed.get("/news?url=library.example&method=POST&requestBody=x%3D1%26y%3D2").await;
    assert_eq!(posted.text(), "");
}

#[tokio::test]
async fn one_bad_line_keeps_out_the_others_unless_told_to_skip() {
    let bed = bed().await;
    let good = "- 20300101000000 http://late.example/ text/html 200 - - - 1 2 z.warc.gz\n";
    for bad in [
        "- 2030 http://late.example/",
        "- 20300101000000 http://late.example/ text/html bad-wolf - - - 1 2 z.warc.gz",
        "@alias http://a.example/ http://b.example/",
    ] {
        let lines = format!("{good}{bad}\n");
        assert_eq!(bed.post("/news", &lines).await.status, StatusCode::BAD_REQUEST, "{bad}");
        assert_eq!(bed.get("/news?url=late.example").await.text(), "", "{bad}");
    }
    let lines = format!("{good}nonsense\n");
    assert_eq!(
        bed.post("/news?badLines=skip", &lines).await.text(),
        "Added 1 records\nSkipped 1 bad lines\n"
    );
}

#[tokio::test]
async fn an_access_point_gives_nobody_more_than_they_may_see() {
    let bed = bed().await;
    let rule = Rule::new("example,library)", Decision::Block { message: "by request".to_owned() });
    let all = bed.get("/news/ap/public?url=library.example&fl=timestamp").await;
    assert_eq!(all.text().lines().count(), 4);
    let check = "/news/ap/public/check?url=http://library.example/&timestamp=20050614070159";
    assert_eq!(bed.get(check).await.text(), r#"{"allowed":true,"rule":null,"publicMessage":null}"#);
    bed.collections.get("news").unwrap().set_rules(RuleSet::from(vec![rule]));
    for point in ["public", "staff"] {
        assert_eq!(bed.get(&format!("/news/ap/{point}?url=library.example")).await.text(), "");
    }
    let refused = r#"{"allowed":false,"rule":{"publicMessage":"by request"},"publicMessage":"by request"}"#;
    assert_eq!(bed.get(check).await.text(), refused);
    assert_eq!(bed.get("/news/ap/public/check").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(bed.get("/none/ap/public/check?url=x").await.status, StatusCode::NOT_FOUND);
}
