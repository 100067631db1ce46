//! A document with planted links: each piece of text is put down together with the URLs that a right extractor finds
//! in it. Nothing here reads the text again.

use super::place::Place;

/// A link and the truth about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub place: Place,
    /// Absolute, as a browser would request it.
    pub url: String,
}

/// Text under construction. Targets that begin with a slash are on `origin`.
#[derive(Debug)]
pub(crate) struct Document {
    origin: String,
    head: String,
    body: String,
    links: Vec<Link>,
    decoys: Vec<String>,
}

impl Document {
    /// `origin`: such as `http://h0001.test`.
    pub(crate) fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            head: String::new(),
            body: String::new(),
            links: Vec::new(),
            decoys: Vec::new(),
        }
    }

    /// Text in which these URLs stand and no others.
    pub(crate) fn plant(&mut self, text: &str, links: &[(Place, &str)]) -> &mut Self {
        self.body.push_str(text);
        self.body.push('\n');
        self.record(links);
        self
    }

    /// The same in the head of an HTML page.
    pub(crate) fn plant_in_head(&mut self, text: &str, links: &[(Place, &str)]) -> &mut Self {
        self.head.push_str(text);
        self.head.push('\n');
        self.record(links);
        self
    }

    /// Text with URLs that no right crawl requests because of it.
    pub(crate) fn decoy(&mut self, text: &str, urls: &[&str]) -> &mut Self {
        self.body.push_str(text);
        self.body.push('\n');
        let urls = urls.iter().map(|url| self.absolute(url)).collect::<Vec<_>>();
        self.decoys.extend(urls);
        self
    }

    /// Links that stand outside the text, such as in headers.
    pub(crate) fn record(&mut self, links: &[(Place, &str)]) {
        for (place, url) in links {
            let url = self.absolute(url);
            self.links.push(Link { place: *place, url });
        }
    }

    fn absolute(&self, url: &str) -> String {
        if url.starts_with('/') { format!("{}{url}", self.origin) } else { url.to_owned() }
    }

    /// As a whole HTML page.
    pub(crate) fn html(&self, title: &str) -> String {
        format!(
            "<!DOCTYPE html>\n<html>\n<head>\n<title>{title}</title>\n{}</head>\n<body>\n<h1>{title}</h1>\n{}</body>\n</html>\n",
            self.head, self.body
        )
    }

    /// As it was put down.
    pub(crate) fn text(&self) -> &str {
        &self.body
    }

    pub(crate) fn into_parts(self) -> (Vec<Link>, Vec<String>) {
        (self.links, self.decoys)
    }
}
