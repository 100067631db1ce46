//! The front page: leads to the articles and to every chapter.

use crate::web::place::Place::AHref;
use crate::web::site::Builder;

pub(super) fn write(site: &mut Builder, indexes: &[String]) {
    let mut page = site.document();
    page.plant("<p><a href=\"/p/0.html\">Articles</a></p>", &[(AHref, "/p/0.html")]);
    for path in indexes {
        page.plant(&format!("<p><a href=\"{path}\">{path}</a></p>"), &[(AHref, path)]);
    }
    if let Some(next) = site.elsewhere() {
        let next = format!("{next}/");
        page.plant(&format!("<p><a href=\"{next}\">A neighbour</a></p>"), &[(AHref, &next)]);
    }
    site.page("/", "A site", page);
}
