//! Redirects: every status, relative and absolute, chains, loops, to other hosts, and to nowhere.

use crate::web::answer::Answer;
use crate::web::name::Sub;
use crate::web::place::Place;
use crate::web::site::Builder;

pub(super) fn write(site: &mut Builder, index: &str) {
    let here = site.here();
    let cdn = site.on(Sub::Cdn);
    // Path, status, the header as written, where it leads.
    let mut redirects = vec![
        (
            "/redirects/301",
            301,
            format!("{here}/redirects/end-301.html"),
            "/redirects/end-301.html".to_owned(),
        ),
        ("/redirects/302", 302, "/redirects/end-302.html".into(), "/redirects/end-302.html".into()),
        ("/redirects/303", 303, "end-303.html".into(), "/redirects/end-303.html".into()),
        ("/redirects/307", 307, "../redirects/end-307.html".into(), "/redirects/end-307.html".into()),
        ("/redirects/308", 308, "?moved=308".into(), "/redirects/308?moved=308".into()),
        (
            "/redirects/fragment",
            302,
            "/redirects/end-fragment.html#part".into(),
            "/redirects/end-fragment.html".into(),
        ),
        ("/redirects/to-cdn", 302, format!("{cdn}/redirected.html"), format!("{cdn}/redirected.html")),
        // A chain of five.
        ("/redirects/chain-1", 301, "chain-2".into(), "/redirects/chain-2".into()),
        ("/redirects/chain-2", 302, "chain-3".into(), "/redirects/chain-3".into()),
        ("/redirects/chain-3", 303, "chain-4".into(), "/redirects/chain-4".into()),
        ("/redirects/chain-4", 307, "chain-5".into(), "/redirects/chain-5".into()),
        ("/redirects/chain-5", 308, "chain-end.html".into(), "/redirects/chain-end.html".into()),
        // Loops: each of their URLs is captured once.
        ("/redirects/loop-a", 302, "loop-b".into(), "/redirects/loop-b".into()),
        ("/redirects/loop-b", 302, "loop-a".into(), "/redirects/loop-a".into()),
        ("/redirects/self", 302, "self".into(), "/redirects/self".into()),
    ];
    if let Some(elsewhere) = site.elsewhere() {
        let landing = format!("{elsewhere}/shared/landing.html");
        redirects.push(("/redirects/off-site", 302, landing.clone(), landing));
    }
    let mut page = site.document();
    for (path, status, written, target) in redirects {
        if !path.contains("/chain-") || path.ends_with("chain-1") {
            page.plant(&format!("<a href=\"{path}\">{path}</a>"), &[(Place::AHref, path)]);
        }
        let mut links = site.document();
        links.record(&[(Place::Location, &target)]);
        site.put(path, Answer::redirect(status, &written), links);
    }
    // Without a place to go, or with one that cannot be crawled: the answer is the capture.
    for (path, answer) in [
        ("/redirects/nowhere", Answer::new(302, "text/plain", "Gone somewhere.\n")),
        ("/redirects/to-mail", Answer::redirect(302, "mailto:reader@h0000.test")),
    ] {
        page.plant(&format!("<a href=\"{path}\">{path}</a>"), &[(Place::AHref, path)]);
        site.put_leaf(path, answer);
    }
    page.plant("<a href=\"/redirects/meta.html\">meta</a>", &[(Place::AHref, "/redirects/meta.html")]);
    let mut meta = site.document();
    meta.plant_in_head(
        "<META HTTP-EQUIV=\"Refresh\" CONTENT=\"0; URL='end-meta.html'\">",
        &[(Place::MetaRefresh, "/redirects/end-meta.html")],
    );
    site.page("/redirects/meta.html", "Moved by meta", meta);
    site.page(index, "Redirects", page);
    // Where redirects and embeds of other sites lead to.
    site.put_leaf(
        "/shared/landing.html",
        Answer::html("<!DOCTYPE html>\n<html><body><p>Welcome, stranger.</p></body></html>\n"),
    );
}
