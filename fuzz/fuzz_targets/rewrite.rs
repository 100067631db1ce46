//! Any bytes through every rewriter, whole and in pieces: nothing panics, and the pieces do not show.
#![no_main]

use grange_replay::rewrite::{Kind, Modifier, Options, Place, transform};

fn run(kind: Kind, charset: Option<&str>, pieces: &[&[u8]]) -> Vec<u8> {
    let place = Place::new("http://r", "/c/", "20200102030405", Modifier::Main, "https://example.org/a/b");
    let mut rewriter = transform(kind, &place, charset, &Options::default());
    let mut out = Vec::new();
    for piece in pieces {
        rewriter.push(piece, &mut out);
    }
    rewriter.finish(&mut out);
    out
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [cut, charset, text @ ..] = bytes else { return };
    let charset = [None, Some("utf-8"), Some("shift_jis"), Some("utf-16le")][usize::from(charset % 4)];
    let (first, rest) = text.split_at(usize::from(*cut).min(text.len()));
    for kind in [Kind::Html, Kind::Xhtml, Kind::Css, Kind::Js, Kind::Module, Kind::Json, Kind::Xml] {
        assert_eq!(run(kind, charset, &[text]), run(kind, charset, &[first, rest]), "{kind:?}");
    }
});
