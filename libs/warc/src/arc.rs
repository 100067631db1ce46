//! The header line of an ARC record: `URL IP date MIME length`, or ten fields in version 2.
//!
//! The line is read from the right, around the date: URLs and MIME types hold spaces, fields are missing
//! or transposed, and what the file declares in its `filedesc` record is only a hint.

use crate::date::Date;
use crate::header::Header;

/// The longest header line worth reading; URLs of 10 kB exist.
pub(crate) const LINE_MAX: usize = 64 << 10;

/// What was read from a header line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArcLine<'a> {
    pub(crate) url: &'a [u8],
    pub(crate) ip: &'a [u8],
    pub(crate) date: &'a [u8],
    pub(crate) mime: &'a [u8],
    /// Result code, checksum, location, offset and file name of version 2.
    pub(crate) v2: Option<[&'a [u8]; 5]>,
    pub(crate) length: &'a [u8],
    pub(crate) short: bool,
    pub(crate) extra: bool,
    pub(crate) transposed: bool,
}

/// Whether `bytes` start with a line that is an ARC header beyond doubt.
pub(crate) fn starts_arc(bytes: &[u8]) -> bool {
    let near = &bytes[..bytes.len().min(LINE_MAX)];
    // Most lines of a page are ruled out by their first bytes.
    let Some(scheme) = near.iter().take(32).position(|b| !b.is_ascii_alphanumeric() && !b"+-.".contains(b))
    else {
        return false;
    };
    if near[scheme] != b':' || scheme < 2 || !near[0].is_ascii_alphabetic() {
        return false;
    }
    let Some(end) = memchr::memchr(b'\n', near) else {
        return false;
    };
    let Some(line) = parse(&near[..end]) else {
        return false;
    };
    if near.starts_with(b"filedesc:") {
        return true;
    }
    let digits = line.date.iter().take_while(|b| b.is_ascii_digit()).count();
    let length = line.length.strip_prefix(b"-").unwrap_or(line.length);
    digits >= 12
        && Date::parse(line.date).is_some()
        && (!length.is_empty() && length.iter().all(u8::is_ascii_digit) || digits >= 14 && is_ip(line.ip))
        && !line.url.is_empty()
}

fn is_ip(token: &[u8]) -> bool {
    std::str::from_utf8(token).is_ok_and(|text| text.parse::<std::net::IpAddr>().is_ok())
}

/// Eight digits or more that start with a year.
fn is_date(token: &[u8]) -> bool {
    token.len() >= 8 && token[..8].iter().all(u8::is_ascii_digit) && matches!(&token[..2], b"19" | b"20")
}

/// Reads a header line. `None` if it has no two fields.
pub(crate) fn parse(line: &[u8]) -> Option<ArcLine<'_>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Offsets of the fields; a line of 64 kB holds at most that many.
    let mut starts = vec![0];
    starts.extend(memchr::memchr_iter(b' ', line).map(|at| at + 1));
    let count = starts.len();
    if count < 2 {
        return None;
    }
    let token = |index: usize| -> &[u8] {
        let end = starts.get(index + 1).map_or(line.len(), |next| next - 1);
        &line[starts[index]..end]
    };
    let join = |from: usize, to: usize| -> &[u8] {
        if from >= to { &[] } else { &line[starts[from]..starts.get(to).map_or(line.len(), |next| next - 1)] }
    };

    let mut arc = ArcLine { length: token(count - 1), ..ArcLine::default() };
    // Where version 1 has the date, where version 2 has it, else the last one that looks like a date.
    let date = [count.wrapping_sub(3), count.wrapping_sub(8)]
        .into_iter()
        .chain((1..count - 1).rev())
        .find(|&at| (1..count - 1).contains(&at) && is_date(token(at)));
    let Some(date) = date else {
        // No date at all: take the fields by their number.
        arc.short = count < 5;
        arc.extra = count > 5;
        let url = if count >= 5 { count - 4 } else { 1 };
        arc.url = join(0, url);
        if count >= 5 {
            (arc.ip, arc.date, arc.mime) = (token(count - 4), token(count - 3), token(count - 2));
        }
        return Some(arc);
    };
    arc.date = token(date);
    let mut rest = date + 1;
    if rest + 1 < count && is_ip(token(rest)) && !(date >= 1 && is_ip(token(date - 1))) {
        arc.transposed = true;
        arc.ip = token(rest);
        arc.url = join(0, date);
        rest += 1;
    } else if date >= 2 {
        arc.ip = token(date - 1);
        arc.url = join(0, date - 1);
        arc.extra = date > 2;
    } else {
        arc.short = true;
        arc.url = join(0, date);
    }
    let middle = count - 1 - rest;
    match middle {
        6 => {
            arc.mime = token(rest);
            arc.v2 = Some([1, 2, 3, 4, 5].map(|n| token(rest + n)));
        }
        0 => arc.short = true,
        _ => {
            arc.mime = join(rest, count - 1);
            arc.extra |= middle > 1;
            arc.short |= arc.mime.is_empty();
        }
    }
    Some(arc)
}

