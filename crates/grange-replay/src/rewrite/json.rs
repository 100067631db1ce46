//! JSON stays as it is; JSONP calls the function that the replayed page asked for.
//!
//! Pages make up the name of the function anew each time (`jQuery123_456`), so the captured one is not there any more.

use super::work;

/// The captured call with the name asked for; `None` where there is no call or nothing to change.
pub(super) fn with_callback(text: &str, callback: Option<&str>) -> Option<String> {
    let callback = callback.filter(|name| !name.is_empty() && name.bytes().all(is_name_byte))?;
    let (start, end) = called_name(text)?;
    work::spend(text.len());
    (&text[start..end] != callback).then(|| format!("{}{callback}{}", &text[..start], &text[end..]))
}

/// Where the name in `name(…)` is, when the text is one call with an object or a list.
fn called_name(text: &str) -> Option<(usize, usize)> {
    let mut rest = text.trim_start();
    // Google and others put a comment in front against content sniffing.
    while let Some(comment) = rest.strip_prefix("/*") {
        work::spend(comment.find("*/")?);
        rest = comment.split_once("*/")?.1.trim_start();
    }
    let start = text.len() - rest.len();
    let len = rest.bytes().position(|byte| !is_name_byte(byte))?;
    let argument = rest[len..].trim_start().strip_prefix('(')?.trim_start();
    (len > 0 && argument.starts_with(['{', '['])).then_some((start, start + len))
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'[' | b']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_names_the_function_asked_for() {
        let cases = [
            ("jQuery_1({\"a\":1});", Some("cb2"), Some("cb2({\"a\":1});")),
            ("/**/ a.b ([1])", Some("c"), Some("/**/ c ([1])")),
            ("cb({})", Some("cb"), None),
            ("cb({})", None, None),
            ("cb({})", Some("alert(1)//"), None),
            ("{\"a\":1}", Some("cb"), None),
            ("alert('x')", Some("cb"), None),
            ("", Some("cb"), None),
        ];
        for (text, callback, expected) in cases {
            assert_eq!(with_callback(text, callback).as_deref(), expected, "{text}");
        }
    }
}
