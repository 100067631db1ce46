//! SWAP servers on a network that is really cut in two: each in a network namespace of its own, all on one switch.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use grange_testkit::until;
use serde_json::Value;

use crate::swap_bed::read_tree;

/// Namespaces joined by a bridge, which has one of its own too: nothing of the machine's network is touched.
struct Site {
    prefix: String,
    folder: tempfile::TempDir,
    servers: Vec<Child>,
}

/// Clients here are on other machines and send it as a header, which carries no spaces.
const KEY: &str = "0123456789abcdef0123456789abcdef";
const SERVERS: usize = 3;
/// The place of the client on the switch, behind the servers.
const CLIENT: usize = SERVERS;

fn ip(words: &str) -> bool {
    let run = Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

impl Site {
    /// `None` where namespaces cannot be made: that takes root and the tool `ip`.
    fn build() -> Option<Self> {
        // Names of interfaces have at most 15 letters.
        let prefix = format!("g{}", std::process::id() % 1_000_000);
        let site = Self { prefix, folder: tempfile::tempdir().unwrap(), servers: Vec::new() };
        let switch = site.switch();
        if !ip(&format!("netns add {switch}")) {
            return None;
        }
        let joined = ip(&format!("-n {switch} link add br0 type bridge"))
            && ip(&format!("-n {switch} link set br0 up"))
            && (0..=CLIENT).all(|place| site.join(place));
        joined.then_some(site)
    }

    fn switch(&self) -> String {
        format!("{}sw", self.prefix)
    }

    fn space(&self, place: usize) -> String {
        format!("{}n{place}", self.prefix)
    }

    fn join(&self, place: usize) -> bool {
        let (space, switch) = (self.space(place), self.switch());
        let address = place + 1;
        ip(&format!("netns add {space}"))
            && ip(&format!("-n {space} link add eth0 type veth peer name port{place} netns {switch}"))
            && ip(&format!("-n {space} addr add 10.77.0.{address}/24 dev eth0"))
            && ip(&format!("-n {space} link set lo up"))
            && ip(&format!("-n {space} link set eth0 up"))
            && ip(&format!("-n {switch} link set port{place} master br0 up"))
    }

    fn cut(&self, place: usize, cut: bool) {
        let state = if cut { "down" } else { "up" };
        assert!(ip(&format!("-n {} link set port{place} {state}", self.switch())));
    }

    fn address(server: usize) -> String {
        format!("10.77.0.{}:8080", server + 1)
    }

    fn command(&self, place: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(place), program]).current_dir(self.folder.path());
        command
    }

    fn grange(&self, place: usize, args: &[&str]) -> Output {
        let mut command = self.command(place, env!("CARGO_BIN_EXE_grange"));
        command.args(args).env("GRANGE_SWAP_KEY_FILE", "key").output().unwrap()
    }

    fn partition(&self, server: usize, part: usize) -> PathBuf {
        self.folder.path().join(format!("server{server}-disk{part}"))
    }

    fn start(&mut self) {
        std::fs::write(self.folder.path().join("key"), KEY).unwrap();
        for server in 0..SERVERS {
            let mut command = self.command(server, env!("CARGO_BIN_EXE_grange"));
            command.args(["swap", "serve", "--listen", &Self::address(server), "--key-file", "key"]);
            command.args(["--move-rate", "0B", "--min-space-left", "1MiB", "--partition"]);
            for part in 0..2 {
                let partition = self.partition(server, part);
                let init = ["swap", "init", partition.to_str().unwrap(), "--description", "a disk"];
                assert!(self.grange(CLIENT, &init).status.success());
                command.arg(partition);
            }
            for other in (0..SERVERS).filter(|other| *other != server) {
                command.args(["--peer", &Self::address(other)]);
            }
            let log = std::fs::File::create(self.folder.path().join(format!("{server}.log"))).unwrap();
            let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
            let first = BufReader::new(child.stdout.take().unwrap()).lines().next();
            self.servers.push(child);
            assert!(first.is_some_and(|line| line.unwrap().starts_with("SWAP on http://")));
        }
    }

    /// How many servers one of them sees, asked from where somebody is.
    fn alive(&self, from: usize, server: usize) -> usize {
        let output = self.grange(from, &["swap", "status", "--server", &Self::address(server), "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let servers = status["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
        servers.iter().filter(|server| server["alive"] == true).count()
    }

    fn curl(&self, from: usize, words: &[&str]) -> String {
        let mut command = self.command(from, "curl");
        command.args(["-sS", "-L", "--max-time", "20", "-H", &format!("Authorization: Bearer {KEY}")]);
        String::from_utf8_lossy(&command.args(words).output().unwrap().stdout).into_owned()
    }

    fn put(&self, from: usize, server: usize, name: &str) -> String {
        std::fs::write(self.folder.path().join("sent"), name).unwrap();
        let url = format!("http://{}/put/c/{name}", Self::address(server));
        self.curl(from, &["-o", "answer", "-w", "%{http_code}", "-T", "sent", &url])
    }

    fn get(&self, from: usize, server: usize, name: &str) -> (String, String) {
        let url = format!("http://{}/get/c/{name}", Self::address(server));
        let status = self.curl(from, &["-o", "got", "-D", "head", "-w", "%{http_code}", &url]);
        (status, std::fs::read_to_string(self.folder.path().join("got")).unwrap_or_default())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for child in &mut self.servers {
            let _ = child.kill();
            let _ = child.wait();
        }
        for place in 0..=CLIENT {
            ip(&format!("netns del {}", self.space(place)));
        }
        ip(&format!("netns del {}", self.switch()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_cut_off_serves_its_own_and_rejoins() {
    let Some(mut site) = Site::build() else {
        return grange_testkit::note_skipped("network namespaces (root and the tool ip)");
    };
    if Command::new("curl").arg("--version").output().is_err() {
        grange_testkit::skipped("curl");
        return;
    }
    site.start();
    let all = |site: &Site| (0..SERVERS).all(|server| site.alive(CLIENT, server) == SERVERS);
    until("the servers see each other", async || all(&site)).await;
    let first = Site::address(0);
    assert!(
        site.grange(CLIENT, &["swap", "create", "c", "--slices", "3", "--server", &first]).status.success()
    );
    let mut kept = BTreeMap::new();
    for number in 0..18 {
        let name = format!("d{}/f{number}", number % 2);
        // Right after its making not every server may know of the collection.
        until("the file is taken", async || {
            ["200", "201"].contains(&site.put(CLIENT, number % 3, &name).as_str())
        })
        .await;
        kept.insert(name.clone(), name);
    }

    site.cut(2, true);
    until("both sides notice", async || site.alive(CLIENT, 0) == 2 && site.alive(2, 2) == 1).await;
    let (mut here, mut away) = (0, 0);
    for name in kept.keys() {
        let (status, got) = site.get(CLIENT, 0, name);
        // One of the two sides has it, never both: the slice is where it is.
        let (other, other_got) = site.get(2, 2, name);
        match (status.as_str(), other.as_str()) {
            ("200", "503") => assert_eq!(&got, name),
            ("503", "200") => assert_eq!(&other_got, name),
            found => panic!("{name}: {found:?}"),
        }
        here += usize::from(status == "200");
        away += usize::from(other == "200");
    }
    assert!(here > 0 && away > 0 && here + away == 18, "{here} {away}");
    // Each side goes on with names it can decide, and guesses nothing about the others.
    let (mut taken, mut refused) = (0, 0);
    for number in 0..24 {
        let name = format!("d{}/g{number}", number % 2);
        for (from, server) in [(CLIENT, 1), (2, 2)] {
            match site.put(from, server, &name).as_str() {
                "201" => {
                    taken += 1;
                    assert!(
                        kept.insert(name.clone(), name.clone()).is_none(),
                        "{name} was taken on both sides"
                    );
                }
                "503" => refused += 1,
                status => panic!("{name}: {status}"),
            }
        }
    }
    assert_eq!((taken, refused), (24, 24));
    let new_folders: Vec<_> = (0..6).map(|number| site.put(2, 2, &format!("n{number}/f"))).collect();
    assert!(new_folders.iter().any(|status| status == "503"), "{new_folders:?}");
    for (number, status) in new_folders.iter().enumerate().filter(|(_, status)| *status == "201") {
        assert_eq!(status, "201");
        kept.insert(format!("n{number}/f"), format!("n{number}/f"));
    }
    let double = site.grange(CLIENT, &["swap", "double", "c", "--server", &first]);
    assert!(!double.status.success(), "a server that is away would not know of the new slices");

    site.cut(2, false);
    until("the servers see each other again", async || all(&site)).await;
    let double = site.grange(CLIENT, &["swap", "double", "c", "--server", &first, "--wait"]);
    assert!(double.status.success(), "{}", String::from_utf8_lossy(&double.stderr));
    for (name, bytes) in &kept {
        for server in 0..SERVERS {
            assert_eq!(site.get(CLIENT, server, name), ("200".to_owned(), bytes.clone()), "{name}");
        }
    }
    let verified = site.grange(CLIENT, &["swap", "verify", "c", "--server", &first, "--json"]);
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((&verified["files"], &verified["problem_count"]), (&kept.len().into(), &0.into()));
    let mut copied = BTreeMap::new();
    for server in 0..SERVERS {
        for part in 0..2 {
            let slice = site.partition(server, part).join("c");
            let mut files = BTreeMap::new();
            if slice.exists() {
                read_tree(&slice, "", &mut files);
            }
            copied.extend(files);
        }
    }
    let kept: BTreeMap<_, _> = kept.into_iter().map(|(name, bytes)| (name, bytes.into_bytes())).collect();
    assert_eq!(copied, kept);
}
