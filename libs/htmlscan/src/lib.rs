//! Markup as a row of tokens, for HTML and XML alike.
//!
//! Follows the tokenizer of the HTML standard in what is a tag, an attribute, a comment or the text of a script;
//! it decodes nothing and copies nothing. Between tags it goes from `<` to `<`, which makes it several times
//! faster than a tokenizer that must look at every character. `tests/scan.rs` holds it against html5gum.
//!
//! A token that runs into the end of the input is marked as cut: a reader with more to come asks for it again, from
//! the position and the [`State`] before it, with more behind it.
//!
//! ```
//! use htmlscan::{Dialect, Scanner, State, Token};
//!
//! let page = b"<p>See <a href='/x'>there</a>";
//! let mut scanner = Scanner::new(page, Dialect::Html, State::default());
//! let mut attributes = Vec::new();
//! while let Some(token) = scanner.next(&mut attributes) {
//!     if let Token::Start { name: b"a", .. } = token {
//!         let href = attributes[0];
//!         assert_eq!((href.name, href.value), (&b"href"[..], &b"/x"[..]));
//!         assert_eq!(&page[href.start..href.end], b"href='/x'");
//!     }
//! }
//! ```

mod charset;
mod foreign;
#[cfg(test)]
mod linear_tests;
mod look;
mod raw;
mod scanner;
mod tag;

pub use charset::{CharsetLabel, CharsetSource, charset_labels};
pub use scanner::{Scanner, State};
pub use tag::Attribute;

/// What stands in a document, with names, texts and values as they stand there: case, entities and charset untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// `<name …>`; its attributes are in the list handed to [`Scanner::next`].
    Start {
        name: &'a [u8],
        /// It ends in `/>`. In HTML that means something only inside SVG and MathML, in XML everywhere.
        empty: bool,
    },
    /// `</name>`
    End {
        name: &'a [u8],
    },
    Text(&'a [u8]),
    /// The inside of `<!-- … -->`, or of what passes for one.
    Comment(&'a [u8]),
    /// The inside of `<![CDATA[ … ]]>`; only in XML and XHTML, and in the SVG and MathML of [`Dialect::Browser`].
    Data(&'a [u8]),
    /// The inside of `<? … ?>`; only in XML.
    Instruction(&'a [u8]),
}

/// By which rules a document is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// HTML for one who runs no scripts and shows no frames: `noscript`, `noframes` and `noembed` are markup, for what
    /// stands there is for such readers. SVG and MathML are read as the HTML around them, but for `/>`, which ends an element
    /// there. Of a script that would swallow the rest of the page the first end tag is taken.
    Html,
    /// XHTML, well-formed or not, for one who only looks: as [`Dialect::Html`], but `/>` ends every element, also one whose
    /// inside would be text, and `<![CDATA[ … ]]>` is data.
    Xhtml,
    /// HTML as browsers read it that run scripts. Inside SVG and MathML `script`, `style` or `title` are markup
    /// like any other element, except where these hold HTML again.
    Browser,
    Xml,
}

/// What separates attributes: white space in the sense of the HTML standard, and the carriage return, which browsers turn
/// into a line end before they look.
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}
