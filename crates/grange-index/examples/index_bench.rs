//! Measures the capture index: `index_bench make N FILE`, then `index_bench run FILE FOLDER`.
//!
//! `make` writes N sorted CDXJ lines such as a national archive has: hosts by popularity, paths with words and numbers,
//! queries, several captures of a page over the years, one in three with the content of the one before. It goes host by
//! host, so that its memory is that of the largest host, whatever N is.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::time::Instant;

use grange_index::{Index, Position, Settings, Stamp};

/// As the program itself has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A small generator of numbers that is the same everywhere (xorshift*).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Small numbers far more often than large ones.
    fn skewed(&mut self, end: u64) -> u64 {
        let x = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (((end as f64).powf(x) - 1.0) as u64).min(end - 1)
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len() as u64) as usize]
    }
}

const WORDS: &[&str] = &[
    "news", "about", "contact", "article", "image", "press", "archive", "library", "forum", "blog", "user",
    "item", "product", "search", "kultur", "samfund", "politik", "sport", "vejr", "debat", "media", "static",
    "assets", "page", "category", "tag", "author", "event", "calendar", "download", "report", "theme",
    "plugin", "content", "upload", "history", "music", "review", "guide", "travel", "food", "health",
    "science", "school", "city", "market", "house",
];
const ENDS: &[(&str, &str, u64)] = &[
    (".html", "text/html", 30),
    ("/", "text/html", 22),
    ("", "text/html", 12),
    (".jpg", "image/jpeg", 14),
    (".png", "image/png", 7),
    (".js", "application/javascript", 5),
    (".css", "text/css", 4),
    (".pdf", "application/pdf", 3),
    (".gif", "image/gif", 2),
    (".json", "application/json", 1),
];

/// A host: its name, and what all its URLs share.
struct Host {
    number: u64,
    key: String,
    start: String,
    lines: u64,
}

/// Hosts in the order of their keys. The more popular, the more lines: as the logarithm has it.
fn hosts(count: u64) -> Vec<Host> {
    let many = (count / 120).max(10);
    let mut carried = 0.0;
    let make = |number: u64| {
        let mut of_host = Numbers(number.wrapping_mul(0x1234_5678_9abc_def1) | 1);
        let tld = of_host.pick(&["dk", "dk", "dk", "com", "org", "eu", "net"]);
        let name = format!("{}{}{}", of_host.pick(WORDS), of_host.pick(WORDS), of_host.below(100_000));
        let www = if of_host.below(3) > 0 { "www." } else { "" };
        let scheme = if of_host.below(4) > 0 { "https" } else { "http" };
        let share = ((number + 2) as f64 / (number + 1) as f64).ln() / ((many + 1) as f64).ln();
        let exact = share * count as f64 + carried;
        carried = exact - exact.floor();
        let key = format!("{tld},{name})");
        Host { number, key, start: format!("{scheme}://{www}{name}.{tld}"), lines: exact as u64 }
    };
    let mut hosts: Vec<Host> = (0..many).map(make).collect();
    hosts.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    hosts
}

fn make(count: u64, path: &str) {
    let files = (count / 15_000).max(3);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).expect("create the file"));
    let mut lines = Vec::new();
    for host in hosts(count) {
        lines.clear();
        lines_of(&host, files, &mut lines);
        lines.sort_unstable();
        for line in &lines {
            writeln!(out, "{line}").expect("write a line");
        }
    }
    out.flush().expect("write the last lines");
}

