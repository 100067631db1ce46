//! Keys for requests that carry a body.
//!
//! Two POSTs to one URL are two captures. The method and the body are written as query arguments behind the
//! URL before the key is made, so that replay can find the answer to the same request again:
//! `http://e.com/x` with body `a=1` becomes `http://e.com/x?__wb_method=POST&a=1`.

mod flatten;
mod multipart;
mod number;
mod percent;

pub use flatten::modern_spelling;

use data_encoding::BASE64;

/// How values of JSON bodies are spelled in keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Spelling {
    /// `true`, `false`, `null`, `44`, `1e+21`: newer pywb and warcio.js, and so nearly all replay there is.
    #[default]
    Modern,
    /// `True`, `False`, `None`, `44.0`, `1e+21`: cdxj-indexer and pywb up to 2.6.
    Python,
}

/// A longer body is cut here, counted in characters of the query it became: what every known indexer does.
pub const QUERY_CHARS_MAX: usize = 4096;

/// Of a body no more than this is looked at. Far more than the cut leaves of it, but a JSON body must be whole
/// to be read, so a body beyond this limit is keyed as if it were no JSON.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// The body that is read when the request names no length.
pub const BODY_BYTES_UNNAMED: usize = 8192;

/// The body of a POST or PUT as query arguments, cut to [`QUERY_CHARS_MAX`].
///
/// Forms are decoded, parts of a multipart body become arguments, leaf values of JSON become arguments under
/// their innermost names, and everything else is base64.
///
/// ```
/// use cdx::{Spelling, body_query};
/// let json = br#"{"a": {"b": true}, "c": [1, 2]}"#;
/// assert_eq!(body_query("application/json", json, Spelling::Modern), "b=true&c=1&c.2_=2");
/// assert_eq!(body_query("application/x-www-form-urlencoded", b"q=a+b%26c", Spelling::Modern), "q=a b&c");
/// assert_eq!(body_query("image/png", b"\x89PNG", Spelling::Modern), "__wb_post_data=iVBORw==");
/// ```
#[must_use]
pub fn body_query(content_type: &str, body: &[u8], spelling: Spelling) -> String {
    let binary = || format!("__wb_post_data={}", BASE64.encode(body));
    let mut query = if content_type.starts_with("application/x-www-form-urlencoded") {
        std::str::from_utf8(body).map_or_else(|_| binary(), percent::unquote_plus)
    } else if content_type.starts_with("multipart/") {
        multipart::query(content_type, body).unwrap_or_else(binary)
    } else if content_type.starts_with("application/json") {
        // A body that is not what it says adds nothing, rather than bytes that no client would repeat.
        flatten::query(body, spelling).unwrap_or_default()
    } else if content_type.starts_with("text/plain") {
        flatten::query(body, spelling).unwrap_or_else(binary)
    } else {
        binary()
    };
    if let Some((end, _)) = query.char_indices().nth(QUERY_CHARS_MAX) {
        query.truncate(end);
    }
    query
}

/// The URL with method and body behind it, ready to be made a key of.
///
/// ```
/// assert_eq!(cdx::url_with_body("http://e.com/?x", "POST", "a=1"), "http://e.com/?x&__wb_method=POST&a=1");
/// ```
#[must_use]
pub fn url_with_body(url: &str, method: &str, query: &str) -> String {
    let join = if url.contains('?') { '&' } else { '?' };
    let mut out = format!("{url}{join}__wb_method={method}");
    if !query.is_empty() {
        out.push('&');
        out.push_str(query);
    }
    out
}
