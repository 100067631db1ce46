//! The chapters of a site: each plants one kind of difficulty and links to it from its index page.
//!
//! No two URLs of a site differ only by case, `www.`, session ids, a slash at the end or the order of a query: a crawler
//! that folds such URLs and one that does not must find the same set.

mod front;
mod gates;
mod redirects;
mod robots;

use super::Profile;
use super::site::Builder;

/// Writes everything that a site of this profile has besides articles.
pub(super) fn write(site: &mut Builder) {
    robots::write(site);
    if site.profile == Profile::Plain {
        return;
    }
    let chapters = [("redirects", redirects::write as fn(&mut Builder, &str)), ("gates", gates::write)];
    for (name, write) in chapters {
        write(site, &format!("/{name}/"));
    }
    front::write(site, &chapters.map(|(name, _)| name));
}