/// Fills `header` with the fields of the line, under the names of WARC where there are such.
pub(crate) fn fill_header(header: &mut Header, raw: &[u8], arc: &ArcLine<'_>) {
    header.start(raw);
    let filedesc = arc.url.starts_with(b"filedesc:");
    header.push("WARC-Type", if filedesc { b"warcinfo" } else { b"response" });
    let fields = [
        ("WARC-Target-URI", arc.url),
        ("WARC-Date", arc.date),
        ("WARC-IP-Address", arc.ip),
        ("Content-Type", arc.mime),
        ("Content-Length", arc.length),
    ];
    for (name, value) in fields {
        if !value.is_empty() {
            header.push(name, value);
        }
    }
    if let Some(v2) = arc.v2 {
        let names = ["ARC-Result-Code", "ARC-Checksum", "ARC-Location", "ARC-Offset", "ARC-Filename"];
        for (name, value) in names.into_iter().zip(v2) {
            if !value.is_empty() {
                header.push(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_form() {
        // Line; URL, IP, date, MIME, length; s(hort) e(xtra) t(ransposed) 2.
        for (line, expected, flags) in [
            (
                "http://a/ 1.2.3.4 20041105133457 text/html 472",
                ["http://a/", "1.2.3.4", "20041105133457", "text/html", "472"],
                "",
            ),
            (
                "http://a/ 1.2.3.4 20041105133457 text/html 472\r",
                ["http://a/", "1.2.3.4", "20041105133457", "text/html", "472"],
                "",
            ),
            (
                "http://a/b c d 1.2.3.4 20041105133457 text/html 472",
                ["http://a/b c d", "1.2.3.4", "20041105133457", "text/html", "472"],
                "e",
            ),
            (
                "http://a/ 1.2.3.4 20000824015105 text/html; Charset=iso-8859-1 20567",
                ["http://a/", "1.2.3.4", "20000824015105", "text/html; Charset=iso-8859-1", "20567"],
                "e",
            ),
            (
                "http://a/ 1.2.3.4 20110804181142  39",
                ["http://a/", "1.2.3.4", "20110804181142", "", "39"],
                "s",
            ),
            (
                "http://a/ 20031219215023 63.241.16.130 text/plain 285",
                ["http://a/", "63.241.16.130", "20031219215023", "text/plain", "285"],
                "t",
            ),
            (
                "http://a/ None 201512000000000 text/xml 17327214",
                ["http://a/", "None", "201512000000000", "text/xml", "17327214"],
                "",
            ),
            (
                "http://a/ 1.2.3.4 20160211000000jpg text/html 1238",
                ["http://a/", "1.2.3.4", "20160211000000jpg", "text/html", "1238"],
                "",
            ),
            (
                "http://a/ 1.2.3.4 19990101000000 text/html 200 - - 0 f.arc 9",
                ["http://a/", "1.2.3.4", "19990101000000", "text/html", "9"],
                "2",
            ),
            (
                "http://a/ 1.2.3.4 20140401000000 text/html -1",
                ["http://a/", "1.2.3.4", "20140401000000", "text/html", "-1"],
                "",
            ),
            (
                "filedesc://horsy a.b.c.d blue_monday gif one",
                ["filedesc://horsy", "a.b.c.d", "blue_monday", "gif", "one"],
                "",
            ),
            ("http://a/ 39", ["http://a/", "", "", "", "39"], "s"),
        ] {
            let arc = parse(line.as_bytes()).unwrap();
            let got = [arc.url, arc.ip, arc.date, arc.mime, arc.length]
                .map(|b| String::from_utf8_lossy(b).into_owned());
            assert_eq!(got, expected, "{line}");
            let mut seen = String::new();
            for (flag, set) in
                [('s', arc.short), ('e', arc.extra), ('t', arc.transposed), ('2', arc.v2.is_some())]
            {
                if set {
                    seen.push(flag);
                }
            }
            assert_eq!(seen, flags, "{line}");
        }
        assert_eq!(parse(b"alone"), None);
    }

    #[test]
    fn only_sure_lines_start_a_record() {
        for (text, expected) in [
            ("http://a/ 1.2.3.4 20041105133457 text/html 472\nx", true),
            ("dns:a 1.2.3.4 20041105133457 text/dns 56\nx", true),
            ("filedesc://x 0.0.0.0 20041105133457 text/plain 76\n1 0 x", true),
            ("http://a/ 1.2.3.4 20140401000000 text/html abc\n", true),
            ("http://a/ 1.2.3.4 20041105133457 text/html 472", false),
            ("This file is not an arc file.\n", false),
            ("Date: Fri, 05 Nov 2004 13:34:57 GMT\n", false),
            ("20080430204825\nwww.archive.org.\t1 IN A 1.2.3.4\n", false),
        ] {
            assert_eq!(starts_arc(text.as_bytes()), expected, "{text}");
        }
    }
}
