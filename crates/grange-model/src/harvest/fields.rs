//! Custom fields: what a library wants to write down about domains and harvests beyond what Grange knows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name::Name;
use crate::nearest::named;

named! {
    /// What a custom field belongs to.
    FieldNoun, "noun with custom fields" {
        Domain = "domain",
        Harvest = "harvest",
    }
}

named! {
    /// What a custom field holds.
    FieldKind, "kind of custom field" {
        Text = "text",
        /// Text of many lines.
        Note = "note",
        /// `true` or `false`.
        Boolean = "boolean",
        Number = "number",
        /// `2026-01-31`.
        Date = "date",
        /// One of the options.
        Select = "select",
    }
}

/// A field as it was defined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomField {
    pub noun: FieldNoun,
    pub name: Name,
    pub kind: FieldKind,
    /// A new or changed row must have it.
    #[serde(default)]
    pub mandatory: bool,
    /// Shown in this order.
    #[serde(default)]
    pub position: i64,
    /// For `select`.
    #[serde(default)]
    pub options: Vec<String>,
}

/// The longest value, as in NetarchiveSuite.
const VALUE_CHARS_MAX: usize = 30_000;

/// Whether the values fit the fields: the first one that does not is told.
pub fn check(fields: &[CustomField], values: &BTreeMap<String, String>) -> Result<(), String> {
    for (name, value) in values {
        let field = fields.iter().find(|field| field.name.as_str() == name).ok_or_else(|| {
            let known: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
            format!("there is no custom field \"{name}\"; there are: {}", known.join(", "))
        })?;
        field.check(value)?;
    }
    match fields
        .iter()
        .find(|field| field.mandatory && values.get(field.name.as_str()).is_none_or(String::is_empty))
    {
        Some(field) => Err(format!("the custom field \"{}\" must have a value", field.name)),
        None => Ok(()),
    }
}

impl CustomField {
    fn check(&self, value: &str) -> Result<(), String> {
        let wanted = match self.kind {
            _ if value.chars().count() > VALUE_CHARS_MAX => "shorter",
            _ if value.contains('\0') => "without NUL",
            _ if value.is_empty() => return Ok(()),
            FieldKind::Text if value.contains('\n') => "one line",
            FieldKind::Boolean if !matches!(value, "true" | "false") => "true or false",
            FieldKind::Number if value.parse::<f64>().is_ok_and(f64::is_finite) => return Ok(()),
            FieldKind::Number => "a number",
            FieldKind::Date if value.parse::<jiff::civil::Date>().is_err() => "a date such as 2026-01-31",
            FieldKind::Select if !self.options.iter().any(|option| option == value) => "one of its options",
            _ => return Ok(()),
        };
        Err(format!("the custom field \"{}\" must be {wanted}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_their_fields() {
        let field = |name: &str, kind, mandatory| CustomField {
            noun: FieldNoun::Domain,
            name: name.parse().unwrap(),
            kind,
            mandatory,
            position: 0,
            options: vec!["a".to_owned(), "b".to_owned()],
        };
        let fields = [
            field("owner", FieldKind::Text, true),
            field("checked", FieldKind::Date, false),
            field("grade", FieldKind::Select, false),
            field("weight", FieldKind::Number, false),
            field("paywall", FieldKind::Boolean, false),
        ];
        for (values, fits) in [
            (&[("owner", "KB")][..], true),
            (&[][..], false),
            (&[("owner", "")][..], false),
            (&[("owner", "KB"), ("checked", "2026-02-29")][..], false),
            (&[("owner", "KB"), ("checked", "2024-02-29"), ("grade", "b")][..], true),
            (&[("owner", "KB"), ("grade", "c")][..], false),
            (&[("owner", "KB"), ("weight", "1.5"), ("paywall", "true")][..], true),
            (&[("owner", "KB"), ("weight", "NaN")][..], false),
            (&[("owner", "KB"), ("paywall", "yes")][..], false),
            (&[("owner", "two\nlines")][..], false),
            (&[("owner", "KB"), ("onwer", "x")][..], false),
        ] {
            let map = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            assert_eq!(check(&fields, &map).is_ok(), fits, "{values:?}");
        }
    }
}
