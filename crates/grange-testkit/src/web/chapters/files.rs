//! Links in files that are no HTML: style sheets, scripts, JSON, feeds, PDF, playlists.

use crate::web::answer::Answer;
use crate::web::coding::Coding;
use crate::web::document::Document;
use crate::web::place::Place::{
    AHref, Alternate, CssImport, CssUrl, FeedEnclosure, FeedLink, JsonString, PdfLink, Playlist, ScriptSrc,
    ScriptString, Segment, SourceSrc, Stylesheet,
};
use crate::web::site::Builder;

pub(super) fn write(site: &mut Builder, index: &str) {
    let mut page = site.document();
    page.plant_in_head("<link rel=\"stylesheet\" href=\"style.css\">", &[(Stylesheet, "/files/style.css")])
        .plant_in_head("<script src=\"app.js\"></script>", &[(ScriptSrc, "/files/app.js")])
        .plant_in_head(
            "<link rel=\"alternate\" type=\"application/rss+xml\" href=\"news.rss\">",
            &[(Alternate, "/files/news.rss")],
        )
        .plant_in_head(
            "<link rel=\"alternate\" type=\"application/atom+xml\" href=\"news.atom\">",
            &[(Alternate, "/files/news.atom")],
        )
        .plant("<a href=\"data.json\">data</a>", &[(AHref, "/files/data.json")])
        .plant("<a href=\"report.pdf\">report</a>", &[(AHref, "/files/report.pdf")])
        .plant("<video><source src=\"film.m3u8\"></video>", &[(SourceSrc, "/files/film.m3u8")]);
    site.page(index, "Other files", page);
    style(site);
    script(site);
    feeds(site);
    report(site);
    playlists(site);
}

fn put(site: &mut Builder, path: &str, mime: &str, document: Document) {
    let answer = Answer::new(200, mime, document.text().to_owned());
    site.put(path, answer, document);
}

fn style(site: &mut Builder) {
    let mut sheet = site.document();
    sheet
        .plant("@charset \"utf-8\";\n@import \"css/first.css\";", &[(CssImport, "/files/css/first.css")])
        .plant("@import url('css/second.css') screen;", &[(CssImport, "/files/css/second.css")])
        .decoy("/* url(/decoy/css-comment.png) @import \"/decoy/css-comment.css\"; */", &[
            "/decoy/css-comment.png",
            "/decoy/css-comment.css",
        ])
        .plant("a { background: url(css/bare.png) no-repeat }", &[(CssUrl, "/files/css/bare.png")])
        .plant("b { background: URL( \"css/quoted.png\" ) }", &[(CssUrl, "/files/css/quoted.png")])
        .plant("i { background: url(css/esc\\)aped.png) }", &[(CssUrl, "/files/css/esc)aped.png")])
        .plant(
            "@font-face { font-family: x; src: url(\"/files/css/x.woff2\") format(\"woff2\"), url('css/y.woff2') }",
            &[(CssUrl, "/files/css/x.woff2"), (CssUrl, "/files/css/y.woff2")],
        )
        .plant("u { background: url(data:image/gif;base64,R0lGODlhAQABAAAAACw=); fill: url(#shade) }", &[]);
    put(site, "/files/style.css", "text/css", sheet);
    // A sheet within a sheet: relative to itself, not to the page.
    let mut first = site.document();
    first.plant("p { background: url(deep.png) }", &[(CssUrl, "/files/css/deep.png")]);
    put(site, "/files/css/first.css", "text/css", first);
}

