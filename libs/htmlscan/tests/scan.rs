//! Our tokens beside those of html5gum, which follows the standard to the letter.

use std::fmt::Write as _;

use html5gum::{State as GumState, Tokenizer};
use htmlscan::{Attribute, Dialect, Scanner, State, Token};
use proptest::prelude::*;

/// `<name a=b>` with names in lower case, or the text of a script or style.
type Seen = (Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>);

fn lower(bytes: &[u8]) -> Vec<u8> {
    bytes.to_ascii_lowercase()
}

fn note(seen: &mut Vec<Seen>, name: &[u8], attributes: &[Attribute<'_>]) {
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for attribute in attributes {
        // The standard keeps the first of several.
        if all.iter().all(|(name, _)| *name != lower(attribute.name)) {
            all.push((lower(attribute.name), attribute.value.to_vec()));
        }
    }
    seen.push((lower(name), all));
}

fn ours(input: &[u8], dialect: Dialect) -> Vec<Seen> {
    let mut scanner = Scanner::new(input, dialect, State::default());
    let (mut seen, mut attributes) = (Vec::new(), Vec::new());
    while let Some(token) = scanner.next(&mut attributes) {
        if let Token::Start { name, .. } = token {
            note(&mut seen, name, &attributes);
        }
    }
    seen
}

fn theirs(input: &[u8], dialect: Dialect) -> Vec<Seen> {
    use html5gum::Token as Gum;
    let mut seen = Vec::new();
    let mut emitter = html5gum::DefaultEmitter::default();
    // The states are switched by hand: our list of raw elements is another one than theirs.
    emitter.naively_switch_states(false);
    let mut tokenizer = Tokenizer::new_with_emitter(input, emitter);
    while let Some(Ok(token)) = tokenizer.next() {
        if let Gum::StartTag(tag) = token {
            let attributes = tag.attributes.iter();
            let mut all: Vec<_> = attributes.map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
            all.sort();
            let state = match &tag.name[..] {
                b"script" => Some(GumState::ScriptData),
                b"style" | b"iframe" | b"xmp" => Some(GumState::RawText),
                b"noscript" if dialect == Dialect::Browser => Some(GumState::RawText),
                b"title" | b"textarea" => Some(GumState::RcData),
                b"plaintext" => Some(GumState::PlainText),
                _ => None,
            };
            if let Some(state) = state {
                tokenizer.set_state(state);
            }
            seen.push((tag.name.to_vec(), all));
        }
    }
    seen
}

fn sorted(mut seen: Vec<Seen>) -> Vec<Seen> {
    for (_, attributes) in &mut seen {
        attributes.sort();
    }
    seen
}

/// Pieces that matter to a tokenizer. No `&`, since we decode entities elsewhere; no zeros and carriage returns, which
/// it replaces.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<",
        ">",
        "</",
        "/>",
        "<!--",
        "-->",
        "--!>",
        "--",
        "<!",
        "<?",
        "=",
        "\"",
        "'",
        " ",
        "\n",
        "/",
        "-",
        "!",
        "<a",
        "<b href=",
        "<img src=\"x\"",
        "<script>",
        "</script>",
        "<style>",
        "</style",
        "<title>",
        "</title>",
        "<TextArea>",
        "</textarea>",
        "<plaintext>",
        "<xmp>",
        "</xmp>",
        "a",
        "b",
        "href",
        "HREF=q",
        "é",
        "<script ",
        "</SCRIPT\n",
        "<iframe>",
        "</iframe>",
        "<![CDATA[",
        "]]>",
        "x=y",
        "<p",
        "=\"z\"",
        "='w'",
        "<!DOCTYPE html>",
        "<svg>",
        "</svg>",
        "<noscript>",
        "</noscript>",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn tags_are_those_of_the_standard(input in soup()) {
        let bytes = input.as_bytes();
        // Where the standard finds no end of a script that holds another, we settle for the first.
        let nests = input.to_ascii_lowercase().contains("<script") && input.contains("<!--");
        // Of `/>` in SVG a tokenizer alone knows nothing.
        let closes_itself = input.contains("<svg>") && input.contains("/>");
        if !(nests || closes_itself) {
            prop_assert_eq!(sorted(ours(bytes, Dialect::Html)), theirs(bytes, Dialect::Html), "{}", input);
        }
        // Of SVG a tokenizer alone knows nothing.
        if !input.contains("<svg>") {
            prop_assert_eq!(sorted(ours(bytes, Dialect::Browser)), theirs(bytes, Dialect::Browser), "{}", input);
        }
    }

    #[test]
    fn pieces_do_not_show(input in soup(), cut in 1_usize..40) {
        for dialect in [Dialect::Html, Dialect::Xhtml, Dialect::Browser, Dialect::Xml] {
            prop_assert_eq!(in_pieces(input.as_bytes(), dialect, cut), whole(input.as_bytes(), dialect), "{}", input);
        }
    }

    #[test]
    fn attributes_lie_where_they_say(input in soup()) {
        let mut scanner = Scanner::new(input.as_bytes(), Dialect::Browser, State::default());
        let mut attributes = Vec::new();
        while let Some(token) = scanner.next(&mut attributes) {
            if !matches!(token, Token::Start { .. }) {
                continue;
            }
            let mut end = 0;
            for attribute in &attributes {
                prop_assert!(attribute.start >= end && attribute.end < scanner.position());
                end = attribute.end;
                let all = &input.as_bytes()[attribute.start..end];
                prop_assert!(all.starts_with(attribute.name));
                // Alone in a tag it is the same attribute.
                let alone = [b"<p ", all, b" >"].concat();
                let mut read = Vec::new();
                Scanner::new(&alone, Dialect::Browser, State::default()).next(&mut read);
                prop_assert_eq!(read.len(), 1);
                prop_assert_eq!((read[0].name, read[0].value), (attribute.name, attribute.value));
            }
        }
    }
}

