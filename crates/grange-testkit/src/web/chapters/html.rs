//! Links in every place of an HTML page that an archive must find, and in places where none is.

use crate::web::name::Sub;
use crate::web::place::Place::{
    self, AHref, Alternate, AppletArchive, AreaHref, AudioSrc, Background, Canonical, Cite, EmbedSrc,
    FormGet, Frame, Handler, Icon, Iframe, ImgSrc, InlineScript, InputSrc, LazySrc, LazySrcset, MetaContent,
    MetaRefresh, NoFollow, Noscript, ObjectData, Poster, Preload, ScriptSrc, SourceSrc, Srcset,
    StyleAttribute, StyleBlock, Stylesheet, SvgImage, SvgUse, TrackSrc, VideoSrc,
};
use crate::web::site::Builder;

/// Text of the body and the links in it.
const BODY: &[(&str, &[(Place, &str)])] = &[
    ("<a href=\"/html/a.html\">a</a>", &[(AHref, "/html/a.html")]),
    ("<map name=\"m\"><area shape=\"default\" href=\"area.html\"></map>", &[(AreaHref, "/html/area.html")]),
    ("<a rel=\"nofollow\" href=\"nofollow.html\">advice</a>", &[(NoFollow, "/html/nofollow.html")]),
    ("<blockquote cite=\"/html/cite.html\">said</blockquote>", &[(Cite, "/html/cite.html")]),
    ("<form action=\"/html/search.html\"><input name=\"q\"></form>", &[(FormGet, "/html/search.html")]),
    ("<form method=\"GET\" action=\"find.html\"><input name=\"q\"></form>", &[(FormGet, "/html/find.html")]),
    ("<img src=\"img.png\" alt=\"\">", &[(ImgSrc, "/html/img.png")]),
    (
        "<img src=\"small.jpg\" srcset=\"medium.jpg 640w, large.jpg 1280w,huge.jpg 2x\" alt=\"\">",
        &[
            (ImgSrc, "/html/small.jpg"),
            (Srcset, "/html/medium.jpg"),
            (Srcset, "/html/large.jpg"),
            (Srcset, "/html/huge.jpg"),
        ],
    ),
    // A comma within a URL does not end it.
    (
        "<img srcset=\"w,1.jpg, h,2.jpg 2x\" alt=\"\">",
        &[(Srcset, "/html/w,1.jpg"), (Srcset, "/html/h,2.jpg")],
    ),
    (
        "<picture><source srcset=\"wide.webp 1x\" media=\"(min-width: 600px)\"><img src=\"narrow.jpg\" alt=\"\"></picture>",
        &[(Srcset, "/html/wide.webp"), (ImgSrc, "/html/narrow.jpg")],
    ),
    ("<img data-src=\"lazy.png\" alt=\"\">", &[(LazySrc, "/html/lazy.png")]),
    (
        "<img data-srcset=\"lazy-1.png 1x, lazy-2.png 2x\" alt=\"\">",
        &[(LazySrcset, "/html/lazy-1.png"), (LazySrcset, "/html/lazy-2.png")],
    ),
    ("<noscript><img src=\"noscript.png\" alt=\"\"></noscript>", &[(Noscript, "/html/noscript.png")]),
    (
        "<video src=\"clip.mp4\" poster=\"poster.jpg\"><track src=\"words.vtt\" kind=\"captions\"></video>",
        &[(VideoSrc, "/html/clip.mp4"), (Poster, "/html/poster.jpg"), (TrackSrc, "/html/words.vtt")],
    ),
    ("<video><source src=\"film.mp4\" type=\"video/mp4\"></video>", &[(SourceSrc, "/html/film.mp4")]),
    ("<audio src=\"song.mp3\"></audio>", &[(AudioSrc, "/html/song.mp3")]),
    ("<iframe src=\"iframe.html\"></iframe>", &[(Iframe, "/html/iframe.html")]),
    ("<script src=\"script.js\"></script>", &[(ScriptSrc, "/html/script.js")]),
    (
        "<script>var pages = [\"/html/inline-1.html\", '/html/inline-2.json'];</script>",
        &[(InlineScript, "/html/inline-1.html"), (InlineScript, "/html/inline-2.json")],
    ),
    ("<button onclick=\"window.open('/html/opened.html')\">open</button>", &[(Handler, "/html/opened.html")]),
    ("<object data=\"object.pdf\" type=\"application/pdf\"></object>", &[(ObjectData, "/html/object.pdf")]),
    ("<embed src=\"embed.swf\">", &[(EmbedSrc, "/html/embed.swf")]),
    (
        "<applet archive=\"applet.jar\" width=\"1\" height=\"1\"></applet>",
        &[(AppletArchive, "/html/applet.jar")],
    ),
    (
        "<svg><image href=\"svg-1.png\"/><image xlink:href=\"svg-2.png\"/><use href=\"sprite.svg#icon\"/></svg>",
        &[(SvgImage, "/html/svg-1.png"), (SvgImage, "/html/svg-2.png"), (SvgUse, "/html/sprite.svg")],
    ),
    ("<input type=\"image\" src=\"button.gif\" alt=\"go\">", &[(InputSrc, "/html/button.gif")]),
    ("<table background=\"table.gif\"><tr><td>x</td></tr></table>", &[(Background, "/html/table.gif")]),
    ("<p style=\"background: url('/html/style.png')\">styled</p>", &[(StyleAttribute, "/html/style.png")]),
    (
        "<p style=\"background: url(&quot;style-q.png&quot;)\">styled</p>",
        &[(StyleAttribute, "/html/style-q.png")],
    ),
];

