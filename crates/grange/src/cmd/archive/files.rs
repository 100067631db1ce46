//! `grange store`, `get`, `record` and `files …`

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use grange_api::client::{CHECKSUM, segment};
use grange_api::wire::archive::StoreFile;
use grange_api::{ApiError, Client};
use grange_base::{Chain, Size};
use grange_model::Checksums;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use tokio::io::AsyncWriteExt;

use super::text;
use crate::cli::Common;
use crate::exit::{Exit, UsageError, report};
use crate::progress::Progress;
use crate::{context, output};

/// Stores files one after the other; one that cannot be stored is reported and leaves the others alone. Exit code 5 when a
/// replica is not proven yet, and that of the first error when a file was not stored.
pub(super) async fn store(common: &Common, files: &[PathBuf]) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let progress = Progress::over(files);
    let (mut outcomes, mut failed) = (Vec::new(), Vec::new());
    for (index, path) in files.iter().enumerate() {
        let at = progress.file(path);
        let error = match store_one(common, &client, path).await {
            Ok(outcome) => {
                at.done(outcome["size"].as_u64().unwrap_or_default());
                if !common.json {
                    progress.suspend(|| told(&outcome));
                }
                outcomes.push(outcome);
                continue;
            }
            Err(error) => error,
        };
        outcomes.push(json!({ "path": path, "stored": false, "error": Chain(error.as_ref()).to_string() }));
        failed.push(progress.suspend(|| report(&error)));
        let left = files.len() - index - 1;
        if left > 0 && matches!(error.downcast_ref(), Some(ApiError::Unreachable { .. })) {
            progress.suspend(|| errln!("grange: {} not tried", output::counted(left as u64, "file")));
            break;
        }
    }
    progress.finish();
    if common.json {
        output::json(&outcomes)?;
    }
    let proven = outcomes.iter().all(|outcome| outcome["stored"] == true);
    let of_outcomes = if proven { Exit::Ok } else { Exit::Partial };
    Ok(failed.into_iter().next().unwrap_or(of_outcomes))
}

async fn store_one(common: &Common, client: &Client, path: &Path) -> anyhow::Result<Value> {
    let unreadable = || format!("cannot read {}", path.display());
    let size = std::fs::metadata(path).with_context(unreadable)?.len();
    let mut outcome: Value = if common.server.is_some() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = tokio::fs::File::open(path).await.with_context(unreadable)?;
        let checksums = sha512(path).with_context(unreadable)?;
        client.put_file(&format!("/files/{}", segment(&name)), file, &checksums).await?
    } else {
        let path = std::path::absolute(path)?.display().to_string();
        client.post("/files", &StoreFile { path, name: None }).await?
    };
    // For the progress bar where the answer has none.
    if outcome["size"].is_null() {
        outcome["size"] = json!(size);
    }
    Ok(outcome)
}

fn told(outcome: &Value) {
    let name = text(&outcome["name"]);
    if outcome["stored"] == true {
        let how = if outcome["already"] == true {
            "was proven on every replica before"
        } else {
            "proven on every replica"
        };
        outln!("{name}: {how}");
        return;
    }
    for replica in outcome["unproven"].as_array().into_iter().flatten() {
        let (replica, state, reason) =
            (text(&replica["replica"]), text(&replica["state"]), text(&replica["reason"]));
        outln!("{name}: not proven on {replica} ({state}): {reason}; it is tried again by itself");
    }
}

/// The checksum that goes with bytes over the network, for the other side to compare.
fn sha512(path: &Path) -> std::io::Result<Checksums> {
    let (mut file, mut digest) = (std::fs::File::open(path)?, Sha512::new());
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = std::io::Read::read(&mut file, &mut buffer)?;
        if count == 0 {
            break;
        }
        digest.update(&buffer[..count]);
    }
    Ok(Checksums { sha512: Some(grange_model::Sha512(digest.finalize().into())), ..Checksums::default() })
}