fn lines_of(of: &Host, files: u64, lines: &mut Vec<String>) {
    let host = of.number;
    let mut numbers = Numbers(host.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // The first numbers of near seeds are near each other.
    numbers.below(2);
    while (lines.len() as u64) < of.lines {
        let mut url = of.start.clone();
        for _ in 0..=numbers.below(3) {
            url.push('/');
            url.push_str(numbers.pick(WORDS));
            if numbers.below(3) == 0 {
                let _ = write!(url, "-{}", numbers.pick(WORDS));
            }
        }
        // Half of the pages have a title in their address, half a number.
        if numbers.below(2) == 0 {
            let _ = write!(url, "/{}", numbers.below(1_000_000));
        } else {
            url.push('/');
            for _ in 0..3 + numbers.below(4) {
                url.push_str(numbers.pick(WORDS));
                url.push('-');
            }
            let _ = write!(url, "{}", numbers.below(10_000));
        }
        let mut share = numbers.below(100);
        let end = ENDS.iter().find(|(.., weight)| match share.checked_sub(*weight) {
            Some(left) => {
                share = left;
                false
            }
            None => true,
        });
        let (end, mime, _) = end.unwrap_or(&ENDS[0]);
        url.push_str(end);
        if numbers.below(8) == 0 {
            let _ =
                write!(url, "?{}={}&id={}", numbers.pick(WORDS), numbers.pick(WORDS), numbers.below(100_000));
        }
        if numbers.below(20) == 0 {
            url = url.replacen("/a", "/A", 1).replacen("/p", "/P", 1);
        }
        let key = urlkey::key(&url);
        let mut digest = digest(&mut numbers);
        let crawls = 1 + numbers.skewed(7);
        // A host is harvested in one go: captures of one crawl are within hours, in a few neighbouring files.
        let first = numbers.below(40);
        for crawl in 0..crawls {
            let quarter = first + crawl;
            let start = host.wrapping_mul(0x1234_5678_9abc_def1) % 60;
            let minute = (host * 7 + quarter * 13) % 1440 + numbers.below(90);
            let day = 1 + (start + minute / 1440) % 28;
            let time = format!(
                "{:04}{:02}{:02}{:02}{:02}{:02}",
                2010 + quarter / 4,
                1 + quarter % 4 * 3 + start % 3,
                day,
                minute / 60 % 24,
                minute % 60,
                numbers.below(60)
            );
            let file = (quarter * files / 64 + host % (files / 64).max(1) + numbers.below(3)) % files.max(1);
            let revisit = crawl > 0 && numbers.below(3) == 0;
            if crawl > 0 && !revisit && numbers.below(4) > 0 {
                digest = self::digest(&mut numbers);
            }
            let status = match numbers.below(20) {
                0 => "404",
                1 => "301",
                _ => "200",
            };
            let mime = if revisit { "warc/revisit" } else { mime };
            let length = 300 + numbers.skewed(200_000);
            let offset = numbers.below(1_000_000_000);
            lines.push(format!(
                r#"{key} {time} {{"url": "{url}", "mime": "{mime}", "status": "{status}", "digest": "{digest}", "length": "{length}", "offset": "{offset}", "filename": "{}-{quarter}-20{:02}0101120000-{file:06}-kb-prod-har-{:03}.kb.dk.warc.gz"}}"#,
                30_000 + quarter, 10 + quarter / 4, file % 7,
            ));
        }
    }
    lines.truncate(of.lines as usize);
}

fn digest(numbers: &mut Numbers) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    (0..32).map(|_| char::from(LETTERS[numbers.below(32) as usize])).collect()
}

/// User and system seconds of this process, and its resident memory in MB.
fn used() -> (f64, u64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mb = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1))
            .and_then(|kb| kb.parse::<u64>().ok())
            .unwrap_or(0)
            / 1024
    };
    ((ticks(11) + ticks(12)) / 100.0, mb("VmRSS"), mb("VmHWM"))
}

fn measure<T>(what: &str, unit: &str, work: impl FnOnce() -> (T, u64)) -> T {
    let (cpu, ..) = used();
    let start = Instant::now();
    let (result, count) = work();
    let wall = start.elapsed().as_secs_f64();
    let (after, rss, peak) = used();
    let cpu = after - cpu;
    println!(
        "{what}: {count} {unit} in {wall:.2} s ({cpu:.2} cpu s): {:.0}/s, {:.0} per cpu s; rss {rss} MB, peak {peak} MB",
        count as f64 / wall,
        count as f64 / cpu.max(0.01)
    );
    result
}

