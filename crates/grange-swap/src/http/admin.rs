//! `/admin/v1`: management as JSON, for who knows the key.

use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;

use futures_util::future::join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::admin::{CollectionStatus, NewCollection, Reslice, ServerStatus, Slices, Status};
use crate::change;
use crate::collection::Layout;
use crate::error::Error;
use crate::http::answer::Head;
use crate::http::conn::{After, Conn};
use crate::http::request::{BodyLength, Method, Request};
use crate::http::target::failed;
use crate::moves;
use crate::name::decode;
use crate::node::Node;
use crate::peer::call::{Answer, Call, Change};
use crate::peer::serve::blocking;
use crate::verify::{self, Report};
use crate::view::{Home, Inventory, Known};

/// Largest question, bytes.
const MAX_BODY_BYTES: usize = 64 << 10;

pub(crate) async fn handle(node: &Arc<Node>, conn: &mut Conn, request: &Request) -> io::Result<After> {
    if !conn.permitted(node, request) {
        return conn.unauthorized(request).await;
    }
    let mut bytes = Vec::new();
    let mut body = conn.body(request);
    if request.expects_continue {
        conn.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        conn.flush().await?;
    }
    if body.next(&conn.stream, &mut conn.input, &mut bytes, MAX_BODY_BYTES).await? {
        return conn
            .say(&Request { keep_alive: false, ..request.clone() }, 400, "", "the question is too long")
            .await;
    }
    let request = &Request { body: BodyLength::None, ..request.clone() };
    match act(node, request, &bytes).await {
        Ok(Some(text)) => {
            let head =
                Head::new(&mut conn.out, 200, request.keep_alive).line("Content-Type", "application/json");
            head.lines("Cache-Control: no-store\r\n").safe().length(text.len() as u64);
            conn.out.extend_from_slice(text.as_bytes());
            conn.flush().await?;
            Ok(if request.keep_alive { After::Keep } else { After::Close })
        }
        Ok(None) => conn.say(request, 404, "", "there is no such act; see the book's page on SWAP").await,
        Err(error) => failed(conn, request, &error).await,
    }
}

fn json(value: &impl Serialize) -> Result<Option<String>, Error> {
    let text = serde_json::to_string(value);
    text.map(|text| Some(text + "\n")).map_err(|error| Error::refused(error.to_string()))
}

fn question<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::Answered {
        place: "this server".to_owned(),
        status: 400,
        reason: error.to_string(),
    })
}

async fn act(node: &Arc<Node>, request: &Request, bytes: &[u8]) -> Result<Option<String>, Error> {
    let Some(rest) = request.path.strip_prefix("/admin/v1/") else { return Ok(None) };
    let (act, namespace) = rest.split_once('/').unwrap_or((rest, ""));
    let namespace = decode(namespace)?;
    let named = || {
        let known = node.view().get(&namespace).cloned();
        known.ok_or_else(|| Error::NoCollection { namespace: namespace.clone() })
    };
    match (request.method, act) {
        (Method::Get, "status") => json(&status(node).await?),
        (Method::Get, "collections") if namespace.is_empty() => json(&status(node).await?.collections),
        (Method::Get, "collections") => {
            let known = named()?;
            json(&CollectionStatus::new(&known.record, &all(node).await?))
        }
        (Method::Post, "collections") => {
            let NewCollection { namespace, slices, public, mixed_disks } = question(bytes)?;
            json(&change::request(node, Change::Create { namespace, slices, public, mixed_disks }).await?)
        }
        (Method::Delete, "collections") => {
            let with_files = request.parameter("with_files") == Some("true");
            json(
                &change::request(node, Change::Remove { collection: named()?.record.uuid, with_files })
                    .await?,
            )
        }
        (Method::Post, "reslice") => reslice(node, &named()?, question(bytes)?).await,
        (Method::Post, "verify") => json(&verify_all(node, &named()?, true).await?),
        (Method::Get, "verify") => json(&verify_all(node, &named()?, false).await?),
        _ => Ok(None),
    }
}

/// What all servers tell: the living ones just now, the others when they were last seen.
async fn all(node: &Arc<Node>) -> Result<Vec<(Inventory, bool)>, Error> {
    let own = Arc::clone(node);
    let mut all = vec![(blocking(move || Ok(own.inventory())).await?, true)];
    // One that dies while it is asked is as away as one whose death was noticed before.
    let asked = node.others().into_iter().map(|other| async move {
        if other.alive
            && let Ok(link) = node.link(&other.base)
            && let Ok(Answer::Inventory(inventory)) = link.ask(Call::Watch { since: None }).await
        {
            return (*inventory, true);
        }
        ((*other.inventory).clone(), false)
    });
    all.extend(join_all(asked).await);
    Ok(all)
}

async fn status(node: &Arc<Node>) -> Result<Status, Error> {
    let all = all(node).await?;
    let view = node.view();
    let mut collections: Vec<_> =
        view.collections().map(|known| CollectionStatus::new(&known.record, &all)).collect();
    collections.sort_by(|one, two| one.record.namespace.cmp(&two.record.namespace));
    let mut servers: Vec<_> = all
        .into_iter()
        .map(|(inventory, alive)| ServerStatus {
            clock_ahead_ms: node.clock_ahead(&inventory.base).map(|ahead| ahead.as_millis() as i64),
            base: inventory.base,
            alive,
            partitions: inventory.partitions,
        })
        .collect();
    servers.sort_by(|one, two| one.base.cmp(&two.base));
    Ok(Status { servers, unseen: node.unseen(), collections })
}

async fn reslice(node: &Arc<Node>, known: &Arc<Known>, wanted: Reslice) -> Result<Option<String>, Error> {
    let Layout::Stable { slices: from } = known.record.layout else {
        return Err(Error::refused("the collection is moving already: wait until that is done"));
    };
    let to = match wanted.slices {
        Slices::Double => from.get().saturating_mul(2),
        Slices::Halve if from.get() % 2 == 0 => from.get() / 2,
        Slices::Halve => return Err(Error::refused(format!("{from} slices cannot be halved"))),
        Slices::To(to) => to,
    };
    let Some(target) = NonZeroU32::new(to) else {
        return Err(Error::refused("a collection has at least one slice"));
    };
    let now = CollectionStatus::new(&known.record, &all(node).await?);
    let estimate = moves::estimate(from, target, now.files(), now.bytes());
    if !wanted.dry_run {
        let change =
            Change::Reslice { collection: known.record.uuid, slices: to, mixed_disks: wanted.mixed_disks };
        change::request(node, change).await?;
    }
    json(&estimate)
}

/// Has every server verify its slices, and puts their reports together.
async fn verify_all(node: &Arc<Node>, known: &Arc<Known>, start: bool) -> Result<Report, Error> {
    let collection = known.record.uuid;
    let mut report = verify::here(node, collection, start)?;
    let asked = known.others().into_iter().map(|(base, _)| async move {
        let answer = async { node.link(&base)?.ask(Call::Verify { collection, start }).await }.await;
        (base, answer)
    });
    let mut away = Vec::new();
    for (base, answer) in join_all(asked).await {
        match answer {
            Ok(Answer::Report(other)) => report.add(*other),
            _ => away.push(base),
        }
    }
    for (slice, home) in known.homes.iter().enumerate() {
        match home {
            Home::There { base, .. } if away.contains(base) => report.missing_slices.push(slice),
            Home::Nowhere => report.missing_slices.push(slice),
            _ => {}
        }
    }
    Ok(report)
}
