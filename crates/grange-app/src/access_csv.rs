//! Access rules as a table: one line per rule, to be kept, edited and taken over by other programs.
//!
//! ```text
//! surt_prefix,exact,collection,mime,captured_from,captured_to,decision,value,audience,note
//! "com,example)/private",,,,,,block,Taken down by court order.,,case 7
//! *,,archive,video/*,,,embargo,365d,,
//! *,,,,,,allow,,staff network:192.0.2.0/24,
//! ```
//!
//! A rule about everything says so by `*`: an empty cell is too easily an oversight, and would hide the whole archive. Where a
//! collection, a type or a time narrows the rule, it may be empty.
//!
//! Columns are found by their names. Instead of `surt_prefix` and `exact` there may be `url` and `match`, as on the command line.

use std::fmt::Write as _;

use grange_base::Period;
use grange_db::AccessRow;
use grange_index::access::{Decision, Rule};
use serde_json::{Value, json};

use crate::access::RuleDraft;

/// A rule and its note.
pub(crate) type Noted = (Rule, String);

/// Problems that are listed; a table of the wrong kind has one in every line.
const PROBLEMS_MAX: usize = 20;

const COLUMNS: [&str; 10] = [
    "surt_prefix",
    "exact",
    "collection",
    "mime",
    "captured_from",
    "captured_to",
    "decision",
    "value",
    "audience",
    "note",
];
/// In place of a key: all of them.
const EVERYTHING: &str = "*";

/// Further columns that may be given.
const OF_URLS: [&str; 2] = ["url", "match"];

/// Reads a table; on problems none of its rules, but all problems with their lines.
pub(crate) fn read(text: &str) -> Result<Vec<Noted>, String> {
    let mut rows = rows(text.trim_start_matches('\u{feff}'))?.into_iter();
    let (_, names) = rows.next().ok_or("the table is empty: its first line names the columns")?;
    let known = |name: &&String| !COLUMNS.contains(&name.as_str()) && !OF_URLS.contains(&name.as_str());
    if let Some(name) = names.iter().find(known) {
        return Err(format!(
            "line 1: there is no column \"{name}\"; columns are {}, url, match",
            COLUMNS.join(", ")
        ));
    }
    if !names.iter().any(|name| name == "decision") {
        return Err("line 1: the column \"decision\" is missing".to_owned());
    }
    let (mut rules, mut problems, mut count) = (Vec::new(), String::new(), 0);
    for (line, cells) in rows {
        let value = |name: &str| {
            let at = names.iter().position(|known| known == name)?;
            cells.get(at).map(|cell| cell.trim()).filter(|cell| !cell.is_empty())
        };
        let found = if cells.len() > names.len() {
            Err(format!("it has {} cells for {} columns", cells.len(), names.len()))
        } else {
            draft(&value).and_then(|draft| draft.rules())
        };
        match found {
            Ok(found) => {
                let note = value("note").unwrap_or_default();
                rules.extend(found.into_iter().map(|rule| (rule, note.to_owned())));
            }
            Err(reason) => {
                count += 1;
                if count <= PROBLEMS_MAX {
                    // A String never fails to be written to.
                    let _ = writeln!(problems, "line {line}: {reason}");
                }
            }
        }
    }
    if count == 0 {
        return Ok(rules);
    }
    if count > PROBLEMS_MAX {
        let _ = writeln!(problems, "and {} more lines", count - PROBLEMS_MAX);
    }
    Err(format!("{}\nnothing was imported", problems.trim_end()))
}