fn run(path: &str, folder: &str) -> grange_index::Result<()> {
    let level = std::env::var("LEVEL").ok().and_then(|text| text.parse().ok());
    let block = std::env::var("BLOCK").ok().and_then(|text| text.parse().ok());
    let defaults = Settings::default();
    let settings = Settings {
        level: level.unwrap_or(defaults.level),
        block_bytes: block.unwrap_or(defaults.block_bytes),
        ..defaults
    };
    let index = Index::open(folder, settings.clone())?;
    let report = measure("load", "captures", || {
        let input = BufReader::with_capacity(1 << 20, File::open(path).expect("open the lines"));
        let report = index.load(input, Some("1")).expect("load");
        let captures = report.captures;
        (report, captures)
    });
    let stats = index.snapshot().stats();
    println!(
        "{} lines, {} problems; {:.1} bytes per capture, {:.2} captures per url, {} segments, {} files",
        report.lines,
        report.problem_count,
        stats.bytes as f64 / stats.rows as f64,
        stats.rows as f64 / stats.surts as f64,
        stats.segments,
        stats.files
    );
    drop(index);
    let index = measure("open", "index", || (Index::open(folder, settings).expect("open"), 1));
    let snapshot = index.snapshot();

    let mut probes = Vec::new();
    let mut seen = Numbers(7);
    let lines = BufReader::new(File::open(path).expect("open the lines")).lines();
    for line in lines.map_while(Result::ok) {
        if probes.len() < 330_000 || seen.below(20) == 0 {
            let mut fields = line.split(' ');
            let key = fields.next().unwrap_or_default().to_owned();
            let time = Stamp::parse(fields.next().unwrap_or_default()).unwrap_or_default();
            let digest = line
                .split("\"digest\": \"")
                .nth(1)
                .and_then(|rest| rest.get(..32))
                .unwrap_or_default()
                .to_owned();
            let probe = (key, time, digest);
            if probes.len() < 330_000 {
                probes.push(probe);
            } else {
                let at = seen.below(330_000) as usize;
                probes[at] = probe;
            }
        }
    }
    for at in (1..probes.len()).rev() {
        probes.swap(at, seen.below(at as u64 + 1) as usize);
    }
    for round in ["first", "again"] {
        measure(&format!("point lookups, {round}"), "lookups", || {
            let mut found = 0;
            for (surt, time, _) in &probes {
                let mut captures = snapshot.captures(surt, *time).expect("look up");
                let view = captures.next().expect("read").expect("it is there");
                found += u64::from(view.time() == *time && view.offset().is_some());
            }
            assert_eq!(found, probes.len() as u64);
            ((), probes.len() as u64)
        });
    }
    measure("absent keys", "lookups", || {
        let mut found = 0;
        for (surt, time, _) in &probes {
            let absent = format!("{surt}~");
            found += u64::from(
                snapshot.captures(&absent, *time).expect("look up").next().expect("read").is_some(),
            );
        }
        assert_eq!(found, 0);
        ((), probes.len() as u64)
    });
    measure("closest", "lookups", || {
        let time = Stamp::parse("20160101000000").unwrap_or_default();
        for (surt, ..) in &probes[..probes.len() / 4] {
            snapshot.closest(surt, time).expect("look up").expect("it is there");
        }
        ((), probes.len() as u64 / 4)
    });
    measure("digests", "lookups", || {
        for (.., digest) in &probes[..probes.len() / 4] {
            snapshot.digest(digest).expect("look up").expect("it is there");
        }
        ((), probes.len() as u64 / 4)
    });
    measure("host scans, up to 2000 rows", "rows", || {
        let mut rows = 0;
        let mut url = String::new();
        for (surt, ..) in probes.iter().take(5000) {
            let host = &surt[..=surt.find(')').unwrap_or(surt.len() - 1)];
            let end = format!("{}*", &host[..host.len() - 1]);
            let mut scan = snapshot.ascending(Position::before(host), Some(end.into()));
            for _ in 0..2000 {
                let Some(view) = scan.next().expect("scan") else { break };
                url.clear();
                view.url_into(&mut url);
                rows += 1;
            }
        }
        ((), rows)
    });
    measure("whole scan with urls", "rows", || {
        let (mut rows, mut url) = (0, String::new());
        let mut scan = snapshot.ascending(Position::default(), None);
        while let Some(view) = scan.next().expect("scan") {
            url.clear();
            view.url_into(&mut url);
            rows += 1;
        }
        ((), rows)
    });
    Ok(())
}

fn main() -> grange_index::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "make", count, path] => make(count.parse().expect("a number"), path),
        [_, "run", path, folder] => run(path, folder)?,
        _ => eprintln!("index_bench make N FILE | index_bench run FILE FOLDER"),
    }
    Ok(())
}
