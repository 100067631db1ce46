//! The inside of a tag: its name and its attributes.

use crate::is_space;
use crate::look::{find, looked};

/// Further attributes of a tag are skipped: what is done with one may look at all the others.
const ATTRIBUTES_MAX: usize = 200;

/// An attribute with its value as it stands, entities and charset undecoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    pub name: &'a [u8],
    /// Without its quotes; empty where there is none.
    pub value: &'a [u8],
    /// Where the name begins in the input.
    pub start: usize,
    /// Behind the value and its quote; behind the name where there is no `=`.
    pub end: usize,
    /// The tag has another of this name before it. Browsers take the first.
    pub repeated: bool,
}

pub(crate) struct Tag<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) empty: bool,
    /// Behind its `>`.
    pub(crate) end: usize,
}

/// Reads from the first letter of the name up to `>`; none if the input ends first.
pub(crate) fn read<'a>(
    input: &'a [u8],
    start: usize,
    attributes: &mut Vec<Attribute<'a>>,
) -> Option<Tag<'a>> {
    attributes.clear();
    let mut at = start;
    while at < input.len() && !matches!(input[at], b'>' | b'/') && !is_space(input[at]) {
        at += 1;
    }
    let name = &input[start..at];
    looked(name.len());
    loop {
        let gap = at;
        while at < input.len() && (is_space(input[at]) || input[at] == b'/') {
            at += 1;
        }
        looked(at - gap);
        if *input.get(at)? == b'>' {
            // The slash at the end of an unquoted value belongs to the value.
            let empty = at > gap && input[at - 1] == b'/';
            return Some(Tag { name, empty, end: at + 1 });
        }
        let begun = at;
        let attribute = attribute(input, &mut at)?;
        looked(at - begun);
        if attributes.len() < ATTRIBUTES_MAX {
            // Tags have few attributes, so looking is cheap.
            let repeated = attributes.iter().any(|known| known.name.eq_ignore_ascii_case(attribute.name));
            attributes.push(Attribute { repeated, ..attribute });
        }
    }
}

/// One attribute; `at` is moved from its first letter to where the next may begin.
fn attribute<'a>(input: &'a [u8], at: &mut usize) -> Option<Attribute<'a>> {
    let start = *at;
    // A name may begin with `=`, but not contain one.
    let mut end = start + 1;
    while end < input.len() && !matches!(input[end], b'=' | b'>' | b'/') && !is_space(input[end]) {
        end += 1;
    }
    let name = &input[start..end];
    let mut value: &[u8] = &[];
    let sign = skip_space(input, end);
    *at = sign;
    if input.get(sign) == Some(&b'=') {
        let from = skip_space(input, sign + 1);
        match input.get(from) {
            Some(&quote @ (b'"' | b'\'')) => {
                let len = find(quote, &input[from + 1..])?;
                value = &input[from + 1..from + 1 + len];
                end = from + len + 2;
            }
            Some(b'>') => end = from,
            Some(_) => {
                end = from;
                while end < input.len() && input[end] != b'>' && !is_space(input[end]) {
                    end += 1;
                }
                value = &input[from..end];
            }
            None => return None,
        }
        *at = end;
    }
    Some(Attribute { name, value, start, end, repeated: false })
}

fn skip_space(input: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < input.len() && is_space(input[at]) {
        at += 1;
    }
    at
}
