//! Every rule, every way out, every capture, every form of its URL and every reader: what is hidden is not seen, counted or
//! hinted at, and what is visible is not lost.

mod ways;
mod web;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grange_index::query::{Keys, Next, Query};
use grange_index::{Index, Settings, Snapshot};
use serde_json::{Value, json};

use ways::{DEPENDENT_WAYS, Served, WAYS, contents, forms, is_proxied, marks, names_time, needs_body};
use web::{Captured, Case, Reader, WEB, bed, cases};

/// Days of captures that a way shows to nobody, whatever the rules: no cell of them can fail for what is lost. The last
/// captures are listed under keys that are not those of their URLs, so only questions about ranges of keys find them.
#[rustfmt::skip]
const NEVER_SHOWN: &[(&str, &[u8])] = &[
    ("replay", &[19, 21]),
    ("head", &[19, 21]),
    ("range", &[19, 21]),
    ("rewritten", &[19, 21]),
    ("as im_", &[19, 21]),
    ("as js_", &[19, 21]),
    ("as if_", &[19, 21]),
    ("form", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 20, 21, 22]),
    ("framed", &[19, 21]),
    ("timegate", &[1, 2, 19, 21]),
    ("timemap link", &[19, 21]),
    ("timemap json", &[19, 21]),
    ("timemap cdxj", &[19, 21]),
    ("calendar", &[19, 21]),
    ("list", &[19, 21]),
    ("urls", &[2, 19, 21]),
    ("start", &[1, 2, 3, 7, 9, 10, 11, 16, 22]),
    ("ia", &[19, 21]),
    ("ia of one", &[19, 20, 21]),
    ("ia prefix", &[19, 21]),
    ("ia domain", &[10]),
    ("ia urn", &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 18, 19, 20, 21, 22]),
    ("ia documentation", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22]),
    ("pywb", &[19, 21]),
    ("pywb prefix", &[19, 21]),
    ("pywb resolved", &[19, 21]),
    ("pywb link", &[19, 21]),
    ("outback", &[19, 21]),
    ("outback prefix", &[19, 21]),
    ("access point", &[19, 21]),
    ("xml", &[19, 21]),
    ("xml prefix", &[2, 19, 21]),
    ("warc", &[19, 21]),
    ("warc prefix", &[19, 21]),
    ("warc documentation", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22]),
    ("wacz", &[19, 21]),
    ("wacz domain", &[10]),
    ("proxy", &[19, 21]),
];

/// Cases tried with all forms of each URL: only rules about URLs can tell one from another.
const IN_ALL_FORMS: [&str; 5] =
    ["no rule", "a prefix with a slash", "an exact URL", "a host", "a block of a host, allowed as a whole"];

/// Cases tried on a copy of the index, too, as replay nodes have it.
const IN_COPIES: [&str; 4] =
    ["no rule", "a prefix with a slash", "a kind of types", "an embargo lifted here"];

/// All of them: one that is left out by mistake is missed here.
const CELLS: u64 = 92_292;

