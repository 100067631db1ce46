//! From the captured body and headers to those a browser can show under the address of the archive.
//!
//! [`Kind::of`] says what a body is, [`headers`] what is sent ahead of it, [`transform`] gives the rewriter that the
//! body is pushed through. All of it is synchronous and knows neither clock nor network; memory is bounded whatever
//! the body holds, and damaged text goes through as far as it can be read.

mod assets;
mod cookies;
mod headers;
mod kind;
mod modifier;
mod place;
mod script;
mod transform;

pub use assets::{Asset, NoAsset, STATIC_PREFIX, asset, has_wombat};
pub use headers::{ARCHIVED_PREFIX, POLICY, headers};
pub use kind::{Clues, Kind};
pub use modifier::{Modifier, split_time};
pub use place::Place;
pub use transform::{Options, RewriteError, Transform};

use transform::Untouched;

/// The rewriter of one body. `charset`: label from the archived `Content-Type`, if it has one.
pub fn transform(
    kind: Kind,
    _place: &Place,
    _charset: Option<&str>,
    _options: &Options,
) -> Box<dyn Transform + Send> {
    match kind {
        Kind::Html | Kind::Css | Kind::Js | Kind::Module | Kind::Json | Kind::Xml => Box::new(Untouched),
        Kind::Plain | Kind::Binary => Box::new(Untouched),
    }
}
