//! Who a repository is: Identify, ListMetadataFormats, ListSets.

use std::time::Duration;

use grange_base::{Clock, Shutdown};
use grange_model::oai::{DeletedSupport, Format, Granularity, Identified, Set};
use oaipmh::{DeletedRecord, ErrorCode, Item, Request, TokenStyle};

use crate::fetch::{FetchError, Fetcher};
use crate::settings::Settings;

/// Sets of one repository that are kept; the largest known has some 50,000.
const SETS_MAX: usize = 200_000;
/// Pages of sets; a list of sets that is longer is a loop.
const PAGES_MAX: usize = 10_000;

/// Asks a repository who it is.
pub async fn probe(
    base_url: &str,
    settings: &Settings,
    clock: &Clock,
    stop: &Shutdown,
) -> Result<Identified, FetchError> {
    let mut fetcher =
        Fetcher::new(base_url, settings, TokenStyle::Encoded, Duration::ZERO, clock.clone(), stop.clone())?;
    let page = fetcher.whole(&Request::Identify).await?;
    let mut remarks: Vec<String> = page.problems.iter().take(5).map(ToString::to_string).collect();
    if let Some(error) = page.errors.first() {
        return Err(FetchError::Failed(format!("{base_url} answered Identify with {error}")));
    }
    let said = page.into_identify().items.into_iter().next();
    let said = said.ok_or_else(|| {
        FetchError::Failed(format!("{base_url} does not say who it is: is it an OAI-PMH base URL?"))
    })?;
    if said.protocol_version.trim() != "2.0" {
        remarks.push(format!("it speaks version \"{}\" of the protocol", said.protocol_version));
    }
    if said.granularity.is_none() {
        remarks.push("it does not say how fine its dates are: days are assumed".to_owned());
    }
    let before = remarks.len();
    let formats = formats(&mut fetcher, &mut remarks).await?;
    let formats_incomplete = remarks.len() > before;
    let before = remarks.len();
    let sets = sets(&mut fetcher, &mut remarks).await?;
    let sets_incomplete = remarks.len() > before;
    remarks.append(&mut fetcher.remarks);
    Ok(Identified {
        name: said.repository_name,
        protocol_version: said.protocol_version,
        admin_emails: said.admin_emails,
        granularity: match said.granularity {
            Some(oaipmh::Granularity::Second) => Granularity::Second,
            _ => Granularity::Day,
        },
        deleted_support: match said.deleted_record {
            DeletedRecord::No => DeletedSupport::No,
            DeletedRecord::Transient => DeletedSupport::Transient,
            DeletedRecord::Persistent => DeletedSupport::Persistent,
        },
        earliest: said.earliest_datestamp.map(oaipmh::Datestamp::timestamp),
        registry_prefix: said.descriptions.iter().find_map(|text| between(text, "repositoryIdentifier")),
        formats,
        sets,
        remarks,
        formats_incomplete,
        sets_incomplete,
    })
}

/// The formats; each remark is about one that may be missing.
async fn formats(fetcher: &mut Fetcher, remarks: &mut Vec<String>) -> Result<Vec<Format>, FetchError> {
    let page = match fetcher.whole(&Request::ListMetadataFormats { identifier: None }).await {
        Ok(page) => page,
        Err(FetchError::Stopped) => return Err(FetchError::Stopped),
        // Every repository has oai_dc, by the protocol.
        Err(FetchError::Failed(reason)) => {
            remarks.push(format!("it does not list its formats: {reason}"));
            return Ok(vec![oai_dc()]);
        }
    };
    remarks.extend(page.errors.iter().map(|error| format!("it does not list its formats: {error}")));
    let formats: Vec<_> = page
        .into_formats()
        .items
        .into_iter()
        .filter(|format| !format.prefix.is_empty())
        .map(|format| Format { prefix: format.prefix, schema: format.schema, namespace: format.namespace })
        .collect();
    Ok(if formats.is_empty() { vec![oai_dc()] } else { formats })
}

fn oai_dc() -> Format {
    Format {
        prefix: "oai_dc".to_owned(),
        schema: "http://www.openarchives.org/OAI/2.0/oai_dc.xsd".to_owned(),
        namespace: "http://www.openarchives.org/OAI/2.0/oai_dc/".to_owned(),
    }
}

/// The sets; each remark is about some that are missing.
async fn sets(fetcher: &mut Fetcher, remarks: &mut Vec<String>) -> Result<Vec<Set>, FetchError> {
    let mut sets: Vec<Set> = Vec::new();
    let mut tokens = std::collections::HashSet::new();
    let mut request = Request::ListSets;
    for number in 0..PAGES_MAX {
        let page = match fetcher.whole(&request).await {
            Ok(page) => page,
            Err(FetchError::Stopped) => return Err(FetchError::Stopped),
            Err(FetchError::Failed(reason)) => {
                remarks.push(format!("it does not list its sets: {reason}"));
                break;
            }
        };
        if let Some(error) = page.errors.first() {
            if error.code != ErrorCode::NoSetHierarchy {
                remarks.push(format!("it does not list all its sets: {error}"));
            }
            break;
        }
        let next = page.next_token().map(str::to_owned);
        for item in page.items {
            if let Item::Set(set) = item
                && !set.spec.is_empty()
            {
                sets.push(Set { spec: set.spec, name: set.name });
            }
        }
        let Some(token) = next else { break };
        if sets.len() >= SETS_MAX || number + 1 == PAGES_MAX {
            remarks.push(format!("it has more sets than the {} that are kept", sets.len()));
            break;
        }
        if !tokens.insert(token.clone()) {
            remarks.push(format!("it gave the same token again after {} sets", sets.len()));
            break;
        }
        request = Request::resume(oaipmh::Verb::ListSets, token);
    }
    sets.sort_by(|a, b| a.spec.cmp(&b.spec));
    sets.dedup_by(|a, b| a.spec == b.spec);
    Ok(sets)
}

/// The text of an element without children, by its local name; descriptions are kept raw and read leniently.
fn between(text: &str, element: &str) -> Option<String> {
    let start = text.find(&format!("{element}>"))? + element.len() + 1;
    let end = text[start..].find('<')? + start;
    Some(text[start..end].trim().to_owned()).filter(|found| !found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_identifier_is_found_in_its_description() {
        let text = "<o:oai-identifier xmlns:o='x'><o:scheme>oai</o:scheme><o:repositoryIdentifier>ilLib\
                    </o:repositoryIdentifier></o:oai-identifier>";
        assert_eq!(between(text, "repositoryIdentifier").as_deref(), Some("ilLib"));
        assert_eq!(between("<x/>", "repositoryIdentifier"), None);
    }
}
