//! Rule 11: calendars have a page for every day of every year, and a link to the next. A URL is left alone when it
//! names a calendar and a day too far from today; the days that a site really fills are near.

use url::Url;

/// The years that are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calendar {
    /// The first and last year; none when that side is open.
    first: Option<u32>,
    last: Option<u32>,
}

/// Words by which sites name their calendars, in the languages of our users and in common software.
const WORDS: &[&str] = &[
    "agenda",
    "aktiviteter",
    "begivenheder",
    "cal",
    "calendar",
    "calendario",
    "calendrier",
    "date",
    "day",
    "event",
    "events",
    "evenements",
    "eventi",
    "eventos",
    "ical",
    "jour",
    "kalender",
    "kalendar",
    "mes",
    "mois",
    "month",
    "monat",
    "tag",
    "tribe-bar-date",
    "veranstaltungen",
    "week",
    "year",
];
/// Keys that hold a year.
const YEAR_KEYS: &[&str] = &["year", "yr", "y", "jahr", "annee", "anno", "ano", "aar", "yearid"];

impl Calendar {
    /// `years_ahead` and `years_back` of 0 leave that side open.
    pub(super) fn new(this_year: i16, years_ahead: u32, years_back: u32) -> Calendar {
        let now = u32::from(this_year.unsigned_abs());
        Calendar {
            first: (years_back > 0).then(|| now.saturating_sub(years_back)),
            last: (years_ahead > 0).then(|| now.saturating_add(years_ahead)),
        }
    }

    pub(super) fn takes(self, url: &Url) -> bool {
        let text = url.as_str();
        let host_end =
            text.find("://").and_then(|at| text[at + 3..].find(['/', '?']).map(|end| at + 3 + end));
        let Some(start) = host_end else { return false };
        let text = &text[start..];
        let far = |year: u32| {
            self.first.is_some_and(|first| year < first) || self.last.is_some_and(|last| year > last)
        };
        // Most URLs have no such number, and are done here.
        dates(text).any(far) && names_calendar(text)
    }
}

/// The years of what looks like dates: `2026-11`, `2026/11/16`, `20261116`, `year=2026`, `calendar/2026`.
fn dates(text: &str) -> impl Iterator<Item = u32> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            if !bytes[at].is_ascii_digit() {
                at += 1;
                continue;
            }
            let length = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
            let start = at;
            at += length;
            let number = |from: usize, count: usize| -> u32 {
                bytes[from..from + count].iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))
            };
            match length {
                4 if is_date(text, start) => return Some(number(start, 4)),
                8 if (1..=12).contains(&number(start + 4, 2)) && (1..=31).contains(&number(start + 6, 2)) => {
                    return Some(number(start, 4));
                }
                _ => {}
            }
        }
        None
    })
}

/// Whether the four digits at `start` are a year: a month follows, a key or a calendar's name precedes.
fn is_date(text: &str, start: usize) -> bool {
    let after = &text.as_bytes()[start + 4..];
    if let [b'-' | b'/' | b'.' | b'_', rest @ ..] = after {
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let month = rest[..digits.min(2)].iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        if (1..=2).contains(&digits) && (1..=12).contains(&month) {
            return true;
        }
    }
    let before = &text[..start];
    let Some(word) = before.strip_suffix(['=', '/', '-']).map(last_word) else { return false };
    YEAR_KEYS.iter().chain(WORDS).any(|known| known.eq_ignore_ascii_case(word))
}

fn last_word(text: &str) -> &str {
    text.rfind(|c: char| !is_word(c)).map_or(text, |at| {
        let next = text[at..].chars().next().map_or(0, char::len_utf8);
        &text[at + next..]
    })
}

fn names_calendar(text: &str) -> bool {
    text.split(|c: char| !is_word(c)).any(|word| {
        let whole = WORDS.iter().any(|known| known.eq_ignore_ascii_case(word));
        whole || word.split(['-', '_']).any(|part| WORDS.iter().any(|known| known.eq_ignore_ascii_case(part)))
    })
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn calendars_far_from_today_are_left_alone() {
        let rule = Calendar::new(2026, 2, 40);
        for (path, takes) in [
            ("/calendar/2026-11/", false),
            ("/calendar/2028-12/", false),
            ("/calendar/2029-01/", true),
            ("/calendar/1985/12", true),
            ("/calendar/1986/01", false),
            ("/events/?tribe-bar-date=2044-05-01", true),
            ("/kalender?year=2099", true),
            ("/index.php?option=cal&y=2099&m=3", true),
            ("/agenda/20990131", true),
            ("/agenda/20991331", false),
            ("/events/2099", true),
            ("/events/ticket-2099", false),
            // Not calendars, whatever their numbers.
            ("/2099/11/a-story", false),
            ("/news/1850/03/15/", false),
            ("/product/2099-11", false),
            ("/calendar/", false),
            ("/calendar/12345678901234", false),
            ("/calendar?id=9999", false),
        ] {
            let url = Url::parse(&format!("http://h.example{path}")).unwrap();
            assert_eq!(rule.takes(&url), takes, "{path}");
        }
        assert!(!rule.takes(&Url::parse("dns:calendar-2099-11").unwrap()));
        assert!(!rule.takes(&Url::parse("http://calendar-2099-11.example/").unwrap()));
    }

    #[test]
    fn each_side_can_be_open() {
        let url = |year: u32| Url::parse(&format!("http://h.example/calendar/{year:04}-01")).unwrap();
        let off = Calendar::new(2026, 0, 0);
        assert!(!off.takes(&url(9999)) && !off.takes(&url(1)));
        let ahead = Calendar::new(2026, 1, 0);
        assert!(ahead.takes(&url(2028)) && !ahead.takes(&url(1)));
    }

    proptest! {
        #[test]
        fn no_url_makes_it_panic(path in "\\PC{0,60}") {
            if let Ok(url) = Url::parse(&format!("http://h.example/{path}")) {
                let _ = Calendar::new(2026, 1, 1).takes(&url);
            }
            let _ = dates(&path).count();
            let _ = names_calendar(&path);
        }
    }
}
