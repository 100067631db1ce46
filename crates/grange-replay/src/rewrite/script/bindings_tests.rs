//! Names in places where they are not what they mean elsewhere: rewritten scripts run in node as the originals do.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::*;
use crate::rewrite::Modifier;

/// Each leaves a value in `result`. In all of them `location`, `eval` and their like are names of the script's own.
const SCRIPTS: &[&str] = &[
    // Parameters with defaults.
    "function f(location = 'x') { return location } result = f()",
    "function f(a, location = 'x', top = 'y') { return location + top } result = f()",
    "result = (function (location = 'x') { return location })()",
    "result = (function* g(location = 'x') { yield location })().next().value",
    "async function f(location = 'x') {} result = f.length",
    "result = ((location = 'x') => location)()",
    "result = ((a, location = 'x') => location)()",
    "result = (async (location = 'x') => location).length",
    "result = (location => location)('x')",
    "const f = (location = 'x', {parent = 'y'} = {}) => location + parent; result = f()",
    "result = [1].map((a, b, location = a) => location)",
    "result = ((a = (location = 'x') => location) => a())()",
    "result = ((a = [1, 2].map((location = 'x') => location)) => a)()",
    // Patterns.
    "result = (({location = 'x'}) => location)({})",
    "result = (({a: {location = 'x'} = {}}) => location)({})",
    "result = (({a: location = 'x'}) => location)({})",
    "result = (([location = 'x']) => location)([])",
    "result = ((...[location = 'x']) => location)()",
    "result = (({location = 'x', ...rest}, [top = 1, [parent = 2]]) => [location, top, parent])({}, [, []])",
    "function f({location = 'x', top = 't'} = {}, [parent = 'p'] = []) { return location + top + parent } result = f()",
    "(function () { let {location = 'x'} = {}; result = location })()",
    "(function () { const a = 1, {location = 'x'} = {}, [top = 2] = []; result = [a, location, top] })()",
    "(function () { var [location = 'x'] = []; result = location })()",
    "(function () { let {a: {location = 'x'}} = {a: {}}; result = location })()",
    "(function () { let {['a' + 1]: location = 'x'} = {}; result = location })()",
    "(function () { let a = 1, location = 'x'; result = location })()",
    "for (const {location = 'x'} of [{}]) result = location",
    "for (let [location = 'x'] of [[]]) result = location",
    "for (let i = 0, location = 'x'; i < 1; i++) result = location",
    "for (let location of ['x']) result = location",
    "try { throw {} } catch ({location = 'x'}) { result = location }",
    "try { throw 1 } catch (location) { result = location }",
    "const {location: here = 'x', top: there = 'y'} = {}; result = here + there",
    "let {[`a${1}`]: own = self.nothing || 'x'} = {}; result = own",
    // Methods, and their parameters.
    "o = {m(location = 'x') { return location }}; result = o.m()",
    "o = {async m(location = 'x') {}, *g(location = 'y') { yield location }}; result = o.g().next().value",
    "o = {set m(location) { this.v = location }, get m() { return 1 }}; result = o.m",
    "k = 'm'; o = {[k](location = 'x') { return location }}; result = o.m()",
    "o = {catch(location = 'x') { return location }, if(top = 1) { return top }}; result = o.catch() + o.if()",
    "class A { constructor(location = 'x') { this.v = location } m(location = 'y') { return location } }\
     result = new A().v + new A().m()",
    "class A { static async *['m'](location = 'x') { yield location } static n(top = 1) { return top } } result = A.n()",
    // Names of members.
    "class A { location = 'x' } result = new A().location",
    "class A { a = 1\n location = 'x'\n top\n parent = 4\n import = 2\n eval = 3\n static self = 5\n static top = 6 }\
     result = [new A(), A.self, A.top]",
    "class A { #location = 'x'; get location() { return this.#location } set location(a) {} } result = new A().location",
    "class A { a = b => b\n location = 'x' } result = new A().location",
    "class A { a = [1]\n location = `x`\n eval = /y/\n import = 1 } result = Object.keys(new A())",
    "class A { location() { return 1 } import() { return 2 } eval(x) { return 3 } this() { return 4 } }\
     a = new A(); result = [a.location(), a.import(), a.eval(), a.this()]",
    "class A { static import(x) { return x } static eval(x) { return x } static *location() { yield 1 } }\
     result = [A.import(1), A.eval(2), A.location().next().value]",
    "class A { async import(x) {} async *eval(x) {} *top() { yield 1 } get parent() { return 2 } set parent(x) {} }\
     result = [Object.getOwnPropertyNames(A.prototype), new A().parent]",
    "class A { 'a'() {} eval(x) { return x } 1() {} import(x) { return x } } result = [new A().eval(1), new A().import(2)]",
    "class A { static { this.eval = 1 } eval(x) { return x } } result = [A.eval, new A().eval(2)]",
    "o = {location() { return 1 }, import(x) { return x }, eval(x) { return x }}; result = [o.location(), o.import(2), o.eval(3)]",
    "o = {a: 1, async import(x) {}, *eval(x) { yield x }, async *top() {}, get eval2() { return 1 }}; result = Object.keys(o)",
    "o = {get eval() { return 1 }, get import() { return 2 }, get location() { return 3 }}; result = [o.eval, o.import, o.location]",
    "o = {location: 1, eval: 2, import: 3, this: 4, top: 5}; result = [o.location, o.eval, o.import, o.this, o.top]",
    "o = {class: 'c', methods: {eval(x) { return x }, import(x) { return x + 1 }, location: 2}, b: {top: 1}};\
     result = [o.methods.eval(1), o.methods.import(1), o.methods.location, o.b.top]",
    "o = {function: 1, m(x) { return x }, import(x) { return x }}; result = o.import(1)",
    "o = {a: 1, eval}; result = typeof o.eval",
    "o = {eval, a: 1}; result = typeof o.eval",
    "o = {import: x => x, eval: x => x}; result = o.import(1) + o?.eval(2)",
    // Parameters, labels and functions called `eval`, and labels of other names.
    "result = (function (eval) { return eval })(1)",
    "result = ((eval) => eval)(1)",
    "result = ((a, eval) => eval)(1, 2)",
    "result = (([eval]) => eval)([1])",
    "result = (({a: eval}) => eval)({a: 1})",
    "result = (({eval}) => eval)({eval: 1})",
    "try { throw 1 } catch (eval) { result = eval }",
    "result = (function () { function eval(a) { return a } return typeof eval })()",
    "result = (function () { var a = 1, eval = 2; return a + eval })()",
    "location: for (;;) { for (;;) { break location } } result = 1",
    "eval: { top: { break eval } } result = 1",
    // What must still be what it was.
    "result = 2 * eval('3') + eval('1')",
    "result = [1, eval('2'), {a: eval('3')}]",
    "class A { a = 2 * eval('3')\n b = eval('4') } result = new A()",
    "let let_ = 1\nresult = [let_, typeof location, typeof {location}.location]",
    "#!/usr/bin/env node\nresult = typeof window",
];

