//! The front page: leads to the articles and to every chapter.

use crate::web::place::Place;
use crate::web::site::Builder;

pub(super) fn write(site: &mut Builder, chapters: &[&str]) {
    let mut page = site.document();
    page.plant("<p><a href=\"/p/0.html\">Articles</a></p>", &[(Place::AHref, "/p/0.html")]);
    for chapter in chapters {
        let path = format!("/{chapter}/");
        page.plant(&format!("<p><a href=\"{path}\">On {chapter}</a></p>"), &[(Place::AHref, &path)]);
    }
    if let Some(next) = site.elsewhere() {
        let next = format!("{next}/");
        page.plant(&format!("<p><a href=\"{next}\">A neighbour</a></p>"), &[(Place::AHref, &next)]);
    }
    site.page("/", "A site", page);
}
