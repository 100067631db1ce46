//! A site map that robots.txt names: an index, a plain part and a gzipped part, with pages that nothing else links to.

use crate::web::answer::Answer;
use crate::web::coding::Coding;
use crate::web::document::Document;
use crate::web::place::Place::{SitemapIndex, SitemapPage};
use crate::web::site::Builder;

const SPACE: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";

pub(super) fn write(site: &mut Builder) {
    if !site.robots.names_sitemap() {
        return;
    }
    let here = site.here();
    let mut index = site.document();
    index
        .plant(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex {SPACE}>"), &[])
        .plant(
            &format!("<sitemap><loc>{here}/sitemap-a.xml</loc></sitemap>"),
            &[(SitemapIndex, "/sitemap-a.xml")],
        )
        .plant(
            &format!("<sitemap><loc>\n  {here}/sitemap-b.xml.gz\n</loc></sitemap>"),
            &[(SitemapIndex, "/sitemap-b.xml.gz")],
        )
        .plant("</sitemapindex>", &[]);
    let answer = Answer::new(200, "application/xml", index.text().to_owned());
    site.put("/sitemap.xml", answer, index);

    let plain = part(site, &[("/sitemap/one.html", ""), ("/sitemap/two.html?x=1&y=2", "")]);
    let answer = Answer::new(200, "text/xml", plain.text().to_owned());
    site.put("/sitemap-a.xml", answer, plain);
    let packed = part(site, &[("/sitemap/three.html", "<lastmod>2026-01-01</lastmod>")]);
    // The file itself is gzip; no content coding is declared.
    let answer = Answer::new(200, "application/gzip", Coding::Gzip.encode(packed.text().as_bytes()));
    site.put("/sitemap-b.xml.gz", answer, packed);
}

fn part(site: &Builder, pages: &[(&str, &str)]) -> Document {
    let mut part = site.document();
    part.plant(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset {SPACE}>"), &[]);
    for (path, more) in pages {
        let written = path.replace('&', "&amp;");
        part.plant(&format!("<url><loc>{}{written}</loc>{more}</url>", site.here()), &[(SitemapPage, path)]);
    }
    part.plant("</urlset>", &[]);
    part
}
