//! One site: everything on it that is not an article, with the links planted in it.

use std::collections::HashMap;
use std::sync::Arc;

use super::answer::{Answer, Gate};
use super::document::{Document, Link};
use super::leaf::leaf;
use super::name::{Names, Sub};
use super::robots::Robots;
use super::{Profile, article, chapters, sized, traps};

/// Something that has an address.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// As a browser would request it.
    pub url: String,
    pub answer: Answer,
    pub links: Vec<Link>,
    /// Robots may not have it.
    pub excluded: bool,
    /// Planted where no right crawl looks: being asked for it is a mistake of the crawler.
    pub decoy: bool,
    /// Of a place without end: no set of captures is the right one.
    pub endless: bool,
}

/// All resources of one site on all its hosts.
#[derive(Debug)]
pub struct Site {
    index: usize,
    resources: HashMap<(Sub, String), Arc<Resource>>,
    wild: bool,
    names: Names,
    seed: u64,
}

impl Site {
    pub(crate) fn build(names: &Names, seed: u64, profile: Profile, index: usize, crawl_delay: f32) -> Self {
        let mut builder = Builder {
            names: names.clone(),
            seed,
            index,
            profile,
            robots: Robots::of(profile, index),
            crawl_delay,
            resources: HashMap::new(),
            planted: Vec::new(),
            decoys: Vec::new(),
        };
        chapters::write(&mut builder);
        builder.finish()
    }

    /// What stands at a path (with query) of one of the site's hosts.
    pub(crate) fn find(&self, sub: Sub, target: &str) -> Option<Arc<Resource>> {
        if let Some(resource) = self.resources.get(&(sub, key(target))) {
            return Some(Arc::clone(resource));
        }
        // What is made from its own address is not in the map.
        let made = sized::find(&self.names, self.seed, self.index, sub, target);
        let trap = || {
            let wild = self.wild && sub == Sub::Bare;
            wild.then(|| traps::find(&self.names, self.seed, self.index, target)).flatten()
        };
        made.or_else(trap).map(Arc::new)
    }

    /// URLs that no right crawl requests.
    pub fn decoys(&self) -> Vec<&str> {
        let mut urls: Vec<_> = self
            .resources
            .values()
            .filter(|resource| resource.decoy)
            .map(|resource| resource.url.as_str())
            .collect();
        urls.sort_unstable();
        urls
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources.values().map(AsRef::as_ref)
    }
}

/// A site under construction; chapters write into it.
#[derive(Debug)]
pub(crate) struct Builder {
    pub names: Names,
    pub seed: u64,
    pub index: usize,
    pub profile: Profile,
    pub robots: Robots,
    pub crawl_delay: f32,
    resources: HashMap<(Sub, String), Arc<Resource>>,
    planted: Vec<String>,
    decoys: Vec<String>,
}

impl Builder {
    /// `http://h0042.test`
    pub(crate) fn here(&self) -> String {
        self.names.origin(self.index, Sub::Bare)
    }

    pub(crate) fn on(&self, sub: Sub) -> String {
        self.names.origin(self.index, sub)
    }

    /// The origin of the next site, if there is another one.
    pub(crate) fn elsewhere(&self) -> Option<String> {
        let hosts = self.names.hosts;
        (hosts > 1).then(|| self.names.origin((self.index + 1) % hosts, Sub::Bare))
    }

    pub(crate) fn document(&self) -> Document {
        Document::new(&self.here())
    }

    /// An HTML page in UTF-8.
    pub(crate) fn page(&mut self, path: &str, title: &str, document: Document) {
        let answer = Answer::html(document.html(title));
        self.put(path, answer, document);
    }

    /// An answer, and the links that `document` knows to be in it. `path` may also be an absolute URL of this site.
    pub(crate) fn put(&mut self, path: &str, answer: Answer, document: Document) {
        let (links, decoys) = document.into_parts();
        self.planted.extend(links.iter().map(|link| link.url.clone()));
        self.decoys.extend(decoys);
        self.insert(path, answer, links, false);
    }

    /// An answer without links.
    pub(crate) fn put_leaf(&mut self, path: &str, answer: Answer) {
        self.insert(path, answer, Vec::new(), false);
    }

    /// The ordinary leaf of this name, behind a gate.
    pub(crate) fn gated_leaf(&mut self, path: &str, gate: Gate) {
        self.insert(path, leaf(self.seed, self.index, path).gated(gate), Vec::new(), false);
    }

    /// The ordinary leaf of this name, excluded by this site's robots.txt.
    pub(crate) fn excluded_leaf(&mut self, path: &str) {
        self.insert(path, leaf(self.seed, self.index, path), Vec::new(), true);
    }

    fn insert(&mut self, path: &str, answer: Answer, links: Vec<Link>, excluded: bool) {
        let url = if path.starts_with('/') { format!("{}{path}", self.here()) } else { path.to_owned() };
        let Some((_, sub, target)) = self.names.split(&url) else {
            unreachable!("{url} is not of this web: a chapter wrote a wrong address")
        };
        let place = (sub, key(target));
        let resource = Resource { url, answer, links, excluded, decoy: false, endless: false };
        let before = self.resources.insert(place, Arc::new(resource));
        assert!(before.is_none(), "two chapters wrote {path}");
    }

    /// Gives every planted link of this site an end, and notes which addresses are decoys only.
    fn finish(mut self) -> Site {
        for (urls, decoy) in
            [(std::mem::take(&mut self.planted), false), (std::mem::take(&mut self.decoys), true)]
        {
            for url in urls {
                let Some((site, sub, target)) = self.names.split(&url) else { continue };
                let trap = self.profile == Profile::Wild
                    && traps::find(&self.names, self.seed, self.index, target).is_some();
                if site != self.index || article::looks_like(target) || trap {
                    continue;
                }
                let (seed, index) = (self.seed, self.index);
                self.resources.entry((sub, key(target))).or_insert_with(|| {
                    let answer = leaf(seed, index, &format!("{sub:?}{target}"));
                    Arc::new(Resource {
                        url: url.clone(),
                        answer,
                        links: Vec::new(),
                        excluded: false,
                        decoy,
                        endless: false,
                    })
                });
            }
        }
        Site {
            index: self.index,
            resources: self.resources,
            wild: self.profile == Profile::Wild,
            names: self.names,
            seed: self.seed,
        }
    }
}

/// One key for all spellings of one address: escapes are resolved. No two resources of a site share one.
fn key(target: &str) -> String {
    if !target.contains('%') {
        return target.to_owned();
    }
    let bytes = target.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}
