use super::Filter;

/// The example of the Illinois document.
const DOCUMENT: &str = r#"
<filters match="any">

<selectionNamespaces>xmlns:dc='http://purl.org/dc/elements/1.1/'</selectionNamespaces>
<filter invert="false" xpath="//dc:subject" regexp="cultural" ignoreCase="true" />
<filter invert="false" xpath="//dc:subject" regexp="heritage" ignoreCase="true" />

</filters>
"#;

fn record(subjects: &[&str]) -> String {
    let subjects: Vec<_> = subjects.iter().map(|text| format!("<dc:subject>{text}</dc:subject>")).collect();
    let subjects = subjects.concat();
    format!(
        "<oai_dc:dc xmlns:oai_dc='http://www.openarchives.org/OAI/2.0/oai_dc/' \
         xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title xml:lang='en'>Heritage</dc:title>{subjects}</oai_dc:dc>"
    )
}

fn filter(joined: &str, rules: &str) -> Filter {
    let xml = format!(
        "<filters match='{joined}'><selectionNamespaces>xmlns:dc='http://purl.org/dc/elements/1.1/'\
         </selectionNamespaces>{rules}</filters>"
    );
    Filter::parse(&xml).unwrap_or_else(|error| panic!("{error}: {xml}"))
}

#[test]
fn the_example_of_the_document_gives_its_documented_answers() {
    let any = Filter::parse(DOCUMENT).unwrap();
    let all = Filter::parse(&DOCUMENT.replace("\"any\"", "\"all\"")).unwrap();
    let inverted = Filter::parse(&DOCUMENT.replace("invert=\"false\"", "invert=\"true\"")).unwrap();
    let all_inverted =
        Filter::parse(&DOCUMENT.replace("\"any\"", "\"all\"").replace("invert=\"false\"", "invert=\"true\""))
            .unwrap();
    for (subjects, expected) in [
        // any; all: every node must match both expressions; any inverted: one of them does not match;
        // all inverted: neither matches on all nodes
        (&["Cultural studies"][..], [true, false, true, false]),
        (&["world HERITAGE"], [true, false, true, false]),
        (&["Cultural heritage"], [true, true, false, false]),
        (&["Physics"], [false, false, true, true]),
        (&["Physics", "Cultural heritage"], [true, false, false, true]),
        (&["cultural heritage", "Heritage, cultural"], [true, true, false, false]),
        (&[], [false, false, true, true]),
    ] {
        let xml = record(subjects);
        let got = [&any, &all, &inverted, &all_inverted].map(|filter| filter.matches(&xml).unwrap());
        assert_eq!(got, expected, "{subjects:?}");
    }
}

#[test]
fn expressions_are_xpath_and_regular_expressions_in_full() {
    let xml = record(&["Maps", "Books &amp; maps"]);
    for (rule, expected) in [
        ("<filter xpath='//dc:subject' regexp='maps'/>", true),
        ("<filter xpath='//dc:subject[1]' regexp='maps'/>", false),
        ("<filter xpath='//dc:subject[1]' regexp='maps' ignoreCase='TRUE'/>", true),
        ("<filter xpath='//dc:subject' regexp='^Books &amp; maps$'/>", true),
        ("<filter xpath='(//dc:subject)[2]' regexp='^Books'/>", true),
        ("<filter xpath='(//dc:subject)[1]' regexp='^Books'/>", false),
        ("<filter xpath='count(//dc:subject)' regexp='^2$'/>", true),
        ("<filter xpath='count(//dc:subject) > 2' regexp='true'/>", false),
        ("<filter xpath='//@xml:lang' regexp='^en$'/>", true),
        ("<filter xpath='//namespace::*' regexp='oai_dc'/>", true),
        ("<filter xpath='//subject' regexp='.'/>", false),
        ("<filter xpath='/*[local-name()=\"dc\"]/dc:title/text()' regexp='Heritage'/>", true),
        ("<filter xpath='//dc:subject' regexp='(?&lt;!Books &amp; )maps'/>", false),
        ("<filter xpath='//dc:subject' regexp='(o)\\1'/>", true),
        ("<filter xpath='//dc:rights' regexp='.' invert='true'/>", true),
        ("", true),
    ] {
        assert_eq!(filter("any", rule).matches(&xml).unwrap(), expected, "{rule}");
    }
}