/// What a parser must take; nothing of it is run.
const MODULES: &[&str] = &[
    "let a = 1, b = 2; export {a as location, b as eval, a as import}",
    "export {a, location as b, eval as c} from './x.js'; window",
    "export {eval as default, top as location} from './x.js'; window",
    "import {a as location, b as top} from './x.js'; location; top",
    "import location, {parent as b} from './x.js'; location; window",
    "import * as self from './x.js'; self",
    "export function f(location = 'x') { return location }",
    "export const f = (location = 'x') => location, g = ({location = 1}) => location",
    "export default {import(x) {}, eval(x) {}, location() {}, async import2() {}}; window",
    "export default class { import(x) {} eval(x) {} static location = 1; async *top() {} }; window",
    "class A { a = import('./x.js')\n location = 1\n static b = (location = 2) }",
    "#!/usr/bin/env node\nimport {a} from './x.js'; a(window)",
    "#!/usr/bin/env node\nlocation.href",
    "const {url} = import.meta; import('./x.js').then(location => location)",
];

const NODE: &str = r"
const vm = require('vm');
const {scripts, modules} = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const page = `var self = this, window = this, top = this, parent = this, frames = this, opener = null;
    var document = {}; var location = {href: 'here'}; var result; var __WB_check_loc = (location, args) => undefined;
    var WB_wombat_runEval2 = call => ({eval: (self, args, text) => call(text, false)});`;
