//! Queries: arguments in one order, whatever order a script wrote them in.

use std::cmp::Ordering;
use std::ops::Range;

/// Buffers for one query.
#[derive(Debug, Default)]
pub(crate) struct QueryScratch {
    args: Vec<Range<usize>>,
    sorted: Vec<u8>,
}

/// Sorts the `&`-separated arguments in `buf[start..]` by name, then value.
///
/// A name without `=` comes before the same name with one, and the order of names is that of the names alone,
/// so `a=1` comes before `a-b=1` although `=` sorts after `-`.
pub(crate) fn sort_args(buf: &mut [u8], start: usize, scratch: &mut QueryScratch) {
    let QueryScratch { args, sorted } = scratch;
    args.clear();
    let mut from = start;
    for at in memchr::memchr_iter(b'&', &buf[start..]) {
        args.push(from..start + at);
        from = start + at + 1;
    }
    if from == start {
        return;
    }
    args.push(from..buf.len());
    if args.is_sorted_by(|a, b| compare(&buf[a.clone()], &buf[b.clone()]).is_le()) {
        return;
    }
    args.sort_unstable_by(|a, b| compare(&buf[a.clone()], &buf[b.clone()]));
    sorted.clear();
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            sorted.push(b'&');
        }
        sorted.extend_from_slice(&buf[arg.clone()]);
    }
    buf[start..].copy_from_slice(sorted);
}

fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (a_name, a_value) = name_and_value(a);
    let (b_name, b_value) = name_and_value(b);
    a_name.cmp(b_name).then_with(|| a_value.cmp(&b_value))
}

fn name_and_value(arg: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'=', arg) {
        Some(at) => (&arg[..at], Some(&arg[at + 1..])),
        None => (arg, None),
    }
}
