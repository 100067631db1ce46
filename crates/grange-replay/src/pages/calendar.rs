//! A calendar: years as bars, the days of one year as dots.

use std::collections::BTreeMap;

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use grange_i18n::Tongue;
use grange_index::query::{Keys, Next, Query};
use grange_index::{Error, Stamp};
use jiff::civil::Date;

use super::captures::with;
use super::{captures_of, render, size};
use crate::memento;
use crate::wayback::View;

#[derive(Template)]
#[template(path = "calendar.html")]
struct Calendar<'a> {
    t: &'a Tongue,
    title: String,
    collection: &'a str,
    url: &'a str,
    summary: String,
    list: String,
    below: String,
    timemap: String,
    years: Vec<Year>,
    chosen: u64,
    weekdays: Vec<(String, String)>,
    months: Vec<Month>,
}

struct Year {
    number: u64,
    title: String,
    size: u8,
    chosen: bool,
    href: String,
}

struct Month {
    name: String,
    weeks: Vec<[Option<Day>; 7]>,
}

struct Day {
    number: i8,
    title: String,
    size: u8,
    href: Option<String>,
}

/// Captures of one day, and the only one if there is no more.
#[derive(Default, Clone, Copy)]
struct OnDay {
    count: u64,
    first: Stamp,
}

pub(super) fn calendar(
    view: &View,
    url: &str,
    (from, to): (Stamp, Stamp),
    asked: Option<&str>,
) -> Result<Option<Response>, Error> {
    let (name, t) = (view.collection.name.as_str(), &view.tongue());
    let mut query = Query::new(Keys::Exact(grange_index::key(url)));
    (query.from, query.to) = (from, to);
    let mut days: BTreeMap<u64, OnDay> = BTreeMap::new();
    let mut all = 0;
    query.run(&view.snapshot, |row| {
        if view.sees(row) {
            all += 1;
            let day = days.entry(row.time().leading(8)).or_default();
            if day.count == 0 {
                day.first = row.time();
            }
            day.count += 1;
        }
        Ok(Next::More)
    })?;
    let (Some(first), Some(last)) = (days.keys().next(), days.keys().next_back()) else { return Ok(None) };
    let (first, last) = (first / 10_000, last / 10_000);
    let mut by_year: BTreeMap<u64, u64> = BTreeMap::new();
    for (day, on_day) in &days {
        *by_year.entry(day / 10_000).or_default() += on_day.count;
    }
    let chosen =
        asked.and_then(|year| year.parse().ok()).filter(|year| by_year.contains_key(year)).unwrap_or(last);
    let here = format!("/{name}/*/{url}");
    let years = by_year.iter().map(|(&year, &count)| Year {
        number: year,
        title: captures_of(t, count),
        size: size(count),
        chosen: year == chosen,
        href: with(&here, &format!("grange-year={year}")),
    });
    let captures = captures_of(t, all);
    let (first, last) = (first.to_string(), last.to_string());
    let captures = ("captures", (&captures).into());
    let summary = if first == last {
        t.say_with("calendar-one-year", &[captures, ("year", (&first).into())])
    } else {
        t.say_with("calendar-years", &[captures, ("first", (&first).into()), ("last", (&last).into())])
    };
    let page = Calendar {
        t,
        title: t.say_with("calendar-title", &[("url", url.into())]),
        collection: name,
        url,
        summary,
        list: with(&here, "grange-view=list"),
        below: format!("{here}*"),
        timemap: format!("/{name}/timemap/link/{url}"),
        years: years.collect(),
        chosen,
        weekdays: (1..=7).map(|day| (t.weekday(day), t.weekday_letter(day))).collect(),
        months: months(t, name, url, chosen, &days),
    };
    Ok(Some(render(StatusCode::OK, &page)))
}

fn months(t: &Tongue, name: &str, url: &str, year: u64, days: &BTreeMap<u64, OnDay>) -> Vec<Month> {
    let month = |at: u8| {
        let first = Date::new(year as i16, at as i8, 1).ok()?;
        let name_of_month = t.month(at);
        let mut weeks: Vec<[Option<Day>; 7]> = Vec::new();
        for day in 1..=first.days_in_month() {
            let column = (first.weekday().to_monday_zero_offset() + day - 1) % 7;
            if column == 0 || weeks.is_empty() {
                weeks.push(Default::default());
            }
            let key = year * 10_000 + u64::from(at) * 100 + day as u64;
            let on_day = days.get(&key).copied().unwrap_or_default();
            let href = match on_day.count {
                0 => None,
                1 => Some(format!("/{name}/{}/{url}", memento::digits(on_day.first))),
                _ => Some(format!("/{name}/{key}*/{url}")),
            };
            if let Some(week) = weeks.last_mut() {
                let (count, digits) = (on_day.count, day.to_string());
                let args =
                    [("count", count.into()), ("day", (&digits).into()), ("month", (&name_of_month).into())];
                let title = if count == 0 { String::new() } else { t.say_with("calendar-day", &args) };
                week[column as usize] = Some(Day { number: day, title, size: size(count), href });
            }
        }
        Some(Month { name: name_of_month, weeks })
    };
    (1..=12).filter_map(month).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_stand_in_their_weeks() {
        let on_day = OnDay { count: 3, first: Stamp::parse("20200229120000").unwrap() };
        let months =
            months(&Tongue::default(), "c", "http://e.org/", 2020, &BTreeMap::from([(20_200_229, on_day)]));
        assert_eq!(months.len(), 12);
        let february = &months[1];
        assert_eq!(february.weeks.len(), 5);
        // 1 February 2020 was a Saturday, the 29th too.
        assert_eq!(february.weeks[0][5].as_ref().unwrap().number, 1);
        let leap = february.weeks[4][5].as_ref().unwrap();
        assert_eq!((leap.number, leap.title.as_str()), (29, "3 on 29 February"));
        assert_eq!(leap.href.as_deref(), Some("/c/20200229*/http://e.org/"));
    }
}
