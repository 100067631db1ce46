//! Repositories that do not list all their sets and formats: what was known of them before stays.

use grange_base::{Clock, Shutdown};
use grange_model::oai::Identified;

use super::bed::{Server, response, token_of};
use crate::settings::Settings;

const IDENTIFY: &str = "<Identify><repositoryName>x</repositoryName><protocolVersion>2.0</protocolVersion>\
                        <granularity>YYYY-MM-DDThh:mm:ssZ</granularity><deletedRecord>no</deletedRecord></Identify>";

/// What a repository says whose lists of formats and sets are `formats` and the pages that `sets` makes.
async fn probed(formats: &'static str, sets: fn(Option<&str>) -> String) -> Identified {
    let server = Server::answering(move |query, _| match query {
        _ if query.contains("verb=Identify") => response(IDENTIFY),
        _ if query.contains("verb=ListMetadataFormats") => response(formats),
        _ => response(&sets(token_of(query))),
    })
    .await;
    let stop = Shutdown::never();
    crate::probe(
        &server.url,
        &Settings { allow_networks: vec!["127.0.0.0/8".parse().unwrap()], ..Settings::default() },
        &Clock::system(),
        &stop,
    )
    .await
    .unwrap()
}

fn sets(names: &[&str], token: &str) -> String {
    let set = |name: &&str| format!("<set><setSpec>{name}</setSpec><setName>{name}</setName></set>");
    let sets: String = names.iter().map(set).collect();
    format!("<ListSets>{sets}<resumptionToken>{token}</resumptionToken></ListSets>")
}

fn names(said: &Identified) -> (Vec<&str>, Vec<&str>) {
    let formats = said.formats.iter().map(|format| format.prefix.as_str()).collect();
    (formats, said.sets.iter().map(|set| set.spec.as_str()).collect())
}

#[tokio::test]
async fn lists_that_lack_entries_forget_none_that_was_known() {
    const FORMATS: &str = "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix></metadataFormat>\
                           <metadataFormat><metadataPrefix>marc21</metadataPrefix></metadataFormat></ListMetadataFormats>";
    let known = probed(FORMATS, |token| match token {
        None => sets(&["a", "b"], "t"),
        Some(_) => sets(&["c"], ""),
    })
    .await;
    assert_eq!(names(&known), (vec!["oai_dc", "marc21"], vec!["a", "b", "c"]));
    assert!(!known.formats_incomplete && !known.sets_incomplete, "{known:?}");
    type Pages = fn(Option<&str>) -> String;
    let broken: [Pages; 3] = [
        |_| sets(&["a", "d"], "t"),
        |token| match token {
            None => sets(&["a", "d"], "t"),
            Some(_) => "<error code='badResumptionToken'>no</error>".to_owned(),
        },
        |_| format!("{}<error code='x'>no</error>", sets(&["a", "d"], "")),
    ];
    for pages in broken {
        let said = probed("<error code='x'>no</error>", pages).await;
        assert!(said.formats_incomplete && said.sets_incomplete, "{said:?}");
        let kept = said.keeping(&known);
        let (formats, mut sets) = names(&kept);
        sets.sort_unstable();
        assert!(formats.contains(&"marc21"), "{formats:?}");
        assert!(["a", "b", "c"].iter().all(|set| sets.contains(set)), "{sets:?}");
    }
    // A complete list replaces what was known.
    let said = probed(FORMATS, |_| sets(&["d"], "")).await.keeping(&known);
    assert_eq!(names(&said).1, ["d"]);
}
