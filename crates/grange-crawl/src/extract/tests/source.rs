//! A document through a window.

use htmlscan::{Attribute, Dialect, Token};
use proptest::prelude::*;

use crate::extract::source::Source;

const PIECES: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<!--",
    "-->",
    "--",
    "=",
    "\"",
    "'",
    " ",
    "<a",
    "<b href=",
    "<script>",
    "</script>",
    "<style>",
    "</style",
    "<TextArea>",
    "</textarea>",
    "<plaintext>",
    "x=y",
    "<p",
    "é",
    "</SCRIPT\n",
    "<![CDATA[",
    "]]>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_window_changes_nothing(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60),
        head in 0_usize..64,
    ) {
        let input = pieces.concat();
        let (head, rest) = input.as_bytes().split_at(head.min(input.len()));
        let text = |tokens: &mut Vec<u8>, token: Token<'_>, attributes: &[Attribute<'_>]| match token {
            // Text may come in pieces.
            Token::Text(text) => tokens.extend_from_slice(text),
            Token::Start { name, .. } => {
                tokens.extend_from_slice(name);
                // Where they lie differs from window to window.
                for Attribute { name, value, .. } in attributes {
                    tokens.extend_from_slice(format!("{name:?}{value:?}").as_bytes());
                }
            }
            token => tokens.extend_from_slice(format!("{token:?}").as_bytes()),
        };
        for dialect in [Dialect::Html, Dialect::Xml] {
            let (mut whole, mut windowed) = (Vec::new(), Vec::new());
            Source::Bytes(input.as_bytes()).tokens(dialect, u64::MAX, |token, attributes| {
                text(&mut whole, token, attributes);
            });
            let source = Source::Stream { head: head.to_vec(), rest: Box::new(rest) };
            source.tokens_by(dialect, u64::MAX, 48, 1 << 20, |token, attributes| {
                text(&mut windowed, token, attributes);
            });
            prop_assert_eq!(String::from_utf8_lossy(&whole), String::from_utf8_lossy(&windowed), "{}", input);
        }
    }
}
