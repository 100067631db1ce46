//! What a template says about queues, order, retries and memory.

use grange_base::{Period, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hops::Hop;
use crate::politeness::Pace;
use crate::status::FetchStatus;

/// The frontier's part of a template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What one queue holds: the URLs of one host, or those of one registrable domain. It cannot be changed once the
    /// crawl began.
    pub queue_by: QueueBy,

    /// When two URLs count as the same. It cannot be changed once the crawl began.
    pub canonical: Canonical,

    /// In which order the URLs of one queue are taken.
    pub priorities: Priorities,

    /// How many URLs of one queue are fetched at once. Politeness asks for 1.
    pub parallel_per_queue: u32,

    /// How many URLs of one host are fetched at once, over all its ports and queues; 0 is no limit.
    pub parallel_per_host: u32,

    /// How many URLs are fetched at once from one address, however many hosts live there; 0 is no limit.
    pub parallel_per_ip: u32,

    /// How fast hosts are asked.
    pub pace: Pace,

    /// How often a URL is tried again after a failure that may pass. Heritrix tries 30 times in 7 hours, for which a
    /// crawl of a week has time and others have not.
    pub max_retries: u32,

    /// How long such a URL waits for its next try; the others of its queue go on meanwhile.
    pub retry_delay: Period,

    /// Try again after 429 and 503 too.
    pub retry_overloaded: bool,

    /// Try again after any other 5xx too.
    pub retry_server_errors: bool,

    /// A queue whose host could not be reached so many times in a row is parked; 0 never parks.
    pub park_after: u32,

    /// How long a parked queue waits before one URL of it is tried again.
    pub park_for: Period,

    /// A queue parked so many times in a row is retired with what it holds, so that dead hosts do not keep a crawl
    /// from ending; its domain is then unfinished. 0 never gives up.
    pub max_parks: u32,

    /// Hosts of one registrable domain that a crawl queues URLs of; links to more hosts are left out, and an alert names the
    /// domain. A server that answers under every name can invent hosts without end, and each takes some 400 bytes of memory for
    /// as long as the crawl lasts. Seeds are always queued. 0 is no limit.
    pub max_hosts_per_domain: u32,

    /// Queues of one crawl, which is its hosts unless `queue_by` says otherwise; links to more hosts are left out. A million
    /// take some 400 MB. Seeds are always queued. 0 is no limit.
    pub max_queues: u32,

    /// Memory of the filter in front of the seen URLs, taken once. 16 MiB answer 1 in 1,000 wrongly at 9,000,000 URLs
    /// (a wrong answer costs a look on disk, never a URL).
    pub seen_filter: Size,

    /// Memory for blocks of the frontier's files.
    pub cache: Size,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            queue_by: QueueBy::Host,
            canonical: Canonical::Precise,
            priorities: Priorities::default(),
            parallel_per_queue: 1,
            parallel_per_host: 1,
            parallel_per_ip: 0,
            pace: Pace::default(),
            max_retries: 3,
            retry_delay: Period::from_secs(60),
            retry_overloaded: true,
            retry_server_errors: false,
            park_after: 5,
            park_for: Period::from_secs(600),
            max_parks: 6,
            max_hosts_per_domain: 20_000,
            max_queues: 1_000_000,
            seen_filter: Size::mib(16),
            cache: Size::mib(32),
        }
    }
}

impl Settings {
    /// Whether a URL that came back with `status` after `tries` earlier tries is to be tried again, and how much
    /// later. `cut` says that the response broke off before its end. Without an answer the status is final.
    pub fn retry(&self, status: FetchStatus, cut: bool, tries: u32) -> Option<std::time::Duration> {
        let may_pass = match status.0 {
            _ if cut => true,
            // Name, connection, answer or time: Heritrix tries all of them again.
            -4..=-1 => true,
            429 | 503 => self.retry_overloaded,
            500..=599 => self.retry_server_errors,
            _ => false,
        };
        (may_pass && tries < self.max_retries).then_some(self.retry_delay.0)
    }
}

/// What one queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueBy {
    /// The URLs of one host; ports other than the scheme's have their own.
    #[default]
    Host,
    /// The URLs of one registrable domain.
    Domain,
}

/// When two URLs count as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Canonical {
    /// When only user names, fragments, session ids or an empty query differ.
    #[default]
    Precise,
    /// As Heritrix says: also when letter case or a leading `www.` differ.
    Heritrix,
}