#[test]
fn files_that_cannot_work_are_refused_with_their_place() {
    for (xml, told) in [
        ("<filters", "the file: not well-formed"),
        ("<filter xpath='a' regexp='b'/>", "expected filters"),
        ("<filters match='some'/>", "any or all"),
        ("<filters><filtr/></filters>", "filtr is not known"),
        ("<filters><filter regexp='a'/></filters>", "filter 1: xpath is missing"),
        ("<filters><filter xpath='//a'/></filters>", "filter 1: regexp is missing"),
        ("<filters><filter xpath='//a' regex='b'/></filters>", "filter 1: the attribute regex is not known"),
        ("<filters><filter xpath='//a' regexp='b' invert='perhaps'/></filters>", "true or false"),
        (
            "<filters><filter xpath='//a' regexp='b'/><filter xpath='//dc:a' regexp='b'/></filters>",
            "filter 2: ",
        ),
        ("<filters><filter xpath='//a[' regexp='b'/></filters>", "not a usable XPath"),
        ("<filters><filter xpath='' regexp='b'/></filters>", "the XPath is empty"),
        ("<filters><filter xpath='foo(1)' regexp='b'/></filters>", "no function foo"),
        ("<filters><filter xpath='//a' regexp='(b'/></filters>", "not a regular expression"),
        (
            "<filters><selectionNamespaces>dc=urn:x</selectionNamespaces></filters>",
            "selectionNamespaces: expected",
        ),
    ] {
        let error = Filter::parse(xml).unwrap_err().to_string();
        assert!(error.contains(told), "{xml}: {error}");
    }
}

#[test]
fn a_record_that_cannot_be_judged_is_an_error_not_an_answer() {
    let filter = filter("any", "<filter xpath='//dc:subject' regexp='(a+)+\\1$'/>");
    assert!(filter.matches("<a>").is_err());
    assert!(filter.matches("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>").is_err());
    let hostile = record(&[&("a".repeat(100) + "b")]);
    // Either an honest no or "takes too long", but at once.
    assert_ne!(filter.matches(&hostile), Ok(true));
}

#[test]
fn the_two_engines_agree_where_both_can() {
    let xml = record(&["Maps", "Books", "x<b>1</b>"]).replace("<b>1</b>", "<![CDATA[<1>]]>");
    let document = crate::rules::Document::parse(&xml).unwrap();
    let namespaces =
        std::collections::BTreeMap::from([("dc".to_owned(), "http://purl.org/dc/elements/1.1/".to_owned())]);
    let context: Vec<_> = namespaces.clone().into_iter().collect();
    let mut fast = uppsala::XPathEvaluator::new();
    fast.add_namespace("dc", "http://purl.org/dc/elements/1.1/");
    for xpath in [
        "//dc:subject",
        "//dc:*",
        "/*/*[2]",
        "//dc:subject[last()]",
        "//dc:subject[position() mod 2 = 1]",
        "//dc:title | //dc:subject[. = 'Books']",
        "//dc:subject[preceding-sibling::dc:subject]",
        "//dc:title/following-sibling::*[1]",
        "//*[@xml:lang]",
        "//@*",
        "count(//dc:subject)",
        "string(//dc:title)",
        "concat('a', string-length(//dc:title), true())",
        "normalize-space('  a  b ')",
        "translate('abc', 'ab', 'x')",
        "substring('12345', 2, 3)",
        "sum(//dc:none) + round(2.5) - floor(-1.5) * ceiling(1.2)",
        "//dc:title/ancestor::*",
        "name(/*)",
        "namespace-uri(//dc:title)",
        "boolean(//dc:rights)",
        "1 div 0",
        "number('x')",
    ] {
        let one = document.evaluate(&fast, xpath).unwrap();
        let other = document.evaluate_completely(&context, xpath).unwrap();
        assert_eq!(one, other, "{xpath}");
    }
}