/// Gets a file; it appears under its name only when it is whole.
pub(super) async fn get(common: &Common, name: &str, dest: Option<PathBuf>) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let (headers, mut body) = client.get_bytes(&format!("/files/{}/content", segment(name))).await?;
    let size: Option<u64> = headers.get("content-length").and_then(|size| size.to_str().ok()?.parse().ok());
    let announced = headers.get(CHECKSUM).and_then(|text| text.to_str().ok()?.parse::<Checksums>().ok());
    let dest = dest.unwrap_or_else(|| PathBuf::from(name));
    if dest == Path::new("-") {
        while let Some(frame) = body.frame().await {
            let bytes = frame.map_err(anyhow::Error::from_boxed)?.into_data().unwrap_or_default();
            std::io::Write::write_all(&mut output::listing(), &bytes)?;
        }
        return Ok(Exit::Ok);
    }
    let dest = if dest.is_dir() { dest.join(name) } else { dest };
    if dest.exists() {
        return Err(UsageError(format!("{} exists; choose another place", dest.display())).into());
    }
    let folder = dest.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let aside = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    let mut file = tokio::fs::File::from_std(aside.reopen()?);
    let (mut written, mut digest) = (0, Sha512::new());
    let progress = Progress::of_bytes(size.unwrap_or_default());
    while let Some(frame) = body.frame().await {
        let bytes = frame.map_err(anyhow::Error::from_boxed)?.into_data().unwrap_or_default();
        written += bytes.len() as u64;
        digest.update(&bytes);
        file.write_all(&bytes).await?;
        progress.set(written);
    }
    progress.finish();
    file.sync_all().await?;
    ensure!(size.is_none_or(|size| size == written), "{name} broke off after {written} bytes; try again");
    let got =
        Checksums { sha512: Some(grange_model::Sha512(digest.finalize().into())), ..Checksums::default() };
    // An archive that records weaker checksums only has nothing to compare with.
    let same = announced.filter(|announced| announced.sha512.is_some()).is_none_or(|one| one.same_as(&got));
    ensure!(same, "{name} was damaged on its way; try again");
    aside.persist_noclobber(&dest).map_err(|error| error.error)?;
    if common.json {
        output::json(&serde_json::json!({ "name": name, "path": dest, "size": written }))?;
    } else {
        outln!("{}: {}", dest.display(), Size(written));
    }
    Ok(Exit::Ok)
}

/// Writes one record, unpacked, to standard output.
pub(super) async fn record(common: &Common, name: &str, offset: u64) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let (_, body) = client.get_bytes(&format!("/files/{}/record?offset={offset}", segment(name))).await?;
    let bytes = body.collect().await.map_err(anyhow::Error::from_boxed)?.to_bytes();
    std::io::Write::write_all(&mut output::stdout(), &bytes)?;
    Ok(Exit::Ok)
}

/// All files, page by page.
pub(super) async fn list(common: &Common) -> anyhow::Result<Exit> {
    let client = context::client(common).await?;
    let mut files: Vec<Value> = Vec::new();
    loop {
        let after =
            files.last().map(|file| format!("&after={}", segment(&text(&file["name"])))).unwrap_or_default();
        let page: Vec<Value> = client.get(&format!("/files?limit=10000{after}")).await?;
        if page.is_empty() {
            break;
        }
        files.extend(page);
    }
    if common.json {
        output::json(&files)?;
        return Ok(Exit::Ok);
    }
    let row = |file: &Value| {
        let states = file["holdings"].as_array().into_iter().flatten();
        let states: Vec<_> =
            states.map(|one| format!("{}={}", text(&one["replica"]), text(&one["state"]))).collect();
        let size = Size(file["size"].as_u64().unwrap_or_default()).to_string();
        [text(&file["name"]), size, states.join(" ")]
    };
    let rows: Vec<_> = files.iter().map(row).collect();
    output::table(["NAME", "SIZE", "REPLICAS"], &rows)?;
    Ok(Exit::Ok)
}

pub(super) async fn show(common: &Common, name: &str) -> anyhow::Result<Exit> {
    let file: Value = context::client(common).await?.get(&format!("/files/{}", segment(name))).await?;
    output::json(&file)?;
    Ok(Exit::Ok)
}

pub(super) async fn withdraw(common: &Common, name: &str) -> anyhow::Result<Exit> {
    let path = format!("/files/{}/withdraw", segment(name));
    let file: Value = context::client(common).await?.post(&path, &()).await?;
    if common.json {
        output::json(&file)?;
    } else {
        let size = Size(file["size"].as_u64().unwrap_or_default());
        outln!("{name}: the deposit of {size} is withdrawn; other bytes can be stored under this name");
    }
    Ok(Exit::Ok)
}
