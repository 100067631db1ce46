//! Counts of rows and pages: they say nothing of hidden captures.

use grange_index::access::{Decision, Rule, RuleSet};

use super::tests::Bed;

/// More than two blocks of what is visible, and as many hidden rows among them.
const ROWS: usize = 6_100;

fn lines(with_hidden: bool) -> String {
    let line = |path: &str, row: usize| {
        format!(
            "com,example)/{path}/{row:05} 20200101000000 {{\"url\": \"http://example.com/{path}/{row:05}\", \"mime\": \"text/html\", \"status\": \"200\", \"length\": \"10\", \"offset\": \"{row}\", \"filename\": \"a.warc.gz\"}}\n"
        )
    };
    let hidden = |row: usize| match row % 3 {
        0 => line("a-secret", row),
        1 => line(&format!("open/{:05}/secret", row - 1), row),
        _ => line("z-secret", row),
    };
    (0..ROWS).flat_map(|row| [Some(line("open", row)), with_hidden.then(|| hidden(row))]).flatten().collect()
}

#[tokio::test]
async fn counts_of_pages_are_those_of_the_visible_rows() {
    let [some_hidden, visible] = [true, false].map(|with_hidden| {
        let bed = Bed::new();
        let news = bed.collections.get("news").unwrap();
        news.index.load(lines(with_hidden).as_bytes(), None).unwrap();
        let mut rules = Vec::new();
        for prefix in ["com,example)/a-secret", "com,example)/z-secret"] {
            rules.push(Rule::new(prefix, Decision::Block { message: String::new() }));
        }
        for row in (0..ROWS).filter(|row| row % 3 == 1) {
            let prefix = format!("com,example)/open/{:05}/", row - 1);
            rules.push(Rule::new(&prefix, Decision::Block { message: String::new() }));
        }
        news.set_rules(RuleSet::from(rules));
        bed
    });
    let mut answers = Vec::new();
    for path in [
        "/news/cdx/ia?url=example.com/*&showNumPages=true",
        "/news/cdx/ia?url=example.com/*&showNumPages=true&pageSize=1",
        "/news/cdx/ia?url=example.com/*&showPagedIndex=true",
        "/news/cdx/ia?url=example.com/*&showPagedIndex=true&pageSize=1&page=1",
        "/news/cdx?url=example.com/*&showNumPages=true",
        "/news/cdx?url=example.com/*&showNumPages=true&pageSize=1",
        "/news/cdx?url=example.com/*&showPagedIndex=true",
        "/news/cdx?url=example.com/*&showPagedIndex=true&output=json",
        "/news/cdx?url=example.com/a-secret*&showNumPages=true",
    ] {
        let (found, expected) = (some_hidden.get(path).await, visible.get(path).await);
        assert_eq!((found.status, found.text()), (expected.status, expected.text()), "{path}");
        answers.push(found.text().to_owned());
    }
    // 6,100 rows are three blocks, 12,200 would be five.
    assert_eq!(answers[1], "3\n");
    assert_eq!(answers[5], "{\"blocks\": 3, \"pages\": 3, \"pageSize\": 1}\n");
    assert_eq!(answers[6].lines().count(), 3, "{}", answers[6]);
}