fn script(site: &mut Builder) {
    let absolute = format!("{}/files/js/absolute.json", site.here());
    let mut script = site.document();
    script
        .plant("\"use strict\"; var type = \"text/html\", date = 'MM/DD/YYYY', half = 1 / 2;", &[])
        .plant("fetch(\"/files/js/data.json\");", &[(ScriptString, "/files/js/data.json")])
        .plant(
            "img.src = '/files/js/picture.png?w=1&h=2';",
            &[(ScriptString, "/files/js/picture.png?w=1&h=2")],
        )
        .plant(&format!("load(\"{absolute}\");"), &[(ScriptString, absolute.as_str())])
        .plant(
            &format!("load(\"{}\");", absolute.replace("absolute", "slashes").replace('/', "\\/")),
            &[(ScriptString, "/files/js/slashes.json")],
        )
        .plant(
            "var re = /^[a-z]+\\/[0-9]$/, mime = 'application/json', v = '1.2.3', empty = '', n = '/';",
            &[],
        );
    put(site, "/files/app.js", "text/javascript", script);
    let mut data = site.document();
    data.plant(
        "{\"next\": \"/files/json/2.json\", \"img\": \"\\/files\\/json\\/cover.jpg\", \"ratio\": \"16/9\", \"n\": 1}",
        &[(JsonString, "/files/json/2.json"), (JsonString, "/files/json/cover.jpg")],
    );
    let answer = Answer::new(200, "application/json", data.text().to_owned()).coded(Coding::Gzip, false);
    site.put("/files/data.json", answer, data);
}

fn feeds(site: &mut Builder) {
    let here = site.here();
    let mut rss = site.document();
    rss.plant(
        &format!(
            "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>News</title><link>{here}/files/feed/home.html</link>\n\
             <item><link>{here}/files/feed/item.html?a=1&amp;b=2</link><enclosure url=\"{here}/files/feed/talk.mp3\" \
             type=\"audio/mpeg\" length=\"703\"/><guid isPermaLink=\"false\">tag:x,2026:1</guid></item></channel></rss>"
        ),
        &[
            (FeedLink, "/files/feed/home.html"),
            (FeedLink, "/files/feed/item.html?a=1&b=2"),
            (FeedEnclosure, "/files/feed/talk.mp3"),
        ],
    );
    put(site, "/files/news.rss", "application/rss+xml", rss);
    let mut atom = site.document();
    atom.plant(
        &format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News</title>\
             <id>urn:x:1</id><entry><id>urn:x:2</id><link href=\"{here}/files/feed/entry.html\"/>\
             <link rel=\"enclosure\" href=\"{here}/files/feed/film.mp4\"/></entry></feed>"
        ),
        &[(FeedLink, "/files/feed/entry.html"), (FeedEnclosure, "/files/feed/film.mp4")],
    );
    put(site, "/files/news.atom", "application/atom+xml", atom);
}

/// A PDF of one empty page with one link on it.
fn report(site: &mut Builder) {
    let target = format!("{}/files/pdf/linked.html", site.here());
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Annots [4 0 R] >>".to_owned(),
        format!(
            "<< /Type /Annot /Subtype /Link /Rect [0 0 99 99] /A << /Type /Action /S /URI /URI ({target}) >> >>"
        ),
    ];
    let mut parts = vec!["%PDF-1.4\n".to_owned()];
    let mut entries = vec!["0000000000 65535 f \n".to_owned()];
    for (index, object) in objects.iter().enumerate() {
        entries.push(format!("{:010} 00000 n \n", parts.concat().len()));
        parts.push(format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let (text, entries) = (parts.concat(), entries.concat());
    let text = format!(
        "{text}xref\n0 5\n{entries}trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n{}\n%%EOF\n",
        text.len()
    );
    let mut links = site.document();
    links.record(&[(PdfLink, &target)]);
    site.put("/files/report.pdf", Answer::new(200, "application/pdf", text), links);
}

fn playlists(site: &mut Builder) {
    let mime = "application/vnd.apple.mpegurl";
    let mut master = site.document();
    master
        .plant("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000", &[])
        .plant("hls/low.m3u8", &[(Playlist, "/files/hls/low.m3u8")]);
    put(site, "/files/film.m3u8", mime, master);
    let mut low = site.document();
    low.plant(
        "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-MAP:URI=\"init.mp4\"",
        &[(Segment, "/files/hls/init.mp4")],
    )
    .plant("#EXTINF:6.0,\nseg-1.ts", &[(Segment, "/files/hls/seg-1.ts")])
    .plant("#EXTINF:2.5,\n/files/hls/seg-2.ts", &[(Segment, "/files/hls/seg-2.ts")])
    .plant("#EXT-X-ENDLIST", &[]);
    put(site, "/files/hls/low.m3u8", mime, low);
}
