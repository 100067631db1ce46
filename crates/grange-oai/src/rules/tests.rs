use super::{Document, Expression, Namespaces};

/// A page of a real provider.
const PAGE: &str = include_str!("../../../../libs/oaipmh/tests/quirks/provider-oaipmh-4.0.0.xml");

/// Expressions, and what libxml2 answers to `string(…)` of each on that page. Numbers that need more than fifteen digits
/// are not among them: libxml2 rounds them, against the standard.
const ANSWERS: &str = include_str!("libxml2-answers.tsv");

#[test]
fn answers_are_those_of_libxml2() {
    let namespaces: Namespaces = [
        ("dc", "http://purl.org/dc/elements/1.1/"),
        ("oai", "http://www.openarchives.org/OAI/2.0/"),
        ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"),
        ("xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    ]
    .map(|(prefix, uri)| (prefix.to_owned(), uri.to_owned()))
    .into();
    let page = Document::parse(PAGE).unwrap();
    let mut differing = Vec::new();
    for line in ANSWERS.lines() {
        let (xpath, answer) = line.split_once('\t').unwrap();
        let expression = Expression::parse(xpath, &namespaces, "test").unwrap();
        // As string() has it: the first of a set in document order, or the value.
        let got = expression.values(&page).unwrap().first().map_or(String::new(), |found| found.text.clone());
        if got.replace('\n', "\\n") != answer {
            differing.push(format!("{xpath}: {got}, not {answer}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
