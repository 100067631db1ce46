//! robots.txt, and pages that it excludes on sites whose kind has rules.

use crate::web::Profile;
use crate::web::answer::Answer;
use crate::web::leaf::leaf;
use crate::web::name::Sub;
use crate::web::place::Place;
use crate::web::robots::Robots;
use crate::web::site::Builder;

/// Path, and whether the kinds with rules exclude it: first the plain kinds, then the one with wildcards.
const PRIVATE: [(&str, bool, bool); 7] = [
    ("/private/plan.html", true, false),
    ("/private/plan.pdf", true, true),
    ("/private/plan.pdf.html", true, false),
    ("/private/a/deep/page.html", true, true),
    ("/private/list.html?secret=1", true, true),
    ("/private/open/page.html", false, false),
    ("/privateer.html", false, false),
];

pub(super) fn write(site: &mut Builder) {
    let (kind, here) = (site.robots, site.here());
    for sub in [Sub::Www, Sub::Cdn, Sub::Idn] {
        site.put_leaf(&format!("{}/robots.txt", site.on(sub)), Robots::Missing.answer(&here, 0.0));
        let icon = format!("{}/favicon.ico", site.on(sub));
        site.put_leaf(&icon, leaf(site.seed, site.index, &icon));
    }
    site.put_leaf("/favicon.ico", leaf(site.seed, site.index, "/favicon.ico"));
    let mut links = site.document();
    if kind == Robots::Redirecting {
        links.record(&[(Place::Location, "/robots-moved.txt")]);
        let mut moved = site.document();
        moved.record(&[(Place::RobotsSitemap, "/sitemap.xml")]);
        site.put("/robots-moved.txt", Robots::Some.answer(&here, 0.0), moved);
    } else if kind.names_sitemap() && site.profile != Profile::Plain {
        links.record(&[(Place::RobotsSitemap, "/sitemap.xml")]);
    }
    let answer = if site.profile == Profile::Plain {
        Answer::new(200, "text/plain", "User-agent: *\nDisallow:\n")
    } else {
        kind.answer(&here, site.crawl_delay)
    };
    site.put("/robots.txt", answer, links);
    if site.profile == Profile::Plain {
        return;
    }
    let mut page = site.document();
    for (path, by_prefix, by_wildcard) in PRIVATE {
        page.plant(&format!("<a href=\"{path}\">{path}</a>"), &[(Place::AHref, path)]);
        let excluded = kind.has_rules() && if kind == Robots::Wildcards { by_wildcard } else { by_prefix };
        if excluded {
            site.excluded_leaf(path);
        }
    }
    // Excluded as a link and as a picture: the policies differ on the second.
    page.plant("<img src=\"/private/picture.png\" alt=\"\">", &[(Place::ImgSrc, "/private/picture.png")]);
    if kind.has_rules() && kind != Robots::Wildcards {
        site.excluded_leaf("/private/picture.png");
    }
    page.plant("<a href=\"/robots/meta.html\">meta</a>", &[(Place::AHref, "/robots/meta.html")]);
    let mut meta = site.document();
    meta.plant_in_head("<meta name=\"robots\" content=\"noindex, nofollow\">", &[]);
    meta.plant(
        "<a href=\"/robots/beyond-meta.html\">on</a>",
        &[(Place::MetaNoFollow, "/robots/beyond-meta.html")],
    );
    site.page("/robots/meta.html", "Not to be followed", meta);
    site.page("/robots/", "What robots may have", page);
}