/// The order inside a queue: lower numbers sooner, 1 to 250 (prerequisites always come first); then fewer hops sooner,
/// if so wished; then first come, first served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Priorities {
    pub seed: u8,
    /// Where a server sent us: part of getting the page.
    pub redirect: u8,
    /// Parts of a page, so that pages become whole.
    pub embed: u8,
    /// Guesses by custom, such as favicons.
    pub inferred: u8,
    pub link: u8,
    pub submit: u8,
    /// Entries of site maps.
    pub sitemap: u8,
    /// Strings in scripts that look like URLs.
    pub speculative: u8,
    /// Fewer hops from the seed go first: breadth before depth.
    pub by_hops: bool,
}

impl Default for Priorities {
    fn default() -> Priorities {
        Priorities {
            seed: 10,
            redirect: 20,
            embed: 20,
            inferred: 30,
            link: 40,
            submit: 40,
            sitemap: 50,
            speculative: 60,
            by_hops: true,
        }
    }
}

impl Priorities {
    /// The number for a URL with this last hop; none is a seed.
    pub fn of(&self, last: Option<Hop>) -> u8 {
        let wished = match last {
            None => self.seed,
            Some(Hop::Prerequisite) => return 0,
            Some(Hop::Redirect) => self.redirect,
            Some(Hop::Embed) => self.embed,
            Some(Hop::Inferred) => self.inferred,
            Some(Hop::Link) => self.link,
            Some(Hop::Submit) => self.submit,
            Some(Hop::Manifest) => self.sitemap,
            Some(Hop::Speculative) => self.speculative,
        };
        wished.clamp(1, 250)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again_and_only_so_often() {
        let all = Settings { retry_server_errors: true, ..Settings::default() };
        let none = Settings { retry_overloaded: false, ..Settings::default() };
        let usual = Settings::default();
        for (settings, status, tries, again) in [
            (&usual, -1, 0, true),
            (&usual, -2, 2, true),
            (&usual, -3, 3, false),
            (&usual, -4, 0, true),
            (&usual, -4, 3, false),
            (&usual, 0, 0, false),
            (&usual, 200, 0, false),
            (&usual, 404, 0, false),
            (&usual, 429, 0, true),
            (&usual, 503, 0, true),
            (&usual, 500, 0, false),
            (&all, 500, 0, true),
            (&all, 599, 2, true),
            (&all, 600, 0, false),
            (&none, 503, 0, false),
            (&none, 429, 0, false),
        ] {
            let delay = settings.retry(FetchStatus(status), false, tries);
            assert_eq!(delay, again.then_some(settings.retry_delay.0), "{status} after {tries}");
        }
        assert_eq!(usual.retry(FetchStatus(200), true, 2), Some(usual.retry_delay.0), "it broke off");
        assert_eq!(usual.retry(FetchStatus(200), true, 3), None);
    }

    #[test]
    fn the_usual_order_is_prerequisites_seeds_embeds_links_sitemaps() {
        let order = [
            Some(Hop::Prerequisite),
            None,
            Some(Hop::Embed),
            Some(Hop::Inferred),
            Some(Hop::Link),
            Some(Hop::Manifest),
            Some(Hop::Speculative),
        ];
        let numbers: Vec<u8> = order.iter().map(|hop| Priorities::default().of(*hop)).collect();
        assert!(numbers.is_sorted() && numbers[0] == 0, "{numbers:?}");
        let odd = Priorities { link: 0, embed: 255, ..Priorities::default() };
        assert_eq!((odd.of(Some(Hop::Link)), odd.of(Some(Hop::Embed))), (1, 250));
    }

    #[test]
    fn settings_are_read_back_and_unknown_names_refused() {
        let text = toml::to_string(&Settings::default()).unwrap();
        assert_eq!(toml::from_str::<Settings>(&text).unwrap(), Settings::default());
        assert!(toml::from_str::<Settings>("queue-by = 'host'").is_err());
        let one: Settings = toml::from_str("queue_by = 'domain'\n[pace]\nmin_delay = '1s'").unwrap();
        assert_eq!(one.queue_by, QueueBy::Domain);
        assert_eq!(one.pace.max_delay, Period::from_secs(30));
    }
}
