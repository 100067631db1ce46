//! Templates: how a crawl behaves. The text is the crawl engine's business; its versions are kept for ever.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name::Name;

/// One version of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Template {
    pub name: Name,
    /// Counted from 1; a new text is a new version.
    pub version: u32,
    pub text: String,
    /// Whether it is offered for new configurations.
    pub active: bool,
    pub comments: String,
    #[schemars(with = "String")]
    pub changed_at: Timestamp,
    pub changed_by: String,
}

/// Says what is wrong with a template's text. The crawl engine brings the real one; a plain function, so that it can
/// be handed down without anybody above knowing the engine.
pub type TemplateCheck = fn(&str) -> Result<(), String>;

/// The longest template. Heritrix ones with many traps reach a megabyte.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// What must hold whatever the engine.
pub fn plain_check(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("it is longer than {} MiB", TEXT_BYTES_MAX >> 20));
    }
    if text.contains('\0') {
        return Err("it holds a NUL character".to_owned());
    }
    Ok(())
}
