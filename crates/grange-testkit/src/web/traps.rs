//! Endless places (profile wild): pages made from their own address that lead on for ever.

use super::answer::Answer;
use super::dice;
use super::document::Document;
use super::name::{Names, Sub};
use super::place::Place;
use super::site::Resource;

/// Where each trap begins.
pub(crate) const ENTRANCES: [&str; 6] = [
    "/calendar/2026/11/",
    "/session/0/start.html",
    "/again/",
    "/list?page=1",
    "/shop?item=1&PHPSESSID=0123456789abcdef0123456789abcdef",
    "/soft/first.html",
];

/// The page of a trap, if the address is within one.
pub(crate) fn find(names: &Names, seed: u64, site: usize, target: &str) -> Option<Resource> {
    let origin = names.origin(site, Sub::Bare);
    let mut page = Document::new(&origin);
    let number = dice::mix(&[seed, site as u64, dice::of_text(target)]);
    let mut lead = |written: &str, url: &str| {
        page.plant(&format!("<a href=\"{written}\">on</a>"), &[(Place::AHref, url)]);
    };
    let title = match target.get(1..)?.split(['/', '?']).next()? {
        "calendar" => {
            let (year, month) = target.strip_prefix("/calendar/")?.strip_suffix('/')?.split_once('/')?;
            let (year, month): (u32, u32) = (year.parse().ok()?, month.parse().ok()?);
            let at = (year.min(100_000) * 12 + month.clamp(1, 12)).saturating_sub(1);
            for to in [at.saturating_sub(1), at + 1] {
                let url = format!("/calendar/{}/{:02}/", to / 12, to % 12 + 1);
                lead(&url, &url);
            }
            "A calendar"
        }
        // The same three pages, each time under a new session in the path.
        "session" => {
            for name in ["start", "news", "about"] {
                let url = format!("/session/{number:016x}/{name}.html");
                lead(&url, &url);
            }
            "A session"
        }
        // The same in the query, under the name that PHP gives it.
        "shop" => {
            for item in 1..4 {
                let session = format!("{number:016x}{:016x}", number.rotate_left(32));
                let url = format!("/shop?item={item}&PHPSESSID={session}");
                lead(&url.replace('&', "&amp;"), &url);
            }
            "A shop"
        }
        // A relative link without the slash it should begin with.
        "again" if target.ends_with('/') => {
            lead("and/again/", &format!("{target}and/again/"));
            "Again"
        }
        "list" => {
            let at: u64 = target.strip_prefix("/list?page=")?.parse().ok()?;
            let url = format!("/list?page={}", at.saturating_add(1));
            lead(&url, &url);
            "A list"
        }
        // Every name exists, and says that it does not.
        "soft" => {
            let url = format!("/soft/{number:x}.html");
            lead(&url, &url);
            "Page not found"
        }
        _ => return None,
    };
    Some(resource(&origin, target, title, page))
}

fn resource(origin: &str, target: &str, title: &str, page: Document) -> Resource {
    let answer = Answer::html(page.html(title));
    let (links, _) = page.into_parts();
    Resource { url: format!("{origin}{target}"), answer, links, excluded: false, decoy: false, endless: true }
}
