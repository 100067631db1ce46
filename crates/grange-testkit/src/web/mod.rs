//! A synthetic web: thousands of hosts on loopback, told apart by the Host header, every answer a pure function of
//! seed, site and path.
//!
//! It is the ground truth for crawls. One model describes the pages and the links planted in them; the server answers
//! from it, and [`Web::expected`] walks it and says exactly what a right crawl captures. The expectation never reads a
//! page: it knows which links were planted where.
//!
//! ```no_run
//! # async fn show() -> std::io::Result<()> {
//! use grange_testkit::web::{Options, Rules, Web};
//! let web = Web::new(Options { hosts: 3, pages: 20, ..Options::default() });
//! let server = web.serve("127.0.0.1:0").await?;
//! // … crawl web.seeds(), every host sent to server.addr() …
//! for (url, expected) in web.expected(&Rules::default()) {
//!     println!("{url} {} {}", expected.status, expected.payload_sha1);
//! }
//! server.stop().await;
//! # Ok(()) }
//! ```

mod answer;
mod article;
mod chapters;
mod coding;
mod dice;
mod document;
mod expect;
mod gate;
mod leaf;
mod name;
mod place;
mod raw;
mod robots;
mod server;
mod site;
mod sized;
#[cfg(test)]
mod tests;
mod traps;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

pub use self::answer::Ending;
pub use self::coding::Coding;
pub use self::expect::{Expected, RobotsPolicy, Rules, Scope};
pub use self::name::{Scheme, Sub};
pub use self::place::{Hop, Place};
pub use self::raw::RawServer;
pub use self::robots::Robots;
pub use self::server::{Moment, ServeOptions, WebServer};
pub use self::site::Site;

use self::answer::Body;
use self::article::{Articles, Item};
use self::name::Names;

/// Opens every protected area.
pub const USER: &str = "reader";
/// Goes with [`USER`].
pub const PASSWORD: &str = "open-sesame";

/// Built sites kept at hand. A site is some 200 KB and takes a millisecond to build; all are forgotten when full.
const SITES_KEPT: usize = 256;

/// What kind of web.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Articles and pictures only, as cheap as possible: for benches.
    Plain,
    /// Also everything that ends and has one right answer.
    #[default]
    Deterministic,
    /// Also endless places and broken servers.
    Wild,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub hosts: usize,
    /// Articles on each site.
    pub pages: usize,
    pub seed: u64,
    pub profile: Profile,
    /// Which state of the web: from one to the next, one article in `change_every` changes and nothing else does.
    pub generation: u32,
    pub change_every: usize,
    /// What follows after the number in every name. The default makes each site a registrable domain of its own.
    pub suffix: String,
    /// What links and seeds say.
    pub scheme: Scheme,
    /// Seconds in the robots.txt that has a Crawl-delay: small, so that a test which obeys it ends soon.
    pub crawl_delay: f32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hosts: 1,
            pages: 10,
            seed: 1,
            profile: Profile::default(),
            generation: 0,
            change_every: 5,
            suffix: "test".to_owned(),
            scheme: Scheme::Http,
            crawl_delay: 0.05,
        }
    }
}

/// The model. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Web {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    articles: Articles,
    sites: Mutex<HashMap<usize, Arc<Site>>>,
}

/// What stands at an address.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Article(usize, Item),
    Resource(Arc<site::Resource>),
}

impl Web {
    /// At least one host and one page.
    pub fn new(mut options: Options) -> Self {
        options.hosts = options.hosts.max(1);
        options.pages = options.pages.max(1);
        let names = Names { hosts: options.hosts, suffix: options.suffix.clone(), scheme: options.scheme };
        let articles = Articles::new(
            names,
            options.seed,
            options.pages,
            options.generation,
            options.change_every,
            options.profile == Profile::Plain,
        );
        Self { inner: Arc::new(Inner { options, articles, sites: Mutex::default() }) }
    }

    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The front page of every site.
    pub fn seeds(&self) -> Vec<String> {
        (0..self.options().hosts).map(|site| self.url(site, Sub::Bare, "/")).collect()
    }

    pub fn host(&self, site: usize, sub: Sub) -> String {
        self.names().host(site, sub)
    }

    /// The URL of a path on a site.
    pub fn url(&self, site: usize, sub: Sub, path: &str) -> String {
        format!("{}{path}", self.names().origin(site, sub))
    }

    /// One site, without its articles.
    pub fn site(&self, index: usize) -> Arc<Site> {
        let mut sites = self.inner.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(site) = sites.get(&index) {
            return Arc::clone(site);
        }
        let options = self.options();
        let built =
            Arc::new(Site::build(self.names(), options.seed, options.profile, index, options.crawl_delay));
        if sites.len() >= SITES_KEPT {
            sites.clear();
        }
        sites.insert(index, Arc::clone(&built));
        built
    }

    /// The kind of robots.txt that a site has.
    pub fn robots(&self, site: usize) -> Robots {
        Robots::of(self.options().profile, site)
    }

    /// URLs that no right crawl requests, on all sites.
    pub fn decoys(&self) -> BTreeSet<String> {
        (0..self.options().hosts)
            .flat_map(|site| self.site(site).decoys().into_iter().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    /// URLs whose bodies differ between this generation and an earlier one.
    pub fn changed_since(&self, generation: u32) -> BTreeSet<String> {
        let articles = self.articles();
        let changed = |site: usize, page: usize| {
            (generation + 1..=articles.generation).any(|later| articles.changes(site, page, later))
        };
        (0..self.options().hosts)
            .flat_map(|site| {
                (0..articles.pages)
                    .filter(move |page| changed(site, *page))
                    .map(move |page| self.url(site, Sub::Bare, &articles.path(Item::Page(page))))
            })
            .collect()
    }

    /// Answers that are broken (profile wild): URL, the bytes on the wire and what follows them.
    pub fn broken(&self, site: usize) -> Vec<(String, Vec<u8>, Ending)> {
        let site = self.site(site);
        let mut found: Vec<_> = site
            .resources()
            .filter_map(|resource| match &resource.answer.body {
                Body::Wire { bytes, ending } => Some((resource.url.clone(), bytes.clone(), *ending)),
                _ => None,
            })
            .collect();
        found.sort_by(|left, right| left.0.cmp(&right.0));
        found
    }

    pub(crate) fn names(&self) -> &Names {
        &self.inner.articles.names
    }

    pub(crate) fn articles(&self) -> &Articles {
        &self.inner.articles
    }

    pub(crate) fn find(&self, site: usize, sub: Sub, target: &str) -> Option<Found> {
        if sub == Sub::Bare
            && let Some(item) = self.articles().find(target)
        {
            return Some(Found::Article(site, item));
        }
        self.site(site).find(sub, target).map(Found::Resource)
    }
}
