//! Everything held of a repository as one stream, and OAI-PMH itself.

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::IntoResponse;
use futures_util::{StreamExt, TryStreamExt, stream};
use grange_model::oai::{OaiRecord, RecordStatus, RepositoryId};
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write as _;

use super::Shown;
use crate::Web;
use crate::caller::Caller;

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    Jsonl,
    Xml,
}

#[derive(Debug, Deserialize)]
pub(super) struct What {
    format: Form,
    prefix: Option<String>,
}

pub(super) async fn export(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<RepositoryId>,
    Query(what): Query<What>,
) -> Shown {
    let prefix = what.prefix.as_deref().unwrap_or("oai_dc");
    let records = web.app.oai_export(&who, id, prefix).await?;
    let form = what.format;
    let written = records.map_ok(move |(record, content)| write(form, &record, content.as_deref()));
    let written = written.map_err(std::io::Error::other);
    let (kind, head, tail) = match form {
        Form::Jsonl => ("application/jsonl", "", ""),
        Form::Xml => {
            ("application/xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<records>\n", "</records>\n")
        }
    };
    let framed =
        stream::iter([Ok(head.to_owned())]).chain(written).chain(stream::iter([Ok(tail.to_owned())]));
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(framed)).into_response())
}

fn write(form: Form, record: &OaiRecord, content: Option<&str>) -> String {
    let deleted = record.status == RecordStatus::Deleted;
    match form {
        Form::Jsonl => {
            let line = json!({
                "identifier": record.identifier,
                "datestamp": record.datestamp,
                "prefix": record.prefix,
                "deleted": deleted,
                "sets": record.sets,
                "file": record.filename,
                "metadata": content,
            });
            format!("{line}\n")
        }
        Form::Xml => {
            let mut out = format!(
                "<record><header{}><identifier>{}</identifier><datestamp>{}</datestamp>",
                if deleted { " status=\"deleted\"" } else { "" },
                escaped(&record.identifier),
                record.datestamp,
            );
            for set in &record.sets {
                let _ = write!(out, "<setSpec>{}</setSpec>", escaped(set));
            }
            out.push_str("</header>");
            if let Some(content) = content {
                let element = match content.find("?>") {
                    Some(end) if content.starts_with("<?xml") => &content[end + 2..],
                    _ => content,
                };
                out.push_str("<metadata>");
                out.push_str(element.trim());
                out.push_str("</metadata>");
            }
            out.push_str("</record>\n");
            out
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    /// Where the asker thinks it asks.
    base_url: String,
    /// The arguments, as they came.
    query: String,
}

pub(super) async fn provide(
    State(web): State<Web>,
    Caller(who): Caller,
    Query(asked): Query<Asked>,
) -> Shown {
    let arguments = arguments_of(&asked.query);
    let answer = web.app.oai_provide(&who, &asked.base_url, arguments).await?;
    Ok(([(header::CONTENT_TYPE, "text/xml; charset=utf-8")], answer).into_response())
}

/// `a=b&c=d`, decoded. Repeated names stay, so that they can be refused.
fn arguments_of(query: &str) -> Vec<(String, String)> {
    let uri = format!("/?{query}");
    let Ok(uri) = uri.parse::<axum::http::Uri>() else { return vec![("query".to_owned(), String::new())] };
    Query::<Vec<(String, String)>>::try_from_uri(&uri).map(|Query(pairs)| pairs).unwrap_or_default()
}
