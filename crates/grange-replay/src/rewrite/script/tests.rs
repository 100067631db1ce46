use proptest::prelude::*;

use super::*;
use crate::rewrite::Modifier;

fn place() -> Place {
    Place::new("http://r:1", "/c/", "20200102030405", Modifier::Main, "https://example.org/dir/app.js")
}

fn source(place: &Place) -> Source<'_> {
    Source { place, url: Some("https://example.org/dir/app.js") }
}

/// The script inside the wrapping, and what stands in front of the block.
fn inside(text: &str) -> (String, String) {
    let place = place();
    let out = classic(text, source(&place), Mode::Classic);
    let Some((head, body)) = out.split_once("{\n") else { return (String::new(), out) };
    let before = head.split("var _____WB").next().unwrap_or_default().to_owned();
    (before, body.strip_suffix("\n}}").unwrap().to_owned())
}

const THIS: &str = CHECK_THIS;

#[test]
fn a_script_that_meets_no_stand_in_is_left_alone() {
    for text in [
        "",
        "var a = 1; function f() { return this.a; }",
        "x.location = 1; y = {top: 2, parent: 3}",
        "'window' + `location` + /document/ // self",
        "let a = 1; const b = 2; class C {}",
    ] {
        let place = place();
        assert_eq!(classic(text, source(&place), Mode::Classic), text);
    }
}

#[test]
fn a_script_is_wrapped_in_stand_ins() {
    let place = place();
    let out = classic("alert(window.x) // end", source(&place), Mode::Classic);
    assert!(out.contains("let window = _____WB$wombat$assign$function_____(\"window\");"), "{out}");
    assert!(out.contains("let opener = "), "{out}");
    assert!(out.ends_with("\nalert(window.x) // end\n}}"), "{out}");
}

#[test]
fn ways_out_of_the_page_are_changed() {
    let check = " ((self.__WB_check_loc && self.__WB_check_loc(location, arguments)) || {}).maybeHref =";
    let cases = [
        ("location = x", format!("location ={check} x")),
        ("location='/a'", format!("location={check}'/a'")),
        ("a && (location = b)", format!("a && (location ={check} b)")),
        ("location == x", "location == x".to_owned()),
        (
            "class A { static location = self; top = 1; }",
            ";A = class A { static location = self; top = 1; };".to_owned(),
        ),
        ("location => x", "location => x".to_owned()),
        ("window.location = x", "window.location = x".to_owned()),
        ("location.href = x", "location.href = x".to_owned()),
        ("window, (function(){}(this))", format!("window, (function(){{}}({THIS}))")),
        ("f(window); g = this", format!("f(window); g = {THIS}")),
        ("self; function f() { return this }", format!("self; function f() {{ return {THIS} }}")),
        ("self; this.location.x = this.y", format!("self; {THIS}.location.x = this.y")),
        ("self; a ? this : b", format!("self; a ? {THIS} : b")),
        ("self; x = {this: 1}; y.this", "self; x = {this: 1}; y.this".to_owned()),
        ("w.postMessage(1)", "w.__WB_pmw(self).postMessage(1)".to_owned()),
        ("w?.postMessage(1)", "w?.__WB_pmw(self).postMessage(1)".to_owned()),
        ("self; x = eval", "self; x = self.eval".to_owned()),
        ("self; (0, eval)('x')", "self; (0, self.eval)('x')".to_owned()),
        ("self; o.eval('x'); function eval(a) {}", "self; o.eval('x'); function eval(a) {}".to_owned()),
        (
            "self; import('./x.js')",
            "self; ____wb_rewrite_import__(\"https://example.org/dir/app.js\", './x.js')".to_owned(),
        ),
        ("self; o.import('x')", "self; o.import('x')".to_owned()),
        ("'location = 1'; self", "'location = 1'; self".to_owned()),
        ("`${location}` + 'this'", "`${location}` + 'this'".to_owned()),
    ];
    for (text, expected) in cases {
        assert_eq!(inside(text).1, expected, "{text}");
    }
    assert!(inside("eval(window.x)").1.starts_with("WB_wombat_runEval2("));
    assert!(
        inside("eval(window.x)").1.ends_with(".eval(this, (function() {return arguments;})(), window.x)")
    );
}

