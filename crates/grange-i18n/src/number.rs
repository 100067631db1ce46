//! Numbers as people read them.

use fluent_bundle::FluentValue;

/// What Fluent asks for every value; numbers get their digits in groups, everything else is left to it.
pub(crate) fn format<M>(value: &FluentValue<'_>, _: &M) -> Option<String> {
    match value {
        FluentValue::Number(number) if number.value >= 0.0 && number.value.fract() == 0.0 => {
            Some(grouped(number.value as u64))
        }
        _ => None,
    }
}

/// Digits in groups of three with thin spaces between them, as the SI has it: neither comma nor point means the same in all
/// languages.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups() {
        for (number, text) in [(0, "0"), (7, "7"), (999, "999"), (1_234_567, "1\u{202f}234\u{202f}567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
