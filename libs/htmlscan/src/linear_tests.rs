//! Twice the document is twice the work, counted in bytes looked at, for every token behind every other.

use crate::look::LOOKED;
use crate::{Dialect, Scanner, State};

const TOKENS: &[&str] = &[
    "<",
    "<!",
    "<!-",
    "<!--",
    "-->",
    "--!>",
    "--",
    "-",
    ">",
    "/>",
    "<a",
    "<a>",
    "<a ",
    "<a b",
    "</",
    "</a",
    "</a>",
    "<?",
    "?>",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE ",
    "=",
    "= ",
    "a=",
    "a='",
    "a=\"",
    "a=b ",
    "'",
    "\"",
    "/",
    "x",
    " ",
    "\n",
    "&",
    "é",
    "<script",
    "<script>",
    "<script><!--",
    "<script><!--<script>",
    "</script",
    "</script>",
    "</script ",
    "<style>",
    "</style",
    "</style>",
    "<title>",
    "<textarea>",
    "</textarea",
    "<plaintext>",
    "<noscript>",
    "<iframe>",
    "<svg>",
    "</svg>",
    "<svg><style>",
    "<svg><desc>",
    "<math>",
    "<math><mi>",
    "<p>",
    "<font color>",
];

/// A script may be looked through for its end tag, for a comment, and once more with the comment.
const LOOKS_MAX: usize = 8;
const FIXED_BYTES: usize = 1024;
const TIMES: usize = 100;

fn cost(document: &str, dialect: Dialect) -> usize {
    LOOKED.set(0);
    let mut scanner = Scanner::new(document.as_bytes(), dialect, State::default());
    let mut attributes = Vec::new();
    while scanner.next(&mut attributes).is_some() {}
    LOOKED.get()
}

#[test]
fn twice_the_tokens_are_twice_the_work() {
    let mut found = Vec::new();
    let (mut looks, mut bytes) = (0, 0);
    for dialect in [Dialect::Html, Dialect::Xhtml, Dialect::Browser, Dialect::Xml] {
        for prefix in TOKENS.iter().chain(&[""]) {
            for token in TOKENS {
                let [once, twice] =
                    [TIMES, 2 * TIMES].map(|times| format!("{prefix}{}", token.repeat(times)));
                let (once_cost, cost) = (cost(&once, dialect), cost(&twice, dialect));
                let is_fair =
                    cost <= LOOKS_MAX * twice.len() + FIXED_BYTES && cost <= once_cost * 9 / 4 + FIXED_BYTES;
                (looks, bytes) = (looks + cost, bytes + twice.len());
                if !is_fair {
                    found.push(format!(
                        "{dialect:?}: {prefix:?} and then {token:?} again and again: {} bytes {once_cost} looks, \
                         {} bytes {cost} looks",
                        once.len(),
                        twice.len()
                    ));
                }
            }
        }
    }
    assert!(looks > bytes, "{looks} looks at {bytes} bytes: something is not counted");
    assert!(found.is_empty(), "{}:\n{}", found.len(), found.join("\n"));
}