const HEAD: &[(&str, &[(Place, &str)])] = &[
    ("<link rel=\"stylesheet\" href=\"sheet.css\">", &[(Stylesheet, "/html/sheet.css")]),
    ("<link rel=\"shortcut icon\" href=\"site.ico\">", &[(Icon, "/html/site.ico")]),
    ("<link rel=\"preload\" as=\"font\" href=\"font.woff2\">", &[(Preload, "/html/font.woff2")]),
    ("<link rel=\"alternate\" hreflang=\"da\" href=\"dansk.html\">", &[(Alternate, "/html/dansk.html")]),
    ("<link rel=\"canonical\" href=\"/html/canonical.html\">", &[(Canonical, "/html/canonical.html")]),
    (
        "<meta http-equiv=\"refresh\" content=\"3600; url=refreshed.html\">",
        &[(MetaRefresh, "/html/refreshed.html")],
    ),
    (
        "<style>@import \"import.css\"; @import url(import-2.css); h1 { background: url(\"block.png\") }</style>",
        &[
            (StyleBlock, "/html/import.css"),
            (StyleBlock, "/html/import-2.css"),
            (StyleBlock, "/html/block.png"),
        ],
    ),
];

/// Text with addresses that are no links.
const DECOYS: &[(&str, &[&str])] = &[
    ("<!-- <a href=\"/decoy/comment.html\">no</a> -->", &["/decoy/comment.html"]),
    ("<textarea><a href=\"/decoy/textarea.html\">no</a></textarea>", &["/decoy/textarea.html"]),
    ("<xmp><img src=\"/decoy/xmp.png\"></xmp>", &["/decoy/xmp.png"]),
    ("<script>/* <a href=/decoy/in-script.html> */ var n = 1 / 2;</script>", &["/decoy/in-script.html"]),
    ("<form method=\"post\" action=\"/decoy/post.html\"><input></form>", &["/decoy/post.html"]),
    (
        "<p data-note=\"see page 7\" title=\"/decoy/title.html\">/decoy/text.html</p>",
        &["/decoy/title.html", "/decoy/text.html"],
    ),
    ("<p>&lt;a href=\"/decoy/escaped.html\"&gt;</p>", &["/decoy/escaped.html"]),
    (
        "<a href=\"javascript:void(0)\">j</a><a href=\"mailto:a@h0000.test\">m</a><a href=\"tel:+4512345678\">t</a>",
        &[],
    ),
    (
        "<img src=\"data:image/gif;base64,R0lGODlhAQABAAAAACw=\" alt=\"\"><a href=\"#part\">here</a><a href=\"\">same</a>",
        &[],
    ),
    (
        "<a href=\"ftp://h0000.test/f\">f</a><a href=\"urn:isbn:0451450523\">u</a><a href=\"about:blank\">b</a><a href=\"x-app://open/me\">x</a>",
        &[],
    ),
    (
        "<a href=\"http://\">none</a><a href=\"http://h0000.test:99999/\">port</a><a href=\"http://[::g]/\">six</a>",
        &[],
    ),
    ("<a name=\"/decoy/name.html\">n</a>", &["/decoy/name.html"]),
];

