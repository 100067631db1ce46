//! All languages say the same things, and readers get the one they like.

use std::collections::{BTreeMap, BTreeSet};

use fluent_bundle::FluentResource;
use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement};

use crate::{BUILT_IN, FolderError, Texts};

/// What a sentence is filled with.
type Asked = BTreeSet<String>;

/// Every sentence and attribute of a language, with what each is filled with.
fn sentences(files: &[&str]) -> BTreeMap<String, Asked> {
    let mut found = BTreeMap::new();
    for text in files {
        let resource = FluentResource::try_new((*text).to_owned());
        let resource = resource.unwrap_or_else(|(_, errors)| panic!("{errors:?} in\n{text}"));
        for entry in resource.entries() {
            match entry {
                Entry::Message(message) => {
                    let id = message.id.name;
                    let mut add = |name: String, pattern| {
                        let mut asked = Asked::new();
                        asked_by(pattern, &mut asked);
                        assert!(found.insert(name.clone(), asked).is_none(), "{name} is there twice");
                    };
                    if let Some(pattern) = &message.value {
                        add(id.to_owned(), pattern);
                    }
                    for attribute in &message.attributes {
                        add(format!("{id}.{}", attribute.id.name), &attribute.value);
                    }
                }
                Entry::Junk { content } => panic!("no message: {content}"),
                _ => {}
            }
        }
    }
    found
}

fn asked_by(pattern: &Pattern<&str>, asked: &mut Asked) {
    for element in &pattern.elements {
        let PatternElement::Placeable { expression } = element else { continue };
        let (inline, variants) = match expression {
            Expression::Inline(inline) => (inline, &[][..]),
            Expression::Select { selector, variants } => (selector, variants.as_slice()),
        };
        if let InlineExpression::VariableReference { id } = inline {
            asked.insert(id.name.to_owned());
        }
        for variant in variants {
            asked_by(&variant.value, asked);
        }
    }
}

#[test]
fn every_language_says_everything_and_asks_for_the_same() {
    let (_, english) = BUILT_IN[0];
    let english = sentences(&english);
    assert!(english.len() > 50);
    for (code, files) in BUILT_IN {
        let own = sentences(&files);
        let missing: Vec<_> = english.keys().filter(|id| !own.contains_key(*id)).collect();
        let unknown: Vec<_> = own.keys().filter(|id| !english.contains_key(*id)).collect();
        assert!(missing.is_empty() && unknown.is_empty(), "{code}: missing {missing:?}, unknown {unknown:?}");
        for (id, asked) in own {
            assert_eq!(asked, english[&id], "{id} in {code}");
        }
    }
}

#[test]
fn readers_get_the_language_they_like() {
    let texts = Texts::built_in();
    for (wanted, lang) in [
        ("da, en-GB;q=0.8, en;q=0.7", "da"),
        ("de-AT, de;q=0.9", "de"),
        ("fr-CH", "fr"),
        ("sv, it;q=0.5", "it"),
        ("sv", "en"),
        ("*", "en"),
        ("", "en"),
        ("\u{0}, ;;q=, x-klingon, -", "en"),
    ] {
        assert_eq!(texts.tongue(Some(wanted)).lang(), lang, "{wanted}");
    }
    assert_eq!(texts.tongue(None).lang(), "en");
    assert_eq!(texts.languages().collect::<Vec<_>>(), ["en", "da", "de", "fr", "it"]);
}

#[test]
fn one_and_many_differ_and_numbers_are_grouped() {
    let texts = Texts::built_in();
    for (lang, none, one, many) in [
        ("en", "0 captures", "1 capture", "12\u{202f}345 captures"),
        ("da", "0 høstninger", "1 høstning", "12\u{202f}345 høstninger"),
        ("de", "0 Aufnahmen", "1 Aufnahme", "12\u{202f}345 Aufnahmen"),
        // In French nought is singular.
        ("fr", "0 capture", "1 capture", "12\u{202f}345 captures"),
        ("it", "0 catture", "1 cattura", "12\u{202f}345 catture"),
    ] {
        let tongue = texts.tongue(Some(lang));
        let said = [0, 1, 12_345].map(|count| tongue.say_with("captures", &[("count", count.into())]));
        assert_eq!(said, [none, one, many], "{lang}");
    }
}

#[test]
fn what_no_language_has_is_named() {
    let tongue = Texts::built_in().tongue(Some("da"));
    assert_eq!(tongue.say("no-such-sentence"), "no-such-sentence");
    assert_eq!(tongue.say("weekday-3.letter"), "O");
    assert_eq!(tongue.say("weekday-3.none"), "weekday-3.none");
    assert_eq!((tongue.month(5).as_str(), tongue.weekday(6).as_str()), ("maj", "lørdag"));
}

#[test]
fn a_folder_replaces_sentences_and_brings_languages() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("README", "not a language");
    write(".git/x.ftl", "broken");
    write("da/own.ftl", "web-archive = Netarkivet\n");
    write("sv/own.ftl", "web-archive = Webbarkiv\ncaptures = { $number } insamlingar\n");
    write("ar/own.ftl", "web-archive = أرشيف الويب\n");
    let texts = Texts::with_folder(folder.path()).unwrap();
    let say = |lang: &str, id: &str| texts.tongue(Some(lang)).say_with(id, &[("count", 2.into())]);
    assert_eq!(say("da", "web-archive"), "Netarkivet");
    assert_eq!(say("da", "captures"), "2 høstninger");
    assert_eq!(say("sv", "web-archive"), "Webbarkiv");
    // What a language lacks, or asks for in vain, is said in English.
    assert_eq!(say("sv", "whole-host"), "The whole host");
    assert_eq!(say("sv", "captures"), "2 captures");
    assert_eq!((texts.tongue(Some("ar")).dir(), texts.tongue(Some("sv")).dir()), ("rtl", "ltr"));
    assert_eq!(Texts::built_in().tongue(Some("da")).say("web-archive"), "Webarkiv");
}

#[test]
fn a_folder_that_cannot_be_read_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("da");
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("own.ftl"), "# fine\nweb-archive = Netarkivet\nhalf a\n").unwrap();
    let error = Texts::with_folder(folder.path()).unwrap_err();
    assert!(matches!(error, FolderError::Malformed { line: 3, .. }), "{error}");
    std::fs::remove_dir_all(place).unwrap();
    std::fs::create_dir(folder.path().join("no language")).unwrap();
    let error = Texts::with_folder(folder.path()).unwrap_err();
    assert!(matches!(error, FolderError::NoLanguage { .. }), "{error}");
    let error = Texts::with_folder(&folder.path().join("none")).unwrap_err();
    assert!(error.to_string().contains("a folder per language"), "{error}");
}
