//! Lists of repositories: the registry's `<BaseURLs>`, the `friends` of an Identify, or a line each.

use std::collections::HashSet;

use grange_base::Chain;

use crate::outgoing;
use crate::settings::Settings;

/// The registry's list of 7,103 repositories has half a megabyte.
const LIST_BYTES_MAX: usize = 64 << 20;

/// The base URLs in a list, each once, in its order.
pub fn friends(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |url: &str| {
        let url = url.trim().replace("&amp;", "&");
        let web = url.starts_with("http://") || url.starts_with("https://");
        if web && url::Url::parse(&url).is_ok() && seen.insert(url.clone()) {
            found.push(url);
        }
    };
    if text.trim_start().starts_with('<') {
        for part in text.split("baseURL").skip(1) {
            // The end tag of each element leaves nothing between its `>` and the next `<`.
            let Some(content) = part.split_once('>').map(|(_, rest)| rest) else { continue };
            add(content.split('<').next().unwrap_or_default());
        }
    } else {
        text.lines().for_each(add);
    }
    found
}

/// The base URLs in a list at an address; the error is a sentence.
pub async fn fetch_friends(url: &str, settings: &Settings) -> Result<Vec<String>, String> {
    let failed = |error: reqwest::Error| format!("the list at {url} cannot be had: {}", Chain(&error));
    let policy = outgoing::address_policy(settings);
    if let Ok(url) = url::Url::parse(url) {
        outgoing::check_url(&url, &policy).map_err(|why| format!("cannot fetch the list at {url}: {why}"))?;
    }
    let http = outgoing::client(&policy)
        .redirect(outgoing::checked_redirects(policy))
        .read_timeout(settings.timeout.0)
        .build()
        .map_err(failed)?;
    let mut response =
        http.get(url).send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        text.extend_from_slice(&chunk);
        if text.len() > LIST_BYTES_MAX {
            return Err(format!("the list at {url} is larger than {LIST_BYTES_MAX} bytes"));
        }
    }
    Ok(friends(&String::from_utf8_lossy(&text)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::outgoing::tests::redirecting;

    #[test]
    fn lists_are_read_in_every_form() {
        let registry = "<?xml version='1.0'?><BaseURLs number=\"3\"><baseURL id=\"a.org\">https://a.org/oai</baseURL>\n\
             <baseURL>http://b.org/oai?x=1&amp;y=2</baseURL><baseURL id='dup'>https://a.org/oai</baseURL>\
             <baseURL>ftp://no</baseURL></BaseURLs>";
        assert_eq!(friends(registry), ["https://a.org/oai", "http://b.org/oai?x=1&y=2"]);
        let container = "<friends xmlns='x'><baseURL>http://c.org/</baseURL></friends>";
        assert_eq!(friends(container), ["http://c.org/"]);
        assert_eq!(
            friends("http://d.org/oai\n# no\n\nhttps://e.org\n"),
            ["http://d.org/oai", "https://e.org"]
        );
        assert!(friends("").is_empty());
    }
    #[tokio::test]
    async fn a_list_at_an_address_that_is_not_allowed_is_not_asked_for() {
        let (inside, connections) = redirecting("127.0.0.2", "/").await;
        let (outside, asked) = redirecting("127.0.0.1", &format!("http://{inside}/")).await;
        let url = format!("http://{outside}/");
        let refused = fetch_friends(&url, &Settings::default()).await.unwrap_err();
        assert!(refused.starts_with("cannot fetch the list at http://127.0.0.1"), "{refused}");
        assert_eq!(asked.load(Ordering::SeqCst), 0);
        // Nor where a list that is allowed points to it.
        let allow_networks = vec!["127.0.0.1/32".parse().unwrap()];
        let settings = Settings { allow_networks, ..Settings::default() };
        let refused = fetch_friends(&url, &settings).await.unwrap_err();
        assert!(refused.contains("127.0.0.2"), "{refused}");
        assert_eq!((asked.load(Ordering::SeqCst), connections.load(Ordering::SeqCst)), (1, 0));
    }
}
