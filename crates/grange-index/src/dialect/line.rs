//! Lines of answers.

use crate::query::Field;
use crate::view::CaptureView;

/// Appends fields with spaces between them, `-` for what is absent. `bare` takes labels off digests, as CDX has them.
pub(super) fn columns(view: &CaptureView<'_>, fields: &[Field], bare: bool, out: &mut String) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        let start = out.len();
        if !value(view, field, bare, out) || out.len() == start {
            out.push('-');
        } else if out[start..].contains([' ', '\n', '\r']) {
            // A space inside a column would shift the others.
            let safe = out[start..].replace(' ', "%20").replace('\n', "%0a").replace('\r', "%0d");
            out.truncate(start);
            out.push_str(&safe);
        }
    }
}

/// Appends one field as it is shown.
pub(super) fn value(view: &CaptureView<'_>, field: &Field, bare: bool, out: &mut String) -> bool {
    let start = out.len();
    let there = field.write(view, out);
    if bare && *field == Field::Digest {
        let label = out[start..].rfind(':').map_or(0, |at| at + 1);
        out.replace_range(start..start + label, "");
    }
    there
}

/// Appends a JSON string.
pub(super) fn quoted(text: &str, out: &mut String) {
    if text.bytes().any(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        // Text always has a JSON form.
        out.push_str(&serde_json::to_string(text).unwrap_or_default());
        return;
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quoted_text_is_the_json_of_it(text in any::<String>()) {
            let mut out = String::new();
            quoted(&text, &mut out);
            prop_assert_eq!(out, serde_json::to_string(&text).unwrap());
        }
    }
}
