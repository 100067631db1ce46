//! The chapters of a site: each plants one kind of difficulty and links to it from its index page.
//!
//! No two URLs of a site differ only by case, `www.`, session ids, a slash at the end or the order of a query: a crawler
//! that folds such URLs and one that does not must find the same set.

mod addresses;
mod answers;
mod broken;
mod charsets;
mod files;
mod front;
mod gates;
mod html;
mod redirects;
mod robots;
mod sitemaps;

use super::Profile;
use super::site::Builder;

type Chapter = (&'static str, fn(&mut Builder, &str));

const CHAPTERS: [Chapter; 7] = [
    ("html", html::write),
    ("addresses", addresses::write),
    ("charsets", charsets::write),
    ("files", files::write),
    ("answers", answers::write),
    ("redirects", redirects::write),
    ("gates", gates::write),
];

/// Writes everything that a site of this profile has besides articles.
pub(super) fn write(site: &mut Builder) {
    robots::write(site);
    if site.profile == Profile::Plain {
        return;
    }
    sitemaps::write(site);
    let wild: &[Chapter] = if site.profile == Profile::Wild { &[("wild", broken::write)] } else { &[] };
    let mut indexes = vec!["/robots/".to_owned()];
    for (name, write) in CHAPTERS.iter().chain(wild) {
        let index = format!("/{name}/");
        write(site, &index);
        indexes.push(index);
    }
    front::write(site, &indexes);
}