/// What can be seen at all: way, number in [`WEB`], form of the URL.
type Reachable = BTreeSet<(&'static str, usize, String)>;

#[derive(Default)]
struct Found {
    cells: u64,
    wrong: Vec<String>,
}

fn offsets(snapshot: &Snapshot) -> Vec<u64> {
    let mut found = BTreeMap::new();
    let all = Query::new(Keys::Range(String::new(), None)).run(snapshot, |view| {
        found.insert(view.time().to_string(), view.offset().unwrap());
        Ok(Next::More)
    });
    all.unwrap();
    WEB.iter().map(|one| found[&format!("202001{:02}000000", one.day)]).collect()
}

/// Readers whom the rules of a case treat unlike the first.
fn readers(case: &Case) -> Vec<Reader> {
    let all = |reader| WEB.iter().map(|one| case.2(one, reader)).collect::<Vec<_>>();
    let differs = Reader::ALL.iter().any(|reader| all(*reader) != all(Reader::Stranger));
    if differs || case.0 == "no rule" { Reader::ALL.to_vec() } else { vec![Reader::Stranger] }
}

struct Matrix {
    offsets: Vec<u64>,
    reachable: Reachable,
}

impl Matrix {
    /// Looks at everything that one reader is given.
    async fn look(
        &self,
        label: &str,
        served: &Served,
        reader: Reader,
        hides: &dyn Fn(&Captured, Reader) -> bool,
        all_forms: bool,
        found: &mut Found,
    ) {
        for way in WAYS.into_iter().chain(DEPENDENT_WAYS) {
            let who = if is_proxied(way) { Reader::Stranger } else { reader };
            let (hidden, visible): (Vec<&Captured>, Vec<&Captured>) =
                WEB.iter().partition(|one| hides(one, who));
            let contents = contents(&hidden, &visible);
            for (number, one) in WEB.iter().enumerate() {
                for form in forms(way, one.url).into_iter().take(if all_forms { usize::MAX } else { 1 }) {
                    let given = served.ask(way, one, self.offsets[number], &form, reader).await;
                    let (shown, is_hidden) = (given.shows(way, one), hides(one, who));
                    let at = || format!("{label}: {way} of {form} on day {} for {reader:?}", one.day);
                    let reachable = self.reachable.contains(&(way, number, form.clone()));
                    let without_body = needs_body(way)
                        && one.original.is_some_and(|day| hidden.iter().any(|other| other.day == day));
                    let lost = !is_hidden && !without_body && !shown && reachable && WAYS.contains(&way);
                    if shown && (is_hidden || without_body) || lost {
                        let (status, text) = (given.status, given.text.get(..200).unwrap_or(&given.text));
                        found.wrong.push(format!("{}: shown: {shown} ({status} {text})", at()));
                    }
                    let all = given.all();
                    let mut said: Vec<String> = Vec::new();
                    for other in &hidden {
                        let asked = other.day == one.day && names_time(way);
                        said.extend(marks(other.day).into_iter().filter(|_| !asked));
                    }
                    said.extend(contents.iter().cloned());
                    if hides(&WEB[0], who) && hides(&WEB[1], who) {
                        said.push("secret=1".to_owned());
                    }
                    for mark in said.into_iter().filter(|mark| all.contains(mark)) {
                        found.wrong.push(format!("{}: it says {mark}", at()));
                    }
                    let alike = visible.iter().filter(|other| other.url == one.url).count();
                    if ["calendar", "list", "framed"].contains(&way) && given.status == 200 && shown {
                        let count =
                            if alike == 1 { "1 capture".to_owned() } else { format!("{alike} captures") };
                        if !given.text.contains(&count) {
                            found.wrong.push(format!("{}: it does not say {count}", at()));
                        }
                    }
                    found.cells += 1;
                }
            }
        }
        let hidden = |one: &&Captured| hides(one, reader);
        let visible = WEB.iter().filter(|one| !hidden(one)).count() as u64;
        let stats: Value = serde_json::from_str(&served.get("/local/stats", reader).await.text).unwrap();
        let cube = served.get("/local/cube", reader).await.text;
        let counted: u64 =
            cube.lines().skip(1).map(|line| line.rsplit(',').nth(1).unwrap().parse::<u64>().unwrap()).sum();
        if (stats["estimatedRecordCount"].as_u64(), counted) != (Some(visible), visible) {
            found.wrong.push(format!("{label} for {reader:?}: {stats} and {counted}, not {visible}"));
        }
        found.cells += 2;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hidden_is_nowhere_and_what_is_visible_is_everywhere() {
    let bed = bed();
    let index = &bed.collection.index;
    let folder = bed.folder.path().join("copy");
    index.checkpoint(&folder).unwrap();
    let copy = Arc::new(Index::open_read_only(&folder, Settings::default()).unwrap());
    let offsets = offsets(&index.snapshot());
    let allowed = json!({ "surt_prefix": "metadata:", "decision": "allow" });
    let open = Served::new(&bed, index, std::slice::from_ref(&allowed));
    let mut reachable = Reachable::new();
    for (number, one) in WEB.iter().enumerate() {
        for way in WAYS {
            for form in forms(way, one.url) {
                let given = open.ask(way, one, offsets[number], &form, Reader::Stranger).await;
                if given.shows(way, one) {
                    reachable.insert((way, number, form));
                }
            }
        }
    }
    let never: Vec<(&str, Vec<u8>)> = WAYS
        .into_iter()
        .map(|way| {
            let is_shown = |number: usize| reachable.iter().any(|(by, at, _)| *by == way && *at == number);
            (way, (0..WEB.len()).filter(|number| !is_shown(*number)).map(|number| WEB[number].day).collect())
        })
        .filter(|(_, days): &(_, Vec<u8>)| !days.is_empty())
        .collect();
    let listed: Vec<(&str, Vec<u8>)> = NEVER_SHOWN.iter().map(|(way, days)| (*way, days.to_vec())).collect();
    assert_eq!(never, listed);

    let matrix = Matrix { offsets, reachable };
    let mut found = Found::default();
    for case in cases() {
        let (name, rules, hides) = (case.0, case.1.clone(), case.2);
        let before = found.cells;
        // That the documentation of crawls is hidden by itself need not be tried with every rule.
        let tried = if ["no rule", "everything", "this network"].contains(&name) {
            &[false, true][..]
        } else {
            &[true]
        };
        for &documentation in tried {
            let rules =
                if documentation { [rules.clone(), vec![allowed.clone()]].concat() } else { rules.clone() };
            // All these rules are less narrow than the one that allows documentation to everybody.
            let hidden = |one: &Captured, reader| {
                if one.documentation { !documentation } else { hides(one, reader) }
            };
            let served = Served::new(&bed, index, &rules);
            for reader in readers(&case) {
                let all_forms = reader == Reader::Stranger && IN_ALL_FORMS.contains(&name);
                matrix.look(name, &served, reader, &hidden, all_forms, &mut found).await;
            }
            if IN_COPIES.contains(&name) {
                let label = format!("{name}, in a copy");
                let copied = Served::new(&bed, &copy, &rules);
                matrix.look(&label, &copied, Reader::Stranger, &hidden, false, &mut found).await;
            }
        }
        eprintln!("| {name} | {} | {} |", readers(&case).len(), found.cells - before);
    }
    let Found { cells, mut wrong } = found;
    eprintln!("{cells} cells of rules, ways out, captures, forms of their URLs and readers");
    let count = wrong.len();
    wrong.truncate(60);
    assert!(wrong.is_empty(), "{count} of {cells} are wrong:\n{}", wrong.join("\n"));
    assert_eq!(cells, CELLS, "write the new number here and into docs/src/developers/measurements.md");
}