/// Every token as text; runs of text are one, as their pieces do not matter.
fn write(out: &mut String, token: Token<'_>, attributes: &[Attribute<'_>]) {
    match token {
        Token::Text(text) => out.push_str(&text.escape_ascii().to_string()),
        Token::Start { name, empty } => {
            let _ = write!(out, "[{:?} {empty}", name.escape_ascii().to_string());
            for Attribute { name, value, repeated, .. } in attributes {
                let _ = write!(out, " {}={}{repeated}", name.escape_ascii(), value.escape_ascii());
            }
            out.push(']');
        }
        token => {
            let _ = write!(out, "[{token:?}]");
        }
    }
}

fn whole(input: &[u8], dialect: Dialect) -> String {
    let mut scanner = Scanner::new(input, dialect, State::default());
    let (mut out, mut attributes) = (String::new(), Vec::new());
    while let Some(token) = scanner.next(&mut attributes) {
        write(&mut out, token, &attributes);
    }
    out
}

/// Takes texts as they come, and asks for any other token again when it was cut.
fn in_pieces(input: &[u8], dialect: Dialect, piece: usize) -> String {
    let (mut out, mut state, mut from, mut to) = (String::new(), State::default(), 0, 0);
    while to < input.len() {
        to = (to + piece).min(input.len());
        let mut scanner = Scanner::new(&input[from..to], dialect, state);
        let mut attributes = Vec::new();
        loop {
            let (before, state_before) = (scanner.position(), scanner.state());
            let token = scanner.next(&mut attributes);
            // A script that swallows the page is one only when the page is over.
            let passes =
                matches!(token, Some(Token::Text(_))) && !matches!(dialect, Dialect::Html | Dialect::Xhtml);
            if scanner.is_cut() && to < input.len() && !passes {
                (from, state) = (from + before, state_before);
                break;
            }
            let Some(token) = token else {
                (from, state) = (from + scanner.position(), scanner.state());
                break;
            };
            write(&mut out, token, &attributes);
        }
    }
    out
}

#[test]
fn old_scripts_hold_scripts() {
    for (input, tags) in [
        ("<script><!-- <script> </script> --></script><b>", 2),
        ("<script><!-- <script> --></script><b>", 2),
        ("<script><!-- </script><b>", 2),
        ("<script><!--></script><b>", 2),
        ("<script><script></script><b>", 2),
        ("<script><!--<script></script></script><b>", 2),
    ] {
        assert_eq!(ours(input.as_bytes(), Dialect::Html).len(), tags, "{input}");
        for dialect in [Dialect::Html, Dialect::Browser] {
            let seen = sorted(ours(input.as_bytes(), dialect));
            assert_eq!(seen, theirs(input.as_bytes(), dialect), "{input}");
        }
    }
    // The standard would swallow the rest of the page.
    assert_eq!(ours(b"<script><!-- <script> </script><b>", Dialect::Html).len(), 2);
}

/// The tags that [`Dialect::Browser`] sees.
fn tags(input: &str) -> Vec<String> {
    tags_by(Dialect::Browser, input)
}