#[test]
fn what_a_script_declares_for_others_stays_theirs() {
    let cases = [
        ("let a = 1; self", "let a;", "; a = 1; self"),
        ("let a\nself", "let a;", "; a\nself"),
        (
            "const a = 1, b = f(2, 3), c = [4, 5]\nself",
            "let a;let b;let c;",
            "; a = 1, b = f(2, 3), c = [4, 5]\nself",
        ),
        ("let a = 1\nlet b = 2\nself", "let a;let b;", "; a = 1\n; b = 2\nself"),
        ("let a = x\n(self)", "let a;", "; a = x\n(self)"),
        ("let a = function() {}\nself, b", "let a;", "; a = function() {}\nself, b"),
        (
            "const {a, b: c, d = self, ...e} = x, f = 2;",
            "let a;let c;let d;let e;let f;",
            "; ({a, b: c, d = self, ...e} = x), f = 2;",
        ),
        ("let [a, [b], {c}] = self", "let a;let b;let c;", "; ([a, [b], {c}] = self)"),
        ("let {[k]: v} = self", "let v;", "; ({[k]: v} = self)"),
        ("class A { m() {} }\n(self)", "let A;", ";A = class A { m() {} };\n(self)"),
        ("class A extends B {}\nself", "let A;", ";A = class A extends B {};\nself"),
        ("x = class {}\nself", "", "x = class {}\nself"),
        ("if (self) { let a = 1; const b = 2 }", "", "if (self) { let a = 1; const b = 2 }"),
        ("for (let i = 0; i < self; i++) {}", "", "for (let i = 0; i < self; i++) {}"),
        ("function f() { let a; self }", "", "function f() { let a; self }"),
        ("var a = self", "", "var a = self"),
        (
            "var self = this, a = 1;",
            "var a;",
            "; self = _____WB$wombat$check$this$function_____(this), a = 1;",
        ),
        ("let top = 1; self", "", "; top = 1; self"),
        ("let = 1; self", "", "let = 1; self"),
    ];
    for (text, before, body) in cases {
        let found = inside(text);
        assert_eq!((found.0.as_str(), found.1.as_str()), (before, body), "{text}");
    }
}

#[test]
fn async_functions_and_generators_reach_the_page() {
    let place = place();
    let out = classic(
        "async function a() { self } function* b() {} function c() {}",
        source(&place),
        Mode::Classic,
    );
    assert!(out.contains("{self.a = a;self.b = b;\nasync function a()"), "{out}");
}

#[test]
fn a_name_declared_by_var_in_a_block_is_not_replaced() {
    let place = place();
    let out = classic("if (1) { var top = 2 } self", source(&place), Mode::Classic);
    assert!(!out.contains("let top"), "{out}");
    assert!(out.contains("let self"), "{out}");
    let out = classic("function f() { var self = 1 } self", source(&place), Mode::Classic);
    assert!(out.contains("let self"), "{out}");
}

#[test]
fn a_broken_script_is_wrapped_without_moving_declarations() {
    assert_eq!(inside("let a = self; }}}"), (String::new(), "let a = self; }}}".to_owned()));
}