fn draft<'c>(value: &impl Fn(&str) -> Option<&'c str>) -> Result<RuleDraft, String> {
    let text = |name: &str| value(name).map(ToOwned::to_owned);
    let exact = match value("exact") {
        None | Some("false" | "no" | "0") => false,
        Some("true" | "yes" | "1") => true,
        Some(other) => return Err(format!("\"{other}\" is not true or false, in the column exact")),
    };
    let said = value("value").unwrap_or_default();
    let list = || said.split([' ', ';']).filter(|one| !one.is_empty()).collect::<Vec<_>>();
    let decision = match value("decision") {
        Some("allow") => json!("allow"),
        Some("block") => json!({ "block": { "message": said } }),
        Some("embargo") => {
            let period: Period = said.parse().map_err(|error| format!("{error}"))?;
            json!({ "embargo": { "seconds": period.0.as_secs() } })
        }
        Some("networks") => json!({ "networks": { "networks": list() } }),
        Some("users") => json!({ "users": { "users": list() } }),
        other => {
            let other = other.unwrap_or_default();
            return Err(format!("\"{other}\" is no decision: allow, block, embargo, networks or users"));
        }
    };
    let (surt_prefix, url) = (value("surt_prefix"), value("url"));
    let everything = [surt_prefix, url].contains(&Some(EVERYTHING));
    let names_none = surt_prefix.is_none() && url.is_none();
    let narrowed = ["collection", "mime", "captured_from", "captured_to"].map(value);
    if names_none && narrowed.iter().all(Option::is_none) {
        return Err(format!("names no URL; write {EVERYTHING} for everything"));
    }
    if surt_prefix.is_some() && url.is_some() {
        return Err("say either a SURT prefix or a URL".to_owned());
    }
    if exact && (names_none || everything) {
        return Err("exact needs a URL or a SURT prefix".to_owned());
    }
    if value("match").is_some() && (names_none || everything) {
        return Err("match needs a URL".to_owned());
    }
    let key = |key: Option<&str>| key.filter(|_| !everything).map(ToOwned::to_owned);
    let matches = if url.is_none() && exact { Some("exact".to_owned()) } else { text("match") };
    let audience = value("audience").unwrap_or_default();
    Ok(RuleDraft {
        everything,
        surt_prefix: key(surt_prefix),
        url: key(url),
        matches,
        collection: text("collection"),
        mime: text("mime"),
        captured_from: text("captured_from"),
        captured_to: text("captured_to"),
        decision,
        audience: audience.split([' ', ';']).filter(|one| !one.is_empty()).map(ToOwned::to_owned).collect(),
    })
}

/// Writes rules as a table. One that this version cannot read is an error: left out, it would be lost on the way.
pub(crate) fn write(rows: &[AccessRow]) -> Result<String, String> {
    let mut out = COLUMNS.join(",") + "\n";
    for row in rows {
        let rule: Rule = serde_json::from_value(row.rule.clone())
            .map_err(|error| format!("access rule {} cannot be exported: {error}", row.id))?;
        let value = match &rule.decision {
            Decision::Allow => String::new(),
            Decision::Block { message } => message.clone(),
            Decision::Embargo { seconds } => format!("{seconds}s"),
            Decision::Networks { networks } => networks.join(" "),
            Decision::Users { users } => users.join(" "),
        };
        let audience: Vec<String> = rule.audience.iter().map(ToString::to_string).collect();
        let optional = |text: &Option<String>| text.clone().unwrap_or_default();
        let cells = [
            if rule.surt_prefix.is_empty() { EVERYTHING.to_owned() } else { rule.surt_prefix.clone() },
            if rule.exact { "true".to_owned() } else { String::new() },
            optional(&rule.collection),
            optional(&rule.mime),
            optional(&rule.captured_from),
            optional(&rule.captured_to),
            rule.decision.name().to_owned(),
            value,
            audience.join(" "),
            row.note.clone(),
        ];
        out.push_str(&cells.map(|cell| quoted(&cell)).join(","));
        out.push('\n');
    }
    Ok(out)
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) || cell.trim() != cell {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// The cells of each line that is not empty, with the number of the line it begins in (RFC 4180).
fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
    let (mut rows, mut cells, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut begun, mut quoted) = (1, 1, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' if quoted || cell.trim().is_empty() => {
                quoted = !quoted;
                if quoted {
                    cell.clear();
                }
            }
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                cells.push(std::mem::take(&mut cell));
                push_row(&mut rows, begun, std::mem::take(&mut cells));
                line += 1;
                begun = line;
            }
            letter => {
                line += usize::from(letter == '\n');
                cell.push(letter);
            }
        }
    }
    if quoted {
        return Err(format!("line {begun}: a quotation mark is not closed\nnothing was imported"));
    }
    cells.push(cell);
    push_row(&mut rows, begun, cells);
    Ok(rows)
}

fn push_row(rows: &mut Vec<(usize, Vec<String>)>, line: usize, mut cells: Vec<String>) {
    if let Some(last) = cells.last_mut() {
        last.truncate(last.trim_end_matches('\r').len());
    }
    if cells.iter().any(|cell| !cell.trim().is_empty()) {
        rows.push((line, cells));
    }
}