const run = script => {
    const context = vm.createContext({});
    vm.runInContext(page, context);
    try {
        vm.runInContext(script, context);
        return JSON.stringify([vm.runInContext('result', context)]);
    } catch (error) {
        return String(error);
    }
};
const check = module => {
    try {
        new vm.SourceTextModule(module);
        return 'parsed';
    } catch (error) {
        return String(error);
    }
};
console.log(JSON.stringify({
    scripts: scripts.map(([original, rewritten]) => [run(original), run(rewritten)]),
    modules: modules.map(([original, rewritten]) => [check(original), check(rewritten)]),
}));
";

/// What node says to pairs of scripts and of modules; `None`, loudly, where there is no node.
fn node(pairs: &Value) -> Option<Value> {
    let mut command = Command::new("node");
    command.args(["--no-warnings", "--experimental-vm-modules", "-e", NODE]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        grange_testkit::skipped("node");
        return None;
    };
    child.stdin.take().unwrap().write_all(pairs.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "node failed");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn names_of_a_scripts_own_keep_their_meaning() {
    let place = Place::new("", "/c/", "20200102030405", Modifier::Main, "https://example.org/a.js");
    let source = Source { place: &place, url: Some(place.url()) };
    let scripts: Vec<_> = SCRIPTS.iter().map(|text| (*text, classic(text, source, Mode::Classic))).collect();
    let modules: Vec<_> = MODULES.iter().map(|text| (*text, module(text, source, "/static/"))).collect();
    let Some(said) = node(&json!({"scripts": scripts, "modules": modules})) else { return };
    let mut wrong = Vec::new();
    for (kind, pairs) in [("scripts", scripts), ("modules", modules)] {
        for (index, (original, rewritten)) in pairs.iter().enumerate() {
            let (before, after) = (&said[kind][index][0], &said[kind][index][1]);
            let told = before.as_str().unwrap();
            assert!(told.starts_with('[') || told == "parsed", "{original}: {told}");
            if before != after {
                wrong.push(format!("{original}\n  gave {before}, rewritten {after}:\n  {rewritten}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), SCRIPTS.len() + MODULES.len(), wrong.join("\n"));
}

#[test]
fn ways_out_are_still_seen_beside_names_of_the_scripts_own() {
    const MARK: &str = ").maybeHref =";
    // How many assignments to the page's location are changed.
    for (text, changed) in [
        ("f(location = x)", 1),
        ("f(a, location = x)", 1),
        ("(location = x)", 1),
        ("[location = x] = y", 1),
        ("a ? (location = x) : (b, location = y)", 2),
        ("let a = 1\nf(), location = x", 1),
        ("if (a) location = x; else { location = y }", 2),
        ("while (location = x) ;", 1),
        ("o = {a: location = x}", 1),
        ("o = {a() { location = x }, b: () => { location = y }}", 2),
        ("class A { a = () => { location = x }; b() { location = y } static { location = z } }", 3),
        ("class A { a = (location = x) }", 1),
        ("f((a = location = x) => a)", 1),
        ("((a = f(location = x)) => a)", 1),
        ("function f(a = (location = x)) {}", 1),
        ("function f(location = x) {}", 0),
        ("((location = x) => 1)", 0),
        ("o = {location = x} = y", 1),
    ] {
        let place = Place::new("", "/c/", "20200102030405", Modifier::Main, "https://example.org/a.js");
        let out = classic(text, Source { place: &place, url: None }, Mode::Classic);
        assert_eq!(out.matches(MARK).count(), changed, "{text}: {out}");
    }
}
