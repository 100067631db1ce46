//! Scripts cut into tokens: every kind, and any text.

use proptest::prelude::*;

use super::*;

fn cut(text: &str) -> Vec<&str> {
    let mut lexer = Lexer::new(text);
    let mut out = Vec::new();
    while let Some(token) = lexer.next() {
        out.push(lexer.text(token));
    }
    out
}

#[test]
fn code_is_cut_where_a_parser_would() {
    let cases: &[(&str, &[&str])] = &[
        ("a = b / c / d", &["a", "=", "b", "/", "c", "/", "d"]),
        ("a = /b'/.test(c)", &["a", "=", "/b'/", ".", "test", "(", "c", ")"]),
        ("return /[/]/g", &["return", "/[/]/g"]),
        ("if (x) /y/.z", &["if", "(", "x", ")", "/y/", ".", "z"]),
        ("f(x) / y", &["f", "(", "x", ")", "/", "y"]),
        ("({}) / 2", &["(", "{", "}", ")", "/", "2"]),
        ("x = {} / 2", &["x", "=", "{", "}", "/", "2"]),
        ("{}\n/x/g", &["{", "}", "/x/g"]),
        ("a.return / b", &["a", ".", "return", "/", "b"]),
        ("a++ / b", &["a", "++", "/", "b"]),
        ("'it\\'s' + \"x\\\ny\"", &["'it\\'s'", "+", "\"x\\\ny\""]),
        ("'open\nx", &["'open", "x"]),
        ("// this\nx /* this */ y", &["x", "y"]),
        ("<!-- this\nx\n--> this\ny", &["x", "y"]),
        ("a --> b", &["a", "--", ">", "b"]),
        ("`a${b}c${`d${e}`}f`", &["`a${", "b", "}c${", "`d${", "e", "}`", "}f`"]),
        ("`${{a:1}}`", &["`${", "{", "a", ":", "1", "}", "}`"]),
        ("x?.5:y?.z", &["x", "?", ".5", ":", "y", "?.", "z"]),
        ("1e+3+0xe+1", &["1e+3", "+", "0xe", "+", "1"]),
        ("é = \u{a0}\u{2028}ß", &["é", "=", "ß"]),
        ("a=>{}", &["a", "=>", "{", "}"]),
        ("#priv in o", &["#priv", "in", "o"]),
        ("#!/bin/node\nx", &["x"]),
        ("", &[]),
    ];
    for (text, tokens) in cases {
        assert_eq!(cut(text), *tokens, "{text}");
    }
}

#[test]
fn depth_knows_functions_from_blocks() {
    let functions_at_end = |text: &str| {
        let mut lexer = Lexer::new(text);
        while lexer.next().is_some() {}
        (lexer.depth(), lexer.functions())
    };
    let cases = [
        ("function f() {", (1, 1)),
        ("if (x) {", (1, 0)),
        ("for (;;) { while (y) {", (2, 0)),
        ("x => {", (1, 1)),
        ("var o = {", (1, 0)),
        ("class A extends B {", (1, 0)),
        ("class A extends f({}) { m() {", (2, 1)),
        ("try { } catch (e) {", (1, 0)),
        ("(function() {", (2, 1)),
        ("label: {", (1, 0)),
    ];
    for (text, found) in cases {
        assert_eq!(functions_at_end(text), found, "{text}");
    }
}

proptest! {
    #[test]
    fn tokens_never_overlap_and_never_cut_a_letter(text in "[-a-zé'\"`/\\\\{}()\\[\\]$ \n.=*<>!0-9#\u{2028}]{0,60}|\\PC{0,40}") {
        let mut lexer = Lexer::new(&text);
        let mut end = 0;
        while let Some(token) = lexer.next() {
            prop_assert!(token.start >= end && token.end > token.start);
            prop_assert!(text.get(token.start..token.end).is_some());
            end = token.end;
        }
    }
}