pub(super) fn write(site: &mut Builder, index: &str) {
    let mut page = site.document();
    for (text, links) in HEAD {
        page.plant_in_head(text, links);
    }
    let picture = format!("{}/html/og.jpg", site.here());
    page.plant_in_head(
        &format!("<meta property=\"og:image\" content=\"{picture}\">"),
        &[(MetaContent, &picture)],
    );
    // For hosts that are to be met, not asked.
    page.plant_in_head(&format!("<link rel=\"preconnect\" href=\"{}\">", site.on(Sub::Www)), &[]);
    for (text, links) in BODY {
        page.plant(text, links);
    }
    for (text, urls) in DECOYS {
        page.decoy(text, urls);
    }
    for (path, title) in [("based.html", "A base"), ("frames.html", "Frames"), ("tags.html", "Loose tags")] {
        page.plant(&format!("<a href=\"{path}\">{title}</a>"), &[(AHref, &format!("/html/{path}"))]);
    }
    off_site(site, &mut page);
    site.page(index, "Every place", page);
    based(site);
    frames(site);
    loose(site);
}

/// What another site lends to this page: one hop away from the scope, and no further.
fn off_site(site: &Builder, page: &mut crate::web::document::Document) {
    let cdn = site.on(Sub::Cdn);
    let (picture, sheet) = (format!("{cdn}/logo.png"), format!("{cdn}/site.css"));
    page.plant(&format!("<img src=\"{picture}\" alt=\"\">"), &[(ImgSrc, &picture)]);
    page.plant_in_head(&format!("<link rel=stylesheet href={sheet}>"), &[(Stylesheet, &sheet)]);
    if let Some(elsewhere) = site.elsewhere() {
        let (pixel, frame) =
            (format!("{elsewhere}/shared/pixel.gif"), format!("{elsewhere}/shared/frame.html"));
        page.plant(&format!("<img src=\"{pixel}\" alt=\"\">"), &[(ImgSrc, &pixel)]);
        page.plant(&format!("<iframe src=\"{frame}\"></iframe>"), &[(Iframe, &frame)]);
    }
}

fn based(site: &mut Builder) {
    let mut page = site.document();
    page.plant_in_head("<base href=\"/html/base/dir/\">", &[])
        // Only the first one counts.
        .plant_in_head("<base href=\"/decoy/base/\">", &[])
        .plant("<a href=\"one.html\">1</a>", &[(AHref, "/html/base/dir/one.html")])
        .plant("<img src=\"../two.png\" alt=\"\">", &[(ImgSrc, "/html/base/two.png")])
        .plant(
            "<p style=\"background:url(three.png)\">3</p>",
            &[(StyleAttribute, "/html/base/dir/three.png")],
        )
        .decoy("", &["/decoy/base/one.html", "/decoy/base/three.png", "/decoy/two.png", "/html/one.html"]);
    site.page("/html/based.html", "A base", page);
}

fn frames(site: &mut Builder) {
    let mut page = site.document();
    let text = "<html><frameset cols=\"20%,80%\"><frame src=\"menu.html\"><frame src=\"main.html\"></frameset></html>\n";
    page.record(&[(Frame, "/html/menu.html"), (Frame, "/html/main.html")]);
    site.put("/html/frames.html", crate::web::answer::Answer::html(text), page);
}

/// As people write it.
fn loose(site: &mut Builder) {
    let mut page = site.document();
    page.plant("<A HREF=LOOSE-1.html>upper case, no quotes</A>", &[(AHref, "/html/LOOSE-1.html")])
        .plant("<a\n  class='x'\n  href\n=\n'loose-2.html'\n>lines</a>", &[(AHref, "/html/loose-2.html")])
        .plant("<a href=\"  loose-3.html\t\n\">blanks around</a>", &[(AHref, "/html/loose-3.html")])
        .plant("<a href=\"loo\nse-4.html\">a line break within</a>", &[(AHref, "/html/loose-4.html")])
        .plant(
            "<a title=\"a > b\" href=loose-5.html>an angle in quotes</a>",
            &[(AHref, "/html/loose-5.html")],
        )
        .plant("<p><b><a href=loose-6.html>never closed", &[(AHref, "/html/loose-6.html")])
        // The first of two attributes of one name counts.
        .plant("<a href=loose-7.html href=/decoy/second.html>twice</a>", &[(AHref, "/html/loose-7.html")])
        .plant("<img/src=\"loose-8.png\"/alt=\"\"/>", &[(ImgSrc, "/html/loose-8.png")])
        .decoy("", &["/decoy/second.html"])
        // Never closed: the end tag after it becomes part of it.
        .plant("<a href=\"loose-9.html\"", &[(AHref, "/html/loose-9.html")]);
    site.page("/html/tags.html", "Loose tags", page);
}
