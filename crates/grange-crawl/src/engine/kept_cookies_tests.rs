use std::collections::BTreeSet;

use grange_base::Clock;
use tempfile::TempDir;

use super::*;
use crate::fetch::{DOMAINS_MAX, Settings};
use crate::frontier;
use crate::job::Budgets;

/// A crawl's folder, as far as cookies need one.
struct Kept(TempDir);

/// One run of the crawl in it.
struct Run {
    fetcher: Fetcher,
    frontier: Frontier,
    cookies: KeptCookies,
}

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

fn host(number: usize) -> String {
    // Not in the order in which they are met.
    format!("h{:06}.example", (number * 7919) % 1_000_003)
}

impl Kept {
    fn file(&self) -> std::path::PathBuf {
        self.0.path().join("cookies.txt")
    }

    /// The domains that have marks.
    fn marks(&self, frontier: Frontier) -> BTreeSet<String> {
        drop(frontier);
        let path = self.0.path().join("frontier");
        let (_, resumed) =
            Frontier::open(&path, frontier::Settings::default(), Budgets::default(), now()).unwrap();
        let domain = |name: &String| name.strip_prefix("cookies/").map(str::to_owned);
        resumed.marks.keys().filter_map(domain).collect()
    }

    fn run(&self) -> Run {
        let settings = Settings { contact_url: "http://operator.example/".to_owned(), ..Settings::default() };
        let fetcher = Fetcher::new(&settings, self.0.path(), Clock::system()).unwrap();
        let path = self.0.path().join("frontier");
        let (frontier, resumed) =
            Frontier::open(&path, frontier::Settings::default(), Budgets::default(), now()).unwrap();
        let kept = CrawlChanges::from_marks(&resumed.marks).unwrap();
        let cookies = load(&fetcher, &frontier, &kept, &self.file(), now()).unwrap();
        Run { fetcher, frontier, cookies }
    }
}

impl Run {
    /// A response of a host that sets a cookie.
    fn met(&self, number: usize) {
        let url = Url::parse(&format!("http://{}/", host(number))).unwrap();
        let value = format!("a={number}");
        self.fetcher.cookies().store(&url, std::iter::once(value.as_bytes()), now());
        self.cookies.keep(&self.fetcher, &self.frontier, &url).unwrap();
    }

    fn held(&self) -> BTreeSet<String> {
        self.fetcher.cookies().by_domain().into_iter().map(|(domain, _)| domain).collect()
    }
}

fn hosts(numbers: std::ops::Range<usize>) -> BTreeSet<String> {
    numbers.map(host).collect()
}

#[test]
fn cookies_that_made_room_for_others_are_kept_no_longer() {
    let kept = Kept(tempfile::tempdir().unwrap());
    let run = kept.run();
    for number in 0..DOMAINS_MAX + 50 {
        run.met(number);
    }
    // One comes back, and makes another one go.
    run.met(3);
    let mut expected = hosts(51..DOMAINS_MAX + 50);
    expected.insert(host(3));
    assert_eq!(run.held(), expected);
    assert_eq!(kept.marks(run.frontier), expected);
}

#[test]
fn a_crawl_that_was_killed_has_the_cookies_that_were_set_last_however_many_it_had_kept() {
    let kept = Kept(tempfile::tempdir().unwrap());
    let run = kept.run();
    // As an earlier version left them: more than a jar holds.
    let many = (0..DOMAINS_MAX + 50).map(|number| {
        let text = format!("{}\tFALSE\t/\tFALSE\t0\ta\tb\n", host(number));
        numbered(number as u64 + 1, &host(number), &text)
    });
    run.frontier.put_marks(&many.collect::<Vec<_>>(), &[]).unwrap();
    drop(run);
    let run = kept.run();
    assert_eq!(run.held(), hosts(50..DOMAINS_MAX + 50));
    // The order goes on where it was, over one more kill.
    for number in DOMAINS_MAX + 50..DOMAINS_MAX + 60 {
        run.met(number);
    }
    assert_eq!(kept.marks(run.frontier), hosts(60..DOMAINS_MAX + 60));
    let run = kept.run();
    run.met(DOMAINS_MAX + 60);
    assert_eq!(run.held(), hosts(61..DOMAINS_MAX + 61));
}

#[test]
fn the_file_of_a_crawl_that_ended_keeps_the_order_of_use_too() {
    let kept = Kept(tempfile::tempdir().unwrap());
    let run = kept.run();
    for number in 0..DOMAINS_MAX {
        run.met(number);
    }
    run.fetcher.cookies().save(&kept.file()).unwrap();
    drop(run);
    let run = kept.run();
    assert!(!kept.file().exists(), "from now on the frontier knows better");
    for number in DOMAINS_MAX..DOMAINS_MAX + 10 {
        run.met(number);
    }
    assert_eq!(run.held(), hosts(10..DOMAINS_MAX + 10));
    assert_eq!(kept.marks(run.frontier), hosts(10..DOMAINS_MAX + 10));
    // Killed: the marks have the order too.
    let run = kept.run();
    run.met(DOMAINS_MAX + 10);
    assert_eq!(run.held(), hosts(11..DOMAINS_MAX + 11));
}