fn tags_by(dialect: Dialect, input: &str) -> Vec<String> {
    let mut scanner = Scanner::new(input.as_bytes(), dialect, State::default());
    let (mut seen, mut attributes) = (Vec::new(), Vec::new());
    while let Some(token) = scanner.next(&mut attributes) {
        if let Token::Start { name, .. } = token {
            seen.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    seen
}

#[test]
fn an_element_that_ends_in_its_own_tag_holds_no_text() {
    for name in ["script", "style", "title", "textarea", "iframe", "xmp"] {
        let page = format!("<{name} src='/a'/><a></{name}><b>");
        assert_eq!(tags_by(Dialect::Xhtml, &page), [name, "a", "b"], "{name}");
        assert_eq!(tags_by(Dialect::Html, &page), [name, "b"], "{name}");
        // In SVG it ends there in HTML as well, and not behind it.
        let svg = format!("<svg><g/><{name}/><a/></svg><{name}/><i></{name}><b>");
        assert_eq!(tags_by(Dialect::Html, &svg), ["svg", "g", name, "a", name, "b"], "{name}");
    }
    let svg = "<svg><title>x</title><style/><a/></svg><style/><i></style><b>";
    assert_eq!(tags_by(Dialect::Html, svg), ["svg", "title", "style", "a", "style", "b"]);
    assert_eq!(tags_by(Dialect::Xhtml, "<p><![CDATA[ > <a> ]]><b>"), ["p", "b"]);
}

#[test]
fn a_browser_sees_text_where_scripts_run() {
    for (input, seen) in [
        ("<noscript><a></noscript><b>", &["noscript", "b"][..]),
        ("<NoFrames><a></noframes><b>", &["NoFrames", "b"]),
        ("<noembed><a></noembed ><b>", &["noembed", "b"]),
        ("<iframe><a></iframe><b>", &["iframe", "b"]),
        ("<plaintext><a></plaintext><b>", &["plaintext"]),
        // What the standard says of a script that never ends.
        ("<script><!-- <script> </script><b>", &["script"]),
    ] {
        assert_eq!(tags(input), seen, "{input}");
    }
}

#[test]
fn svg_and_mathml_are_markup_except_where_they_hold_html() {
    for (input, seen) in [
        ("<svg><style><a></style></svg><style><b></style>", &["svg", "style", "a", "style"][..]),
        ("<svg><script><a></script><path/></svg><b>", &["svg", "script", "a", "path", "b"]),
        // HTML inside, text again.
        (
            "<svg><foreignObject><style><a></style></foreignObject><style><b>",
            &["svg", "foreignObject", "style", "style", "b"],
        ),
        ("<svg><desc><script><a></script></desc><script><b>", &["svg", "desc", "script", "script", "b"]),
        ("<svg><title><a></title><title/><style><b>", &["svg", "title", "a", "title", "style", "b"]),
        ("<svg><title><title><a></title></title><style><b>", &["svg", "title", "title", "style", "b"]),
        ("<svg><title>x</svg><style><a></style><b>", &["svg", "title", "style", "b"]),
        ("<math><mi><style><a></style></mi><style><b>", &["math", "mi", "style", "style", "b"]),
        (
            "<math><annotation-xml encoding='text/html'><style><a></style></annotation-xml><style><b>",
            &["math", "annotation-xml", "style", "style", "b"],
        ),
        ("<math><annotation-xml><style><a>", &["math", "annotation-xml", "style", "a"]),
        // Another inside.
        ("<svg><svg></svg><style><a></style></svg><style><b>", &["svg", "svg", "style", "a", "style"]),
        (
            "<svg><foreignObject><svg><style><a></style></svg><style><b></style>",
            &["svg", "foreignObject", "svg", "style", "a", "style"],
        ),
        ("<svg><math></math><style><a>", &["svg", "math", "style", "a"]),
        // Nothing inside.
        ("<svg/><style><a></style><b>", &["svg", "style", "b"]),
        ("<svg a=b/><style><a></style><b>", &["svg", "style", "a", "b"]),
        // HTML that ends it, however deep.
        ("<svg><g><svg><p><style><a></style>", &["svg", "g", "svg", "p", "style"]),
        ("<svg></p><style><a></style>", &["svg", "style"]),
        ("<svg><font><style><a>", &["svg", "font", "style", "a"]),
        ("<svg><font COLOR=red><style><a></style>", &["svg", "font", "style"]),
        // Only there are sections of data; elsewhere they are comments by mistake.
        ("<svg><![CDATA[ > <a> ]]><b>", &["svg", "b"]),
        ("<![CDATA[ > <a> ]]><b>", &["a", "b"]),
        ("<svg><desc><![CDATA[ > <a> ]]><b>", &["svg", "desc", "a", "b"]),
    ] {
        assert_eq!(tags(input), seen, "{input}");
    }
    // Deeper than anything is counted, and nothing breaks.
    let deep = format!("{}{}<style><a></style>", "<svg><desc>".repeat(40), "</desc></svg>".repeat(40));
    assert_eq!(tags(&deep).last().unwrap(), "style");
}

#[test]
fn a_slash_belongs_to_an_unquoted_value() {
    for (input, value, is_empty) in [
        ("<a href=x/>", "x/", false),
        ("<a href=x />", "x", true),
        ("<a href='x'/>", "x", true),
        ("<a href/>", "", true),
        ("<a href= / >", "/", false),
        ("<a href / >", "", false),
        ("<a href=>", "", false),
    ] {
        let mut attributes = Vec::new();
        let token = Scanner::new(input.as_bytes(), Dialect::Html, State::default()).next(&mut attributes);
        assert_eq!(token, Some(Token::Start { name: b"a", empty: is_empty }), "{input}");
        assert_eq!(attributes[0].value, value.as_bytes(), "{input}");
    }
}