#[test]
fn modules_import_the_stand_ins() {
    let cases = [
        ("export const a = 1", "export const a = 1"),
        (
            "import {b} from './b.js'; b(window)",
            "import {window} from \"/static/grange-modules.js\";\n\
             import {b} from '/c/20200102030405esm_/https://example.org/dir/b.js'; b(window)",
        ),
        ("import '/x.js'", "import '/c/20200102030405esm_/https://example.org/x.js'"),
        ("import a from \"https://cdn.org/a\"", "import a from \"/c/20200102030405esm_/https://cdn.org/a\""),
        ("import a from 'lodash'", "import a from 'lodash'"),
        ("export * from '../y.js'", "export * from '/c/20200102030405esm_/https://example.org/y.js'"),
        (
            "export {a, b as c} from './z.js'",
            "export {a, b as c} from '/c/20200102030405esm_/https://example.org/dir/z.js'",
        ),
        ("const x = {from: './y.js'}", "const x = {from: './y.js'}"),
        ("import('./d.js')", "____wb_rewrite_import__(\"https://example.org/dir/app.js\", './d.js')"),
        ("import.meta.url + import.meta.env", "\"https://example.org/dir/app.js\" + import.meta.env"),
        ("import {location} from 'x'; location", "import {location} from 'x'; location"),
        (
            "import {a as top, parent as b} from 'x'; top; b",
            "import {a as top, parent as b} from 'x'; top; b",
        ),
        ("const self = 1; self", "const self = 1; self"),
        ("export function parent() {} parent()", "export function parent() {} parent()"),
        (
            "function f() { location = 1 }",
            "import {location} from \"/static/grange-modules.js\";\nfunction f() { location = \
             ((self.__WB_check_loc && self.__WB_check_loc(location, [])) || {}).maybeHref = 1 }",
        ),
    ];
    for (text, expected) in cases {
        let place = place();
        assert_eq!(module(text, source(&place), "/static/"), expected, "{text}");
    }
}

#[test]
fn modules_are_told_from_scripts() {
    for (text, expected) in [
        ("import 'x'", true),
        ("import {a} from 'x'", true),
        ("export default 1", true),
        ("import('x')", false),
        ("var a = 'import x'", false),
        ("function f() { exports.x = 1 }", false),
        ("", false),
    ] {
        assert_eq!(is_module(text), expected, "{text}");
    }
}

#[test]
fn a_worker_sees_the_location_it_had() {
    let place = place();
    let out = classic("fetch(location.href)", source(&place), Mode::Worker);
    assert_eq!(out, "{let location = self._WB_wombat_location || self.location;{\nfetch(location.href)\n}}");
    let out = classic("self.postMessage(1)", source(&place), Mode::Worker);
    assert_eq!(out, "self.postMessage(1)");
}

#[test]
fn handlers_get_the_names_they_use() {
    let place = place();
    let source = Source { place: &place, url: None };
    assert_eq!(inline("go('x')", source), None);
    assert_eq!(
        inline("return document.x", source).as_deref(),
        Some("{let document = _____WB$wombat$assign$function_____(\"document\");return document.x\n}")
    );
    assert_eq!(
        inline("go(this)", source).as_deref(),
        Some("go(_____WB$wombat$check$this$function_____(this))")
    );
}

#[test]
fn literals_are_safe_in_a_page() {
    assert_eq!(
        literal("</script>\"'&é\u{1F600}"),
        "\"\\u003c/script\\u003e\\u0022\\u0027\\u0026\\u00e9\\ud83d\\ude00\""
    );
}

proptest! {
    #[test]
    fn any_text_goes_through(text in "\\PC{0,60}|[a-z(){}\\[\\]=;,.'\"`/\n $]{0,80}") {
        let place = place();
        classic(&text, source(&place), Mode::Classic);
        module(&text, source(&place), "/static/");
        inline(&text, source(&place));
    }

    #[test]
    fn words_of_javascript_in_any_order_go_through(words in proptest::collection::vec(
        proptest::sample::select(vec!["let", "const", "var", "class", "function", "async", "import", "export", "from",
            "this", "location", "eval", "self", "a", "{", "}", "(", ")", "[", "]", "=", ",", ";", "\n", "'x'", "`${",
            "`", "/", ":", ".", "=>", "*", "return", "é"]), 0..40)) {
        let text = words.join(" ");
        let place = place();
        classic(&text, source(&place), Mode::Classic);
        module(&text, source(&place), "/static/");
        inline(&text, source(&place));
    }
}
