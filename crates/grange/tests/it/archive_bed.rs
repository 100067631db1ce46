//! Machines of one archive for tests: a process of its own for each, on one PostgreSQL, with a shared token.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Grange;

/// The shortest pauses, so that tests wait for disks and not for clocks.
const QUICK: &str = "[archive]\nlease = \"1s\"\nretry_first = \"100ms\"\nretry_most = \"200ms\"\n";

/// A replica of kind bitarchive at these places, as settings.
pub(crate) fn bytes_at(name: &str, places: &[&str]) -> String {
    let places: Vec<_> = places
        .iter()
        .map(|place| if place.starts_with('{') { (*place).to_owned() } else { small_disks(place) })
        .collect();
    format!("[archive.replicas.{name}]\nat = [{}]\n", places.join(", "))
}

/// A place that takes files on a machine with little room.
fn small_disks(url: &str) -> String {
    format!("{{ url = \"{url}\", min_space_left = \"1MB\" }}")
}

/// A machine: its data folder with these settings and the token that all machines share.
pub(crate) fn machine(set: &[&str], settings: &str) -> Grange {
    // Nodes that are killed and started hundreds of times share a server with everything else that runs here.
    let patient = ["db.connect_timeout=60s", "bus.connect_timeout=60s"];
    let grange = Grange::with(&[&patient, set].concat());
    std::fs::create_dir_all(grange.data().join("secrets")).unwrap();
    write_settings(&grange, settings);
    let token = grange.data().join("secrets/node.token");
    std::fs::write(token, "shared by all machines, and long enough\n").unwrap();
    grange
}

/// The settings of a checksum replica beside the bitarchives.
pub(crate) const CHECKSUMS: &str = "[archive.replicas.three]\nkind = \"checksum\"\n";

/// The three replicas of the default below one data folder, also on a machine with little room.
pub(crate) fn single() -> Grange {
    single_with(&[])
}

/// The same with settings of the test's own.
pub(crate) fn single_with(set: &[&str]) -> Grange {
    let (one, two) = (bytes_at("one", &["file:replicas/one"]), bytes_at("two", &["file:replicas/two"]));
    machine(set, &[&one, &two, CHECKSUMS].concat())
}

pub(crate) fn write_settings(grange: &Grange, settings: &str) {
    std::fs::write(grange.data().join("grange.toml"), format!("{QUICK}{settings}")).unwrap();
}

/// A file outside the archive whose bytes follow from its name.
pub(crate) fn source(grange: &Grange, name: &str, bytes: usize) -> PathBuf {
    let folder = grange.path("incoming");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, content(name, bytes)).unwrap();
    path
}

pub(crate) fn content(name: &str, bytes: usize) -> Vec<u8> {
    let seed = name.bytes().fold(7_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    (0..bytes as u64).map(|at| (at.wrapping_mul(seed << 1 | 1) >> 7) as u8).collect()
}

/// The node that runs on the data folder right now, asked over HTTP. `None` while it is away.
pub(crate) async fn store_over_http(
    http: &reqwest::Client,
    data: PathBuf,
    file: &Path,
    name: &str,
) -> Option<Result<Value, String>> {
    let node: Value = serde_json::from_slice(&std::fs::read(data.join("run/node.json")).ok()?).ok()?;
    let call = http
        .post(format!("{}/api/v1/files", node["url"].as_str()?))
        .bearer_auth(node["token"].as_str()?)
        .header("grange-local-user", "tester")
        .timeout(Duration::from_secs(30))
        .json(&json!({ "path": file, "name": name }));
    let answer = call.send().await.ok()?;
    let status = answer.status();
    let text = answer.text().await.ok()?;
    if status.is_success() {
        return Some(Ok(serde_json::from_str(&text).unwrap()));
    }
    // A node that was just killed and started again does not know the old token.
    (status.is_client_error() && status.as_u16() != 401).then_some(Err(text))
}

pub(crate) fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// The files that lie in a replica's folder, without the archive's own witnesses.
pub(crate) fn lying_in(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| !name.starts_with("grange-witness-")).collect()
}

/// Counts of a check of every byte of every replica: ok, missing, corrupt, undecided, extra.
pub(crate) fn audit(grange: &Grange) -> [u64; 5] {
    let ended = grange.run(&["audit", "run", "--wait", "--json"]);
    assert!([0, 5].contains(&ended.code), "{ended:?}");
    let counts = ended.json();
    ["ok", "missing", "corrupt", "undecided", "extra"].map(|field| counts[field].as_u64().unwrap())
}
