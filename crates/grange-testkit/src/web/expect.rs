//! What a right crawl captures: a walk over the planted links under the rules of the crawl.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use data_encoding::BASE32;
use serde::Serialize;
use sha1::{Digest, Sha1};

use super::answer::{Answer, Body, Gate};
use super::article::{Articles, Item};
use super::coding::Coding;
use super::document::Link;
use super::gate;
use super::name::Sub;
use super::place::{Hop, Place};
use super::site::Resource;
use super::{Found, Web};

/// How far a crawl goes from its seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The hosts of the seeds only.
    Hosts,
    /// The sites of the seeds with all their sub-hosts.
    #[default]
    Domains,
    /// Every host of this web.
    Everything,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RobotsPolicy {
    #[default]
    Obey,
    /// robots.txt is fetched, and that is all.
    Ignore,
    /// Obeyed, except for what pages need in order to look right.
    ExceptEmbeds,
}

/// The settings of the crawl whose outcome is wanted.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Empty: the front pages of all sites.
    pub seeds: Vec<String>,
    pub scope: Scope,
    /// The longest path from a seed, every letter counted.
    pub max_hops: Option<usize>,
    /// Out of scope, a capture needs a path that ends in at most so many hops that are neither link nor redirect.
    pub embed_hops: usize,
    /// How many of those may be speculative.
    pub speculative_hops: usize,
    pub robots: RobotsPolicy,
    /// Site maps named in robots.txt are read.
    pub sitemaps: bool,
    /// `/favicon.ico` of every host is fetched.
    pub favicons: bool,
    /// `rel=nofollow` is followed, as archives do.
    pub nofollow: bool,
    pub cookies: bool,
    /// The crawl knows [`USER`](super::USER) and [`PASSWORD`](super::PASSWORD).
    pub credentials: bool,
    /// 429 and 503 are tried again later.
    pub retries: bool,
    /// What Accept-Encoding offers.
    pub codings: BTreeSet<Coding>,
    /// Places that the crawl does not look into.
    pub blind: BTreeSet<Place>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            seeds: Vec::new(),
            scope: Scope::default(),
            max_hops: None,
            embed_hops: 1,
            speculative_hops: 1,
            robots: RobotsPolicy::default(),
            sitemaps: true,
            favicons: false,
            nofollow: true,
            cookies: true,
            credentials: false,
            retries: true,
            codings: BTreeSet::new(),
            blind: BTreeSet::new(),
        }
    }
}

/// One capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expected {
    pub method: &'static str,
    pub status: u16,
    /// The value of Content-Type, empty without one.
    pub mime: String,
    /// Of the payload: transfer coding undone, content coding kept.
    pub length: u64,
    /// `sha1:` and base 32, as in WARC-Payload-Digest.
    pub payload_sha1: String,
    /// The shortest path from a seed, in letters; of equally short ones the one found first.
    pub hops: String,
    /// Where it was found; empty for seeds.
    pub via: String,
    pub place: Place,
}

/// One URL on its way to become a capture.
struct Step {
    url: String,
    hops: String,
    via: String,
    place: Place,
}

struct Walk<'a> {
    web: &'a Web,
    rules: &'a Rules,
    /// Sites in scope; with a sub-host when the scope is by host.
    seed_sites: HashSet<(usize, Option<Sub>)>,
    queue: VecDeque<Step>,
    seen: HashSet<String>,
    found: BTreeMap<String, Expected>,
}

impl Web {
    /// All captures of a crawl that makes no mistake, by URL.
    ///
    /// Of the profile wild, only what is outside endless and broken places.
    pub fn expected(&self, rules: &Rules) -> BTreeMap<String, Expected> {
        let seeds = if rules.seeds.is_empty() { self.seeds() } else { rules.seeds.clone() };
        let seed_sites = seeds
            .iter()
            .filter_map(|url| self.names().split(url))
            .map(|(site, sub, _)| (site, (rules.scope == Scope::Hosts).then_some(sub)))
            .collect();
        let mut walk = Walk {
            web: self,
            rules,
            seed_sites,
            queue: VecDeque::new(),
            seen: HashSet::new(),
            found: BTreeMap::new(),
        };
        for seed in seeds {
            walk.meet(Step { url: seed, hops: String::new(), via: String::new(), place: Place::Seed });
        }
        while let Some(step) = walk.queue.pop_front() {
            walk.visit(step);
        }
        walk.found
    }
}