/// The stored form of a rule.
pub(crate) fn stored(rule: &Rule) -> Result<Value, String> {
    serde_json::to_value(rule).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(rules: Vec<Noted>) -> Vec<AccessRow> {
        let created_at = grange_base::Clock::system().now();
        let row = |(id, (rule, note)): (i64, Noted)| {
            let rule = stored(&rule).unwrap();
            AccessRow { id, key: None, rule, note, created_at, created_by: "anna".to_owned() }
        };
        (1..).zip(rules).map(row).collect()
    }

    #[test]
    fn a_table_comes_back_as_it_was() {
        let table = "url,match,collection,mime,captured_from,captured_to,decision,value,audience,note\r\n\
             http://example.com/private/,prefix,,,,,block,\"Taken down, by \"\"court\"\" order.\",,case 7\r\n\
             example.org,domain,archive,Video/*,2019,2020,embargo,365d,,\r\n\
             \r\n\
             *,,,,,,networks,192.0.2.0/24 2001:db8::/32,,\"two\nlines\"\r\n\
             *,,,,,,users,anna bo,,\r\n\
             *,,,,,,allow,,staff;role:curator user:bo network:10.0.0.0/8,\r\n";
        let rules = read(table).unwrap();
        assert_eq!(rules.len(), 3 + 3 + 3);
        let text = write(&rows_of(rules.clone())).unwrap();
        assert_eq!(read(&text).unwrap(), rules, "{text}");
        assert_eq!(write(&rows_of(read(&text).unwrap())).unwrap(), text);
    }

    #[test]
    fn everything_is_said_by_a_star_or_narrowed() {
        for (table, collection) in [
            ("surt_prefix,exact,collection,decision,value\n*,,,block,x\n", None),
            ("url,match,decision,value\n*,,block,x\n", None),
            ("surt_prefix,exact,collection,decision,value\n,,archive,block,x\n", Some("archive")),
            ("surt_prefix,exact,collection,decision,value\n*,,archive,block,x\n", Some("archive")),
            ("captured_to,decision,value\n2019,block,x\n", None),
            ("mime,decision,value\nvideo/*,block,x\n", None),
        ] {
            let rules = read(table).unwrap();
            let [(rule, _)] = &rules[..] else { panic!("{table}: {rules:?}") };
            assert_eq!(
                (rule.surt_prefix.as_str(), rule.exact, rule.collection.as_deref()),
                ("", false, collection)
            );
            let again = write(&rows_of(rules.clone())).unwrap();
            assert!(again.contains("\n*,"), "{again}");
            assert_eq!(read(&again).unwrap(), rules);
        }
    }

    #[test]
    fn problems_are_told_by_line_and_nothing_is_read() {
        for (table, told) in [
            ("", "empty"),
            ("decision,colour\n", "no column \"colour\""),
            ("surt_prefix\n\"com,a)\"\n", "\"decision\" is missing"),
            (
                "surt_prefix,decision\n\"com,a)\",allow\n\"com,b)\",maybe\n",
                "line 3: \"maybe\" is no decision",
            ),
            ("surt_prefix,decision,value\n*,block,\"a\nb\"\n*,embargo,soon\n", "line 4: "),
            ("surt_prefix,decision,value\n*,networks,10.0.0.0/99\n", "line 2: \"10.0.0.0/99\" is no network"),
            ("surt_prefix,decision,audience\n*,allow,moon\n", "line 2: \"moon\" is not an audience"),
            // An empty cell is an oversight, and would hide the whole archive.
            (
                "url,decision,value\nhttp://a/,block,x\n,block,y\n",
                "line 3: names no URL; write * for everything",
            ),
            ("decision,value\nblock,y\n", "line 2: names no URL; write * for everything"),
            ("surt_prefix,exact,decision\n,true,allow\n", "line 2: names no URL; write * for everything"),
            (
                "surt_prefix,exact,mime,decision\n,true,a/b,allow\n",
                "line 2: exact needs a URL or a SURT prefix",
            ),
            ("surt_prefix,exact,decision\n*,true,allow\n", "line 2: exact needs a URL or a SURT prefix"),
            ("url,match,collection,decision\n,domain,archive,allow\n", "line 2: match needs a URL"),
            ("url,match,decision\n*,host,allow\n", "line 2: match needs a URL"),
            ("surt_prefix,url,decision\n*,http://a/,allow\n", "line 2: say either"),
            ("surt_prefix,decision\ncom,a),allow\n", "line 2: it has 3 cells for 2 columns"),
            ("decision,value\nblock,\"open\n", "line 2: a quotation mark is not closed"),
            ("surt_prefix,url,decision\nx,http://a/,allow\n", "line 2: say either"),
        ] {
            let error = read(table).unwrap_err();
            assert!(error.contains(told), "{table}: {error}");
        }
        let many = "decision\n".to_owned() + &"maybe\n".repeat(30);
        let error = read(&many).unwrap_err();
        assert!(error.contains("and 10 more lines\nnothing was imported"), "{error}");
    }
}
