use std::borrow::Cow;

use super::Normalizer;

const DC: &str = "xmlns:dc='http://purl.org/dc/elements/1.1/'";

/// The example of the Illinois document, whose sample lost its mark-up: a type field with the value "jpeg" gets a
/// normalized type field with the value "image"; text and book are its other values.
fn document() -> Normalizer {
    Normalizer::parse(&format!(
        "<normalize><selectionNamespaces>{DC}</selectionNamespaces><mapping xpath='//dc:type'>\
         <newElement name='dc:type' regexp='article|report' ignoreCase='true'><newValue>text</newValue></newElement>\
         <newElement name='dc:type' regexp='monograph' ignoreCase='true'><newValue>text</newValue>\
         <newValue>book</newValue></newElement>\
         <newElement name='dc:type' regexp='jpeg' ignoreCase='true'><newValue>image</newValue></newElement>\
         </mapping></normalize>"
    ))
    .unwrap()
}

fn record(inside: &str) -> String {
    format!("<oai_dc:dc xmlns:oai_dc='urn:o' {DC}>{inside}</oai_dc:dc>")
}

#[test]
fn the_example_of_the_document_gives_its_documented_answers() {
    for (before, after) in [
        ("<dc:type>jpeg</dc:type>", "<dc:type>jpeg</dc:type><dc:type>image</dc:type>"),
        (
            "<dc:type>image/JPEG</dc:type><dc:x/>",
            "<dc:type>image/JPEG</dc:type><dc:type>image</dc:type><dc:x/>",
        ),
        (
            "<dc:type>Monograph</dc:type>",
            "<dc:type>Monograph</dc:type><dc:type>text</dc:type><dc:type>book</dc:type>",
        ),
        (
            "<dc:type>jpeg</dc:type> <dc:type>JPEG 2000</dc:type> <dc:a/>",
            "<dc:type>jpeg</dc:type> <dc:type>JPEG 2000</dc:type><dc:type>image</dc:type> <dc:a/>",
        ),
        (
            "<dc:type>report</dc:type><dc:type>monograph</dc:type>",
            "<dc:type>report</dc:type><dc:type>monograph</dc:type><dc:type>text</dc:type><dc:type>book</dc:type>",
        ),
    ] {
        assert_eq!(document().apply(&record(before)).unwrap(), record(after), "{before}");
    }
    let untouched = record("<dc:title>jpeg</dc:title>");
    assert!(matches!(document().apply(&untouched).unwrap(), Cow::Borrowed(_)));
}

#[test]
fn new_elements_bring_the_namespace_they_need() {
    let apply = |name: &str, xpath: &str, record: &str| {
        let xml = format!(
            "<normalize><selectionNamespaces>{DC} xmlns:n='urn:n&amp;'</selectionNamespaces><mapping xpath=\"{xpath}\">\
             <newElement name='{name}'><newValue>a &lt; b</newValue></newElement></mapping></normalize>"
        );
        Normalizer::parse(&xml).unwrap().apply(record).unwrap().into_owned()
    };
    for (name, xpath, before, after) in [
        ("x", "//a", "<r><a/></r>", "<r><a/><x>a &lt; b</x></r>"),
        (
            "x",
            "//*[local-name()='a']",
            "<r xmlns='urn:r'><a/></r>",
            "<r xmlns='urn:r'><a/><x xmlns=\"\">a &lt; b</x></r>",
        ),
        ("n:x", "//a", "<r><a/></r>", "<r><a/><n:x xmlns:n=\"urn:n&amp;\">a &lt; b</n:x></r>"),
        (
            "n:x",
            "//a",
            "<r xmlns:n='urn:other'><a/></r>",
            "<r xmlns:n='urn:other'><a/><n:x xmlns:n=\"urn:n&amp;\">a &lt; b</n:x></r>",
        ),
        (
            "n:x",
            "//a",
            "<r xmlns:n='urn:n&amp;'><a/></r>",
            "<r xmlns:n='urn:n&amp;'><a/><n:x>a &lt; b</n:x></r>",
        ),
        // The root has no siblings; values that are no nodes belong to it.
        ("x", "/*", "<r b='1'/>", "<r b='1'><x>a &lt; b</x></r>"),
        ("x", "count(//a)", "<r><b></b></r>", "<r><b></b><x>a &lt; b</x></r>"),
        // Attributes and text belong to their element, also by the other engine.
        ("x", "//a/@b", "<r><a b='1'/><c/></r>", "<r><a b='1'/><x>a &lt; b</x><c/></r>"),
        ("x", "//a/text()", "<r><a>t</a><c/></r>", "<r><a>t</a><x>a &lt; b</x><c/></r>"),
        (
            "x",
            "(//a)[2]/text()",
            "<r><a/><b><a>t</a><c/></b></r>",
            "<r><a/><b><a>t</a><x>a &lt; b</x><c/></b></r>",
        ),
    ] {
        assert_eq!(apply(name, xpath, before), after, "{before}");
        roxmltree::Document::parse(after).unwrap();
    }
}

#[test]
fn mappings_see_the_record_as_it_was_harvested() {
    let chained = "<normalize><mapping xpath='//a'><newElement name='b'><newValue>1</newValue></newElement></mapping>\
                   <mapping xpath='//b'><newElement name='c'><newValue>2</newValue></newElement></mapping></normalize>";
    let got = Normalizer::parse(chained).unwrap().apply("<r><a/></r>").unwrap().into_owned();
    assert_eq!(got, "<r><a/><b>1</b></r>");
}

#[test]
fn files_that_cannot_work_are_refused_with_their_place() {
    for (xml, told) in [
        ("<normalize><mapping/></normalize>", "mapping 1: xpath is missing"),
        ("<normalize><filter/></normalize>", "filter is not known"),
        ("<normalize><mapping xpath='//x:a'/></normalize>", "the prefix x is not declared"),
        ("<normalize><mapping xpath='//a'><new/></mapping></normalize>", "expected newElement"),
        (
            "<normalize><mapping xpath='//a'><newElement/></mapping></normalize>",
            "name of newElement is missing",
        ),
        ("<normalize><mapping xpath='//a'><newElement name='b'/></mapping></normalize>", "b has no newValue"),
        (
            "<normalize><mapping xpath='//a'><newElement name='1 b'><newValue/></newElement></mapping></normalize>",
            "not the name of an element",
        ),
        (
            "<normalize><mapping xpath='//a'><newElement name='q:b'><newValue/></newElement></mapping></normalize>",
            "the prefix q is not declared",
        ),
        (
            "<normalize><mapping xpath='//a'><newElement name='b' regexp='['><newValue/></newElement></mapping></normalize>",
            "not a regular expression",
        ),
    ] {
        let error = Normalizer::parse(xml).unwrap_err().to_string();
        assert!(error.contains(told), "{xml}: {error}");
    }
}
