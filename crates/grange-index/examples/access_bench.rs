//! What access rules cost: the same CDX answers without rules and with a hundred thousand of them.
//!
//! ```text
//! cargo run --release -p grange-index --example access_bench
//! ```

use std::time::Instant;

use grange_index::access::{CaptureFacts, Decision, LookupHint, Reader, Rule, RuleSet};
use grange_index::dialect::{Params, ia};
use grange_index::{CaptureView, Index, Settings};

const HOSTS: usize = 20_000;
const PAGES: usize = 10;
/// Domains with rules: a domain has three.
const DOMAINS: usize = 33_334;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let index = Index::open(folder.path().join("index"), Settings::default())?;
    let lines = (0..HOSTS)
        .flat_map(|host| (0..PAGES).map(move |page| (host, page)))
        .map(|(host, page)| {
            format!(
                "dk,h{host:05})/{page} 20200101000000 {{\"url\": \"http://h{host:05}.dk/{page}\", \"mime\": \"text/html\", \"status\": \"200\", \"digest\": \"sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\", \"length\": \"10\", \"offset\": \"{page}\", \"filename\": \"a.warc.gz\"}}\n"
            )
        })
        .collect::<Vec<_>>()
        .concat();
    index.load(lines.as_bytes(), None)?;
    let snapshot = index.snapshot();
    let domains = (0..DOMAINS).flat_map(|domain| {
        [')', ':', ','].map(|end| {
            let decision = Decision::Networks { networks: vec!["127.0.0.0/8".to_owned()] };
            Rule::new(&format!("dk,h{:05}{end}", domain * 2), decision)
        })
    });
    let sets = [RuleSet::default(), RuleSet::from(domains.collect::<Vec<_>>())];
    let questions: Vec<Params> = (0..HOSTS)
        .map(|host| Params::parse(&format!("url=h{:05}.dk&matchType=host", host * 7919 % HOSTS)))
        .chain([Params::parse("url=dk&matchType=domain")])
        .collect();
    let reader = Reader { address: Some("127.0.0.1".parse()?), ..Reader::default() };
    let mut best = [f64::MAX; 2];
    let mut bytes = [0; 2];
    for _ in 0..ROUNDS {
        for (at, set) in sets.iter().enumerate() {
            let begun = Instant::now();
            bytes[at] = 0;
            for question in &questions {
                let hint = LookupHint::default();
                let sees = |view: &CaptureView<'_>| {
                    let facts = CaptureFacts::of_view("archive", view, &Vec::new);
                    set.judge(&facts, &reader, &hint).is_visible()
                };
                let mut out = Vec::new();
                ia(&snapshot, question, &sees, &mut out)?;
                bytes[at] += out.len();
            }
            best[at] = best[at].min(begun.elapsed().as_secs_f64());
        }
    }
    assert_eq!(bytes[0], bytes[1], "this reader may see everything");
    let rate = best.map(|seconds| questions.len() as f64 / seconds);
    println!("{} rules: {:.0} answers/s", sets[0].len(), rate[0]);
    println!(
        "{} rules: {:.0} answers/s ({:+.1} %)",
        sets[1].len(),
        rate[1],
        (rate[1] / rate[0] - 1.0) * 100.0
    );
    Ok(())
}
