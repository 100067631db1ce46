//! SWAP through its commands, with curl as the client of the paper.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use grange_testkit::until;
use rustix::process::Signal;
use tokio::sync::Mutex;

use crate::harness::Grange;
use crate::swap_bed::{KEY, Network, read_tree};

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_paper_work_as_printed() {
    if Command::new("curl").arg("--version").output().is_err() {
        grange_testkit::skipped("curl");
        return;
    }
    let network = Network::start(2, 2);
    let server = network.addresses[0].as_str();
    network.complete().await;
    network.run(&["swap", "create", "collection", "--slices", "2", "--server", server]).ok();
    until("both know the collection", async || {
        network.status(1)["collections"][0]["slices"][1]["alive"] == true
    })
    .await;

    // Any of these may be redirected: half of the names lie on the other server.
    let source = network.folder.path().join("source");
    std::fs::create_dir_all(source.join("deep/er")).unwrap();
    std::fs::write(source.join("screenshot.png"), b"\x89PNG").unwrap();
    for number in 0..10_u32 {
        std::fs::write(source.join(format!("deep/er/{number}.txt")), number.to_string()).unwrap();
    }
    let shell = |script: String| {
        let output = Command::new("sh").arg("-c").arg(script).current_dir(&source).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    shell(format!("curl -sS -f -L -T screenshot.png http://{server}/put/collection/screenshot.png"));
    // As the paper prints it, with the file to send named, which its print lost.
    shell(format!(
        "find . -name '*.txt' -exec curl -sS -f -L -T {{}} http://{server}/put/collection/documents/{{}} \\;"
    ));
    let mut expected = BTreeMap::new();
    read_tree(&source, "", &mut expected);
    let expected: BTreeMap<_, _> = expected
        .into_iter()
        .map(|(name, bytes)| {
            (if name.starts_with("deep") { format!("documents/{name}") } else { name }, bytes)
        })
        .collect();
    assert_eq!(expected.len(), 11);
    assert_eq!(network.copied("collection"), expected);
    assert_eq!(
        shell(format!("curl -sS -f -L http://{server}/get/collection/screenshot.png | tail -c 3")),
        "PNG"
    );

    let dry = network.run(&["swap", "double", "collection", "--server", server, "--dry-run"]).ok();
    assert!(dry.stdout.contains("would move about 5 files"), "{}", dry.stdout);
    network.run(&["swap", "double", "collection", "--server", server, "--wait"]).ok();
    let verified = network.run(&["swap", "verify", "collection", "--server", server]).ok();
    assert!(
        verified.stdout.contains("11 files") && verified.stdout.contains("0 problems"),
        "{}",
        verified.stdout
    );
    assert_eq!(network.copied("collection"), expected);
    network.run(&["swap", "halve", "collection", "--server", &network.addresses[1], "--wait"]).ok();
    assert_eq!(network.copied("collection"), expected);
    let listed = network.run(&["swap", "collections", "--server", server]).ok();
    assert!(listed.stdout.contains("collection") && listed.stdout.contains("stable"), "{}", listed.stdout);

    network.run(&["swap", "rm", "collection", "screenshot.png", "--server", server]).ok();
    network
        .run(&["swap", "rm", "collection", "screenshot.png", "--server", server])
        .fails(3, &["no such file"]);
    network.run(&["swap", "rm", "collection", "--server", server]).fails(4, &["holds files"]);
    network
        .run(&["swap", "create", "collection/x", "--slices", "1", "--server", server])
        .fails(4, &["overlaps"]);
    network.run(&["swap", "verify", "nothing", "--server", server]).fails(3, &["no collection nothing"]);
    network.run(&["swap", "rm", "collection", "--with-files", "--server", server]).ok();
    assert_eq!(network.copied("collection").len(), 0);
}

/// Another user on this machine is a stranger without the key. Takes root to become one.
#[tokio::test(flavor = "multi_thread")]
async fn other_users_need_the_key() {
    let network = Network::start(1, 1);
    let server = network.addresses[0].as_str();
    network.run(&["swap", "create", "c", "--slices", "1", "--server", server]).ok();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let put = |header: &str| {
        let script = format!(
            "curl -s -o /dev/null -w '%{{http_code}}' {header} -T /etc/hostname http://{server}/put/c/x"
        );
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups", "sh", "-c", &script]).current_dir("/");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(put(""), "401");
    assert_eq!(put("-H 'Authorization: Bearer wrong'"), "401");
    assert_eq!(put(&format!("-H 'Authorization: Bearer {KEY}'")), "201");
}

/// What clients did and were told.
#[derive(Default)]
struct Course {
    begun: AtomicUsize,
    stop: AtomicBool,
    acknowledged: Mutex<BTreeMap<String, Vec<u8>>>,
}

fn content(number: usize) -> (String, Vec<u8>) {
    let size = 1 + number * 7919 % 40_000;
    (format!("d{}/e{}/f{number}.bin", number % 5, number % 11), vec![(number % 251) as u8; size])
}

/// Puts files one after the other until told to stop, each as often as it takes.
async fn write(addresses: Arc<Vec<String>>, course: Arc<Course>) {
    // The redirects carry the permission; the client follows them as curl does.
    let client = reqwest::Client::new();
    while !course.stop.load(SeqCst) {
        let number = course.begun.fetch_add(1, SeqCst);
        let (name, bytes) = content(number);
        for attempt in number.. {
            let url = format!("http://{}/put/c/{name}", addresses[attempt % addresses.len()]);
            // A server that stands still does not answer; another try goes to another server.
            let sent =
                client.put(url).timeout(std::time::Duration::from_secs(5)).body(bytes.clone()).send().await;
            match sent.map(|response| response.status().as_u16()) {
                Ok(200 | 201) => {
                    course.acknowledged.lock().await.insert(name, bytes);
                    break;
                }
                Ok(503) | Err(_) if course.stop.load(SeqCst) => break,
                Ok(503) | Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
                Ok(status) => panic!("{name}: {status}"),
            }
        }
    }
}

/// Three servers are killed, frozen, and doubled under load. Every acknowledged byte is there afterwards, by GET from
/// every server and by plain copy, and nothing is there that nobody sent.
#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_file_is_lost_by_kills_freezes_and_moves() {
    let mut network = Network::start(3, 2);
    network.complete().await;
    let address = network.addresses[0].clone();
    network.run(&["swap", "create", "c", "--slices", "3", "--public", "--server", &address]).ok();
    let (course, addresses) = (Arc::new(Course::default()), Arc::new(network.addresses.clone()));
    let writers: Vec<_> =
        (0..3).map(|_| tokio::spawn(write(Arc::clone(&addresses), Arc::clone(&course)))).collect();
    let more = async |wanted: usize| {
        let from = course.acknowledged.lock().await.len();
        until("more files are acknowledged", async || {
            course.acknowledged.lock().await.len() >= from + wanted
        })
        .await;
    };
    more(30).await;

    // Killed: the files of the others are served, and it comes back.
    network.kill(2);
    until("its death is noticed", async || network.alive(0) == 2).await;
    network.up(2);
    network.complete().await;
    more(20).await;

    // Frozen: its connections stay open and nothing comes over them.
    network.signal(1, Signal::STOP);
    until("its silence is noticed", async || network.alive(0) == 2).await;
    network.signal(1, Signal::CONT);
    network.complete().await;
    more(20).await;

    // Doubled under load, and killed in the middle.
    network.run(&["swap", "double", "c", "--server", &address]).ok();
    network.kill(1);
    network.up(1);
    until("the move is done", async || {
        let status = network.status(0);
        status["collections"][0]["record"]["layout"]["state"] == "stable"
            && status["collections"][0]["slices"].as_array().is_some_and(|slices| slices.len() == 6)
    })
    .await;
    more(20).await;
    course.stop.store(true, SeqCst);
    for writer in writers {
        writer.await.unwrap();
    }
    network.complete().await;

    let acknowledged = course.acknowledged.lock().await;
    let copied = network.copied("c");
    let sent: BTreeMap<_, _> = (0..course.begun.load(SeqCst)).map(content).collect();
    for (name, bytes) in acknowledged.iter() {
        assert_eq!(copied.get(name), Some(bytes), "{name} was acknowledged and is not there");
        for address in addresses.iter() {
            let got = reqwest::get(format!("http://{address}/get/c/{name}")).await.unwrap();
            assert_eq!(got.bytes().await.unwrap(), *bytes, "{name} from {address}");
        }
    }
    for (name, bytes) in &copied {
        assert_eq!(sent.get(name), Some(bytes), "{name} was never sent like this");
    }
    let verified = network.run(&["swap", "verify", "c", "--server", &address, "--json"]).ok().json();
    assert_eq!(verified["files"], copied.len());
    assert_eq!((&verified["problem_count"], &verified["without_checksum"]), (&0.into(), &0.into()));
}

#[tokio::test]
async fn a_node_serves_swap_beside_everything_else() {
    let grange = Grange::with(&[
        "node.roles=[\"swap\"]",
        "swap.partitions=[\"disk\"]",
        "swap.listen=127.0.0.1:0",
        "swap.min_space_left=1MiB",
    ]);
    grange.run(&["up"]).fails(1, &["disk", "grange swap init"]);
    let disk = grange.data().join("disk");
    grange.run(&["swap", "init", disk.to_str().unwrap(), "--description", "a disk"]).ok();
    let node = grange.up();
    let server = node.url("swap");
    let address = server.strip_prefix("http://").unwrap();
    grange.run(&["swap", "create", "papers", "--slices", "1", "--server", address]).ok();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let put = client.put(format!("{server}/put/papers/a/b.txt")).body("kept").send().await.unwrap();
    assert_eq!(put.status(), 201);
    let got = client.get(format!("{server}/get/papers/a/b.txt")).send().await.unwrap();
    assert_eq!(got.text().await.unwrap(), "kept");
    assert_eq!(node.stop(), 0);
    assert_eq!(std::fs::read_to_string(disk.join("papers/a/b.txt")).unwrap(), "kept");
}
