//! Strings of scripts, and style sheets.

use super::{check, extracted, lines, plain};
use crate::extract::{Guess, Settings};

#[test]
fn only_strings_that_look_very_much_like_urls_are_taken() {
    check(
        "text/javascript",
        &[
            ("a='http://other.org/x'", &["X http://other.org/x =JS_MISC"]),
            ("a=\"https:\\/\\/other.org\\/x?a=1\\u0026b=2\"", &["X https://other.org/x?a=1&b=2 =JS_MISC"]),
            ("a='//cdn.org/lib.js'", &["X http://cdn.org/lib.js =JS_MISC"]),
            ("a=`/img/a.png`", &["X /img/a.png =JS_MISC"]),
            ("a='./b/c.json?v=1'", &["X /dir/b/c.json?v=1 =JS_MISC"]),
            ("s='<img src=\"/in/html.gif\">'", &["X /in/html.gif =JS_MISC"]),
            (
                "j=\"{\\\"u\\\":\\\"https:\\\\/\\\\/other.org\\\\/j\\\"}\"",
                &["X https://other.org/j =JS_MISC"],
            ),
            // A quote in a regular expression or a comment confuses nothing.
            ("r=/['\"]/;// don't\nx='/a/b.js'", &["X /a/b.js =JS_MISC"]),
            ("a='/x/one.js',b='/x/two.js'", &["X /x/one.js =JS_MISC", "X /x/two.js =JS_MISC"]),
        ],
    );
    // What fills the logs of servers when taken for URLs.
    for noise in [
        "'text/html'",
        "'application/json'",
        "'image/svg+xml'",
        "'a/b'",
        "'/'",
        "'//'",
        "'/.'",
        "'1.0'",
        "'1.2.3'",
        "'jquery.js'",
        "'foo.bar.baz'",
        "'use strict'",
        "'http://'",
        "'https://www.'",
        "'http://' + host",
        "'/api/' + id",
        "base + '/img/x.png'",
        "'/img/x' + '.png'",
        "'M/D/YYYY'",
        "'dd/mm/yy'",
        "'yyyy/MM/dd.html x'",
        "'and/or'",
        "'<br/>'",
        "'</div>'",
        "'a.b.c/d'",
        "'http://www.w3.org/2000/svg'",
        "'http://schema.org/Person'",
        "'/^[a-z]+$/'",
        "'$1/$2'",
        "'${a}/b.js'",
        "`/x/${id}.png`",
        "'./'",
        "'../'",
        "'#/route/x.html'",
        "'user@host.js'",
        "'Europe/Paris'",
        "'n/a'",
        "'w/o'",
        "'://x.org/a.js'",
        "'http://localhost'",
        "'http://a'",
        "'http://1.2.3'",
        "'/a//b.js'",
        "'{x}/y.js'",
        "'*.js'",
        "'/**/x.js'",
    ] {
        assert_eq!(super::found("text/javascript", noise.as_bytes()), [""; 0], "{noise}");
    }
}

#[test]
fn the_eager_reading_finds_more() {
    let eager = Settings { javascript: Guess::Eager, ..plain() };
    let script = b"a='/api/items/';b='jquery.js';c='text/html';d='/one';e=base+'/img/x.png'";
    assert_eq!(
        lines(&extracted("text/javascript", script, &eager)),
        ["X /api/items/ =JS_MISC", "X /dir/jquery.js =JS_MISC", "X /img/x.png =JS_MISC",]
    );
    let off = Settings { javascript: Guess::Off, ..plain() };
    assert!(extracted("text/javascript", script, &off).links.is_empty());
}

#[test]
fn json_gives_its_values_and_not_its_keys() {
    check(
        "application/json",
        &[
            (
                "{\"url\":\"http:\\/\\/other.org\\/a\",\"http://other.org/key\" : 1}",
                &["X http://other.org/a =JS_MISC"],
            ),
            ("[\"/a/b.jpg\",\"it's\",\"/c/d.jpg\"]", &["X /a/b.jpg =JS_MISC", "X /c/d.jpg =JS_MISC"]),
            ("{\"@context\":\"https://schema.org\",\"mime\":\"image/png\"}", &[]),
            ("{\"icons\":[{\"src\":\"/icon.png\"}]}", &["X /icon.png =JS_MISC"]),
        ],
    );
    let without = Settings { json: false, ..plain() };
    assert!(extracted("application/json", b"[\"/a/b.jpg\"]", &without).links.is_empty());
}

#[test]
fn style_sheets_give_what_they_show_and_import() {
    check(
        "text/css",
        &[
            ("a{b:url(x.png)}", &["E /dir/x.png =EMBED_MISC"]),
            ("a{b:URL( \"/q.png\" )}c{d:url('/r.png')}", &["E /q.png =EMBED_MISC", "E /r.png =EMBED_MISC"]),
            (
                "@import '/i.css' screen;@import url(/j.css);@IMPORT \"/k.css\"",
                &["E /i.css =EMBED_MISC", "E /j.css =EMBED_MISC", "E /k.css =EMBED_MISC"],
            ),
            (
                "@font-face{src:url(/f.eot?#iefix) format('eot'),url(/f.woff)}",
                &["E /f.eot? =EMBED_MISC", "E /f.woff =EMBED_MISC"],
            ),
            (
                "a{b:image-set('/1x.png' 1x, url(/2x.png) 2x, \"/3x.png\" type(\"image/png\"))}",
                &["E /1x.png =EMBED_MISC", "E /2x.png =EMBED_MISC", "E /3x.png =EMBED_MISC"],
            ),
            ("a{b:-webkit-image-set(url(/w.png) 1x)}", &["E /w.png =EMBED_MISC"]),
            (
                "a{b:url(/a\\(1\\).png)}c{d:url(/\\e9.png)}",
                &["E /a(1).png =EMBED_MISC", "E /%C3%A9.png =EMBED_MISC"],
            ),
            ("a{b:url(\"/x\\\"y.png\")}", &["E /x%22y.png =EMBED_MISC"]),
            ("/* url(/no.png) */a{b:url(/yes.png)}", &["E /yes.png =EMBED_MISC"]),
            ("@namespace url(http://www.w3.org/1999/xhtml);a{b:url(/c.png)}", &["E /c.png =EMBED_MISC"]),
            ("a{b:url()}c{d:url(data:image/png;base64,AA==)}e{f:url(#g)}", &[]),
            ("a{b:curl(/x.png);c:rgb(1,2,3);d:calc(1px/2)}", &[]),
            ("a{b:url(/open.png", &["E /open.png =EMBED_MISC"]),
            ("a{b:url('/line\n)}c{d:url(/e.png)}", &["E /e.png =EMBED_MISC"]),
        ],
    );
}
