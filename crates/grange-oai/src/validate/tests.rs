use super::{BadSchemas, Validator, Verdict};

const OAI_DC: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";

fn record(inside: &str) -> String {
    format!(
        "<oai_dc:dc xmlns:oai_dc='{OAI_DC}' xmlns:dc='http://purl.org/dc/elements/1.1/' \
             xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' \
             xsi:schemaLocation='http://purl.org/dc/elements/1.1/ http://nowhere.invalid/wrong.xsd'>{inside}</oai_dc:dc>"
    )
}

#[test]
fn oai_dc_is_judged_by_its_schema() {
    let validator = Validator::shipped().unwrap();
    for (inside, valid) in [
        ("", true),
        ("<dc:title>a</dc:title><dc:rights/>\n<dc:title xml:lang='de-AT'>b &amp; c</dc:title>", true),
        ("<!-- x --><dc:date>not checked</dc:date>", true),
        ("<dc:titel>a</dc:titel>", false),
        ("<title>a</title>", false),
        ("<x:y xmlns:x='urn:x'/>", false),
        ("text", false),
        ("<dc:title a='1'>x</dc:title>", false),
        ("<dc:title>a<b/></dc:title>", false),
        ("<dc:title xml:lang='not a language'>x</dc:title>", false),
    ] {
        let verdict = validator.validate(&record(inside));
        match (valid, &verdict) {
            (true, Verdict::Valid) => {}
            (false, Verdict::Invalid(violations)) => assert!(!violations.is_empty()),
            _ => panic!("{inside}: {verdict:?}"),
        }
    }
    let attribute = record("").replace("<oai_dc:dc ", "<oai_dc:dc a='1' ");
    assert!(matches!(validator.validate(&attribute), Verdict::Invalid(_)));
}

#[test]
fn a_violation_names_its_rule() {
    let Verdict::Invalid(violations) = Validator::shipped().unwrap().validate(&record("<dc:titel/>")) else {
        panic!("valid")
    };
    assert!(
        violations[0].rule.starts_with("cvc-") && violations[0].to_string().contains("titel"),
        "{violations:?}"
    );
}

#[test]
fn what_has_no_schema_is_unknown_and_what_is_no_xml_is_not_well_formed() {
    let validator = Validator::shipped().unwrap();
    assert_eq!(validator.validate("<a xmlns='urn:none'/>"), Verdict::Unknown("urn:none".into()));
    assert_eq!(validator.validate("<a/>"), Verdict::Unknown(String::new()));
    for xml in ["", "<a>", "<a b='1' b='2'/>", "<x:a/>", "<a>&eacute;</a>", "<a>\u{b}</a>", "<a/><b/>"] {
        assert!(matches!(validator.validate(xml), Verdict::NotWellFormed(_)), "{xml}");
        assert!(super::well_formed(xml).is_err(), "{xml}");
    }
    assert!(validator.knows(OAI_DC) && !validator.knows("urn:none"));
}

#[test]
fn schemas_of_other_formats_are_read_from_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("note.txt", "not a schema");
    write(
        "book.xsd",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:dc='http://purl.org/dc/elements/1.1/' \
         targetNamespace='urn:book' xmlns='urn:book' elementFormDefault='qualified'>\
         <xs:include schemaLocation='http://example.org/schemas/parts.xsd'/>\
         <xs:import namespace='http://purl.org/dc/elements/1.1/' schemaLocation='http://dublincore.org/dead.xsd'/>\
         <xs:element name='book'><xs:complexType><xs:sequence><xs:element ref='dc:title'/><xs:element name='pages' \
         type='Pages'/></xs:sequence></xs:complexType></xs:element></xs:schema>",
    );
    let error = Validator::with_folder(folder.path()).unwrap_err();
    assert!(matches!(&error, BadSchemas::Broken(text) if text.contains("parts.xsd")), "{error}");
    write(
        "parts.xsd",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:book'>\
         <xs:simpleType name='Pages'><xs:restriction base='xs:positiveInteger'><xs:maxInclusive value='9999'/>\
         </xs:restriction></xs:simpleType></xs:schema>",
    );
    let validator = Validator::with_folder(folder.path()).unwrap();
    let book = |pages: &str| {
        format!(
            "<book xmlns='urn:book' xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>t</dc:title>\
                 <pages>{pages}</pages></book>"
        )
    };
    assert_eq!(validator.validate(&book("12")), Verdict::Valid);
    assert!(matches!(validator.validate(&book("0")), Verdict::Invalid(_)));
    assert!(matches!(validator.validate(&book("10000")), Verdict::Invalid(_)));
    assert_eq!(validator.validate(&record("<dc:title/>")), Verdict::Valid);

    write(
        "broken.xsd",
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:complexType name='a'><xs:nonsense/></xs:complexType></xs:schema>",
    );
    assert!(matches!(Validator::with_folder(folder.path()), Err(BadSchemas::Broken(_))));
    write("broken.xsd", "<html/>");
    assert!(matches!(Validator::with_folder(folder.path()), Err(BadSchemas::Unreadable { .. })));
    assert!(Validator::with_folder(&folder.path().join("none")).is_err());
}
