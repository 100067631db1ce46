//! Protected areas: a cookie, HTTP basic and digest, a log-in form, and servers that are busy at first.

use crate::web::answer::{Answer, Gate};
use crate::web::gate;
use crate::web::place::Place;
use crate::web::site::Builder;

pub(super) fn write(site: &mut Builder, index: &str) {
    let mut page = site.document();
    page.plant("<a href=\"/cookie/set.html\">cookie</a>", &[(Place::AHref, "/cookie/set.html")])
        .plant("<a href=\"/basic/\">basic</a>", &[(Place::AHref, "/basic/")])
        .plant("<a href=\"/digest/\">digest</a>", &[(Place::AHref, "/digest/")])
        .plant("<a href=\"/login/in/archive.html\">members</a>", &[(Place::AHref, "/login/in/archive.html")]);

    let mut set = site.document();
    set.plant("<a href=\"need.html\">go on</a>", &[(Place::AHref, "/cookie/need.html")]);
    let answer =
        Answer::html(set.html("A cookie")).header("Set-Cookie", format!("{}; Path=/cookie/", gate::COOKIE));
    site.put("/cookie/set.html", answer, set);

    // Each area has a page that leads on to another one inside.
    for (path, inside, gate) in [
        ("/cookie/need.html", "/cookie/inside.html", Gate::Cookie),
        ("/basic/", "/basic/inside.html", Gate::Basic),
        ("/digest/", "/digest/inside.html?a=1&b=2", Gate::Digest),
        ("/login/in/archive.html", "/login/in/shelf.html", Gate::Session),
    ] {
        let mut area = site.document();
        let written = inside.replace('&', "&amp;");
        area.plant(&format!("<a href=\"{written}\">inside</a>"), &[(Place::AHref, inside)]);
        let answer = Answer::html(area.html("You are in")).gated(gate);
        site.put(path, answer, area);
        site.gated_leaf(inside, gate);
    }
    site.gated_leaf(gate::HOME, Gate::Session);

    let mut form = site.document();
    // Sent by POST: not a link.
    form.plant(
        &format!(
            "<form method=\"post\" action=\"{}\"><input name=\"user\"><input type=\"password\" name=\"password\">\
             <input type=\"submit\"></form>",
            gate::ENTER
        ),
        &[],
    );
    site.page(gate::FORM, "Log in", form);
    site.put_leaf(gate::ENTER, Answer::html("").gated(Gate::LogIn));

    // On one site in four: waiting for Retry-After takes whole seconds.
    if site.index % 4 == 1 {
        for (path, status) in [("/busy/429.html", 429), ("/busy/503.html", 503)] {
            page.plant(&format!("<a href=\"{path}\">busy</a>"), &[(Place::AHref, path)]);
            site.gated_leaf(path, Gate::Busy { times: 1, status });
        }
    }
    site.page(index, "Protected areas", page);
}