impl Walk<'_> {
    /// A URL was seen: taken up if new and within the rules.
    fn meet(&mut self, step: Step) {
        let Some((site, sub, _)) = self.web.names().split(&step.url) else { return };
        if !self.seen.contains(&step.url) && self.in_scope(site, sub, &step.hops) {
            self.seen.insert(step.url.clone());
            self.queue.push_back(step);
        }
    }

    fn in_scope(&self, site: usize, sub: Sub, hops: &str) -> bool {
        if self.rules.max_hops.is_some_and(|most| hops.len() > most) {
            return false;
        }
        if self.rules.scope == Scope::Everything
            || self.seed_sites.contains(&(site, None))
            || self.seed_sites.contains(&(site, Some(sub)))
        {
            return true;
        }
        let tail: Vec<char> = hops.chars().rev().take_while(|hop| !matches!(hop, 'L' | 'M')).collect();
        let embeds = tail.iter().filter(|hop| **hop != 'R').count();
        let speculative = tail.iter().filter(|hop| **hop == 'X').count();
        !tail.is_empty() && embeds <= self.rules.embed_hops && speculative <= self.rules.speculative_hops
    }

    fn visit(&mut self, step: Step) {
        let Some((site, sub, target)) = self.web.names().split(&step.url) else { return };
        let Some(found) = self.web.find(site, sub, target) else { return };
        // A host is asked for its robots.txt before anything else, also when the answer is ignored.
        if step.place != Place::Robots {
            self.prerequisites(site, sub, &step);
        }
        let excluded = sub == Sub::Bare
            && (self.web.robots(site).excludes_all()
                || matches!(&found, Found::Resource(resource) if resource.excluded));
        let obeyed = match self.rules.robots {
            RobotsPolicy::Obey => true,
            RobotsPolicy::Ignore => false,
            RobotsPolicy::ExceptEmbeds => step.place.hop() != Hop::Embed,
        };
        if excluded && obeyed && step.place != Place::Robots {
            return;
        }
        match found {
            Found::Article(site, item) => self.article(site, item, step),
            Found::Resource(resource) => self.resource(&resource, step),
        }
    }

    fn prerequisites(&mut self, site: usize, sub: Sub, step: &Step) {
        let icon = self.rules.favicons.then_some(("/favicon.ico", Place::Favicon));
        // The last one pushed to the front comes first.
        for (path, place) in icon.into_iter().chain([("/robots.txt", Place::Robots)]) {
            let url = self.web.url(site, sub, path);
            if self.seen.insert(url.clone()) {
                let hops = format!("{}{}", step.hops, place.hop().letter());
                self.queue.push_front(Step { url, hops, via: step.url.clone(), place });
            }
        }
    }

    fn article(&mut self, site: usize, item: Item, step: Step) {
        let articles = self.web.articles();
        if let Item::Page(page) = item {
            let here = |item| self.web.url(site, Sub::Bare, &articles.path(item));
            let mut links = vec![(Place::ImgSrc, here(Item::Picture(Articles::picture_on(page))))];
            links.extend(articles.links(site, page).map(|target| (Place::AHref, here(Item::Page(target)))));
            let next = articles.next_site(site, page);
            links.extend(next.map(|next| (Place::AHref, self.web.url(next, Sub::Bare, "/"))));
            for (place, url) in links {
                self.follow(&Link { place, url }, &step);
            }
        }
        let mut body = Vec::new();
        articles.write(site, item, &mut body);
        let mut weight = Weight::default();
        weight.add(&body);
        self.capture(step, "GET", 200, Articles::mime(item), weight);
    }

    fn resource(&mut self, resource: &Resource, step: Step) {
        let answer = &resource.answer;
        // Broken on purpose, or without end: what is captured depends on the crawler.
        if matches!(answer.body, Body::Wire { .. }) || resource.endless {
            return;
        }
        let rules = self.rules;
        let open = match answer.gate {
            Gate::Open => true,
            Gate::Cookie => rules.cookies,
            Gate::Basic | Gate::Digest => rules.credentials,
            Gate::Session => rules.credentials && rules.cookies,
            Gate::LogIn => false,
            Gate::Busy { .. } => rules.retries,
        };
        if !open {
            if answer.gate == Gate::Session
                && let Some((site, sub, _)) = self.web.names().split(&step.url)
            {
                let url = self.web.url(site, sub, gate::FORM);
                self.follow(&Link { place: Place::Location, url }, &step);
            }
            self.weigh(&gate::closed(answer.gate), "GET", step);
            return;
        }
        if answer.gate == Gate::Session {
            self.log_in(&step);
        }
        for link in &resource.links {
            self.follow(link, &step);
        }
        self.weigh(answer, "GET", step);
    }

    /// The form is sent once, before the first page behind it.
    fn log_in(&mut self, step: &Step) {
        let Some((site, sub, _)) = self.web.names().split(&step.url) else { return };
        let url = self.web.url(site, sub, gate::ENTER);
        if self.seen.insert(url.clone()) {
            let hops = format!("{}{}", step.hops, Hop::Prerequisite.letter());
            let step = Step { url, hops, via: step.url.clone(), place: Place::LogIn };
            let home = Link { place: Place::Location, url: self.web.url(site, sub, gate::HOME) };
            self.follow(&home, &step);
            self.weigh(&gate::welcome(), "POST", step);
        }
    }

    fn follow(&mut self, link: &Link, from: &Step) {
        let rules = self.rules;
        let skipped = match link.place {
            Place::RobotsSitemap | Place::SitemapIndex | Place::SitemapPage => !rules.sitemaps,
            Place::NoFollow => !rules.nofollow,
            Place::MetaNoFollow => rules.robots != RobotsPolicy::Ignore,
            _ => false,
        };
        if !skipped && !rules.blind.contains(&link.place) {
            let hops = format!("{}{}", from.hops, link.place.hop().letter());
            let mut step = Step { url: link.url.clone(), hops, via: from.url.clone(), place: link.place };
            // Where robots.txt moved to is still robots.txt: no rule excludes it, no scope ends before it.
            if from.place == Place::Robots && link.place == Place::Location {
                if self.seen.insert(step.url.clone()) {
                    step.place = Place::Robots;
                    self.queue.push_front(step);
                }
            } else {
                self.meet(step);
            }
        }
    }

    fn weigh(&mut self, answer: &Answer, method: &'static str, step: Step) {
        let mut weight = Weight::default();
        match answer.coding_for(|coding| self.rules.codings.contains(&coding)) {
            None => answer.body.pieces(|piece| weight.add(piece)),
            Some(coding) => weight.add(&coding.encode(&answer.body.whole())),
        }
        self.capture(step, method, answer.status, answer.mime(), weight);
    }

    fn capture(&mut self, step: Step, method: &'static str, status: u16, mime: &str, weight: Weight) {
        let (length, payload_sha1) = weight.done();
        let Step { url, hops, via, place } = step;
        let mime = mime.to_owned();
        self.found.insert(url, Expected { method, status, mime, length, payload_sha1, hops, via, place });
    }
}

/// Length and digest of a payload.
#[derive(Default)]
pub(crate) struct Weight {
    bytes: u64,
    sha1: Sha1,
}

impl Weight {
    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.sha1.update(piece);
    }

    pub(crate) fn done(self) -> (u64, String) {
        (self.bytes, format!("sha1:{}", BASE32.encode(&self.sha1.finalize())))
    }
}
