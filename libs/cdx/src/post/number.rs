//! Floating-point numbers as JavaScript and Python print them.

use super::Spelling;

/// The shortest text that reads back as `value`.
pub(super) fn float(value: f64, spelling: Spelling) -> String {
    let text = format!("{:e}", value.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign =
        if value.is_sign_negative() && (value != 0.0 || spelling == Spelling::Python) { "-" } else { "" };
    // Where each language changes to exponents.
    let plain = match spelling {
        Spelling::Modern => (-6..21).contains(&exponent),
        Spelling::Python => (-4..16).contains(&exponent),
    };
    let body = if plain { positional(&digits, exponent) } else { scientific(&digits, exponent, spelling) };
    let whole = plain && !body.contains('.');
    let tail = if whole && spelling == Spelling::Python { ".0" } else { "" };
    format!("{sign}{body}{tail}")
}

fn positional(digits: &str, exponent: i32) -> String {
    let len = digits.len() as i32;
    if exponent < 0 {
        return format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    if len <= exponent + 1 {
        return format!("{digits}{}", "0".repeat((exponent + 1 - len) as usize));
    }
    let (whole, fraction) = digits.split_at(exponent as usize + 1);
    format!("{whole}.{fraction}")
}

fn scientific(digits: &str, exponent: i32, spelling: Spelling) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    let width = if spelling == Spelling::Python { 2 } else { 1 };
    format!("{first}{point}{rest}e{sign}{:0width$}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_both_spellings() {
        for (value, modern, python) in [
            (44.0, "44", "44.0"),
            (0.5, "0.5", "0.5"),
            (-1.25, "-1.25", "-1.25"),
            (0.0, "0", "0.0"),
            (-0.0, "0", "-0.0"),
            (1e16, "10000000000000000", "1e+16"),
            (123_456_789_012_345_680.0, "123456789012345680", "1.2345678901234568e+17"),
            (1e21, "1e+21", "1e+21"),
            (1e-5, "0.00001", "1e-05"),
            (1.5e-7, "1.5e-7", "1.5e-07"),
            (0.0001, "0.0001", "0.0001"),
        ] {
            assert_eq!(float(value, Spelling::Modern), modern);
            assert_eq!(float(value, Spelling::Python), python);
        }
    }
}
