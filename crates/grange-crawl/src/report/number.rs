//! Numbers as Heritrix shows them.

use std::fmt::Write as _;
use std::time::Duration;

/// At most `places` decimals, none that are zero at the end, thousands parted by commas: `1,234.5`.
pub(crate) fn decimal(value: f64, places: usize) -> String {
    let shown = fixed(value, places);
    match shown.split_once('.') {
        Some((whole, fraction)) => {
            let fraction = fraction.trim_end_matches('0');
            if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
        }
        None => shown,
    }
}

/// Exactly `places` decimals, thousands parted by commas.
fn fixed(value: f64, places: usize) -> String {
    // A rate over no time is no rate.
    let value = if value.is_finite() { value } else { 0.0 };
    let shown = format!("{value:.places$}");
    let (sign, shown) = shown.strip_prefix('-').map_or(("", shown.as_str()), |rest| ("-", rest));
    let (whole, fraction) = shown.split_once('.').unwrap_or((shown, ""));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// `0 B`, `1.5 KiB`, `12 MiB`: at least two digits that count.
pub fn bytes_for_people(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 1024.0 && unit < UNITS.len() - 1 {
        amount /= 1024.0;
        unit += 1;
    }
    let places = usize::from(unit > 0 && amount < 10.0);
    format!("{} {}", fixed(amount, places), UNITS[unit])
}

/// `1d2h3m4s5ms`; units that are zero are left out, nothing at all is `0ms`.
pub fn duration_for_people(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0ms".to_owned();
    }
    let mut out = String::new();
    for (unit, millis) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if rest >= millis {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}{unit}", rest / millis);
            rest %= millis;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_heritrix_shows_them() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (1.254, "1.25"),
            (99.999, "100"),
            (1_234_567.891, "1,234,567.89"),
            (-1234.5, "-1,234.5"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
        ] {
            assert_eq!(decimal(value, 2), text);
        }
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1,023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10 << 10, "10 KiB"),
            (5 << 40, "5.0 TiB"),
            (5000 << 40, "5,000 TiB"),
        ] {
            assert_eq!(bytes_for_people(bytes), text);
        }
        for (millis, text) in
            [(0, "0ms"), (5, "5ms"), (61_000, "1m1s"), (93_784_005, "1d2h3m4s5ms"), (3_600_000, "1h")]
        {
            assert_eq!(duration_for_people(Duration::from_millis(millis)), text);
        }
    }
}
