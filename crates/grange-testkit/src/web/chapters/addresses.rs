//! Ways to write an address, and what a browser asks for then.

use crate::web::name::Sub;
use crate::web::place::Place::AHref;
use crate::web::site::Builder;

pub(super) fn write(site: &mut Builder, index: &str) {
    let here = site.here();
    let host = here.split_once("//").map_or("", |(_, host)| host).to_owned();
    let idn = site.on(Sub::Idn);
    let idn_written = idn.replace("xn--bcher-kva", "bücher");
    let www = site.on(Sub::Www);
    // As written in href, and the address.
    let cases: Vec<(String, String)> = [
        ("plain.html", "/addresses/plain.html"),
        ("./dot.html", "/addresses/dot.html"),
        ("../addresses/up.html", "/addresses/up.html"),
        ("../../../too-far-up.html", "/too-far-up.html"),
        ("a/./b/../c/far.html", "/addresses/a/c/far.html"),
        ("/addresses/rooted.html", "/addresses/rooted.html"),
        ("?only=query", "/addresses/?only=query"),
        ("fragment.html#part", "/addresses/fragment.html"),
        ("query.html?a=1&amp;b=2&c=3", "/addresses/query.html?a=1&b=2&c=3"),
        ("numeric&#46;html", "/addresses/numeric.html"),
        ("hex&#x2e;htm&#x6C;", "/addresses/hex.html"),
        ("with space.html", "/addresses/with%20space.html"),
        ("with%20escape%2Fd.html", "/addresses/with%20escape%2Fd.html"),
        ("smørrebrød.html", "/addresses/sm%C3%B8rrebr%C3%B8d.html"),
        ("bl%C3%A5b%C3%A6r.html", "/addresses/bl%C3%A5b%C3%A6r.html"),
        ("find.html?q=år", "/addresses/find.html?q=%C3%A5r"),
        ("back\\slash.html", "/addresses/back/slash.html"),
        ("semi;colon=1.html", "/addresses/semi;colon=1.html"),
        ("(round).html", "/addresses/(round).html"),
        ("tilde/~user.html", "/addresses/tilde/~user.html"),
    ]
    .into_iter()
    .map(|(written, target)| (written.to_owned(), target.to_owned()))
    .chain([
        (format!("{here}/addresses/absolute.html"), "/addresses/absolute.html".to_owned()),
        (format!("//{host}/addresses/no-scheme.html"), "/addresses/no-scheme.html".to_owned()),
        (
            format!("{}://{}/addresses/LOUD.html", site.names.scheme, host.to_uppercase()),
            "/addresses/LOUD.html".into(),
        ),
        (format!("{here}:{}/addresses/port.html", default_port(site)), "/addresses/port.html".to_owned()),
        (format!("{www}/www-only.html"), format!("{www}/www-only.html")),
        (format!("{idn_written}/buch.html"), format!("{idn}/buch.html")),
        (format!("{idn}/bog.html"), format!("{idn}/bog.html")),
    ])
    .collect();
    let mut page = site.document();
    page.plant_in_head("<meta charset=\"utf-8\">", &[]);
    for (written, target) in &cases {
        page.plant(&format!("<a href=\"{written}\">x</a>"), &[(AHref, target)]);
    }
    site.page(index, "Addresses", page);
}

fn default_port(site: &Builder) -> u16 {
    match site.names.scheme {
        crate::web::Scheme::Http => 80,
        crate::web::Scheme::Https => 443,
    }
}
