//! A Grange of the test's own: a temporary data folder, commands run on it, a node started and stopped on it.

mod node;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use grange_testkit::LONGEST;
pub(crate) use node::RunningNode;

/// A data folder and the commands on it.
#[derive(Debug)]
pub(crate) struct Grange {
    folder: tempfile::TempDir,
    /// `--set` values that every command gets.
    set: Vec<String>,
    /// The server that all crawls of this node are sent to.
    web: OnceLock<SocketAddr>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// Fails the test unless the command succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Fails the test unless the command ended with this code and its error names all of these.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "\"{word}\" is missing in: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Grange {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// With settings beyond the free ports that every test gets.
    pub(crate) fn with(set: &[&str]) -> Self {
        let free = [
            "web.listen=127.0.0.1:0",
            "node.listen=127.0.0.1:0",
            "replay.listen=127.0.0.1:0",
            "replay.proxy_listen=127.0.0.1:0",
        ];
        let set = free.iter().chain(set).map(|set| (*set).to_owned()).collect();
        Self { folder: tempfile::tempdir().unwrap(), set, web: OnceLock::new() }
    }

    /// The same data folder with other settings.
    pub(crate) fn set_again(self, set: &[&str]) -> Self {
        Self { folder: self.folder, web: self.web, ..Self::with(set) }
    }

    /// Sends all crawls of this node to one server on loopback, as an operator would. Before the node starts.
    pub(crate) fn crawls_at(&self, server: SocketAddr) {
        self.web.set(server).expect("it is set once");
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A path beside the data folder, for files of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = bare(self.folder.path());
        command.arg("--data").arg(self.data());
        for set in &self.set {
            command.args(["--set", set]);
        }
        if let Some(server) = self.web.get() {
            command.args(["--set", &format!("harvest.network.all_hosts_to={server}")]);
        }
        command.args(args);
        command
    }

    /// Runs a command on this data folder, with an archive in it.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.init(args);
        self.run_as_is(args)
    }

    /// Runs a command on this data folder, whatever is in it.
    pub(crate) fn run_as_is(&self, args: &[&str]) -> Ended {
        ended(self.command(args))
    }

    /// Runs a command whose standard output goes elsewhere.
    pub(crate) fn run_into(&self, stdout: impl Into<Stdio>, args: &[&str]) -> Ended {
        self.init(args);
        ended_into(stdout.into(), self.command(args))
    }

    /// Runs a command whose standard output nobody reads.
    pub(crate) fn run_unread(&self, args: &[&str]) -> Ended {
        self.run_into(unread(), args)
    }

    /// The same with variables in the environment.
    pub(crate) fn run_with(&self, environment: &[(&str, &str)], args: &[&str]) -> Ended {
        self.init(args);
        let mut command = self.command(args);
        command.envs(environment.iter().copied());
        ended(command)
    }

    /// The same as the last arguments of another program.
    pub(crate) fn run_under(&self, wrapper: &[&str], args: &[&str]) -> Ended {
        self.init(args);
        let inner = self.command(args);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(inner.get_program()).args(inner.get_args());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        ended(command)
    }

    /// Creates the archive before the first command that needs one. Settings that cannot be used show in that command.
    fn init(&self, args: &[&str]) {
        let creates = args.first().is_some_and(|command| ["up", "init", "demo"].contains(command));
        if !creates && !self.data().join("grange.lock").exists() {
            let _ = self.run_as_is(&["init"]);
        }
    }

    /// Starts a command on this data folder, for a test that ends it.
    pub(crate) fn spawn(&self, args: &[&str]) -> std::process::Child {
        self.init(args);
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Starts a node on this data folder and waits until it is ready.
    pub(crate) fn up(&self) -> RunningNode {
        RunningNode::start(self.command(&["up"]), &self.data())
    }

    /// Starts a node and waits until it answers, ready or not.
    pub(crate) fn up_waiting(&self) -> RunningNode {
        let mut node = self.up_spawned();
        let file = self.data().join("run/node.json");
        node.wait_for("the node to answer", |_| file.exists());
        node
    }

    /// Starts a node and waits for nothing.
    pub(crate) fn up_spawned(&self) -> RunningNode {
        RunningNode::spawn(self.command(&["up"]), &self.data())
    }
}

/// The program with nothing inherited that could change what it does.
pub(crate) fn bare(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grange"));
    command.current_dir(folder).env("USER", "tester").env_remove("SUDO_USER").env_remove("SUDO_UID");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GRANGE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the program without any common options.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Ended {
    let mut command = bare(folder);
    command.args(args);
    ended(command)
}

/// Runs the program without any common options, its standard output read by nobody.
pub(crate) fn run_unread(folder: &Path, args: &[&str]) -> Ended {
    let mut command = bare(folder);
    command.args(args);
    ended_into(unread(), command)
}

/// A pipe whose reader has gone.
fn unread() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

/// Runs a command to its end; one that does not end is killed and fails the test.
fn ended(command: Command) -> Ended {
    ended_into(Stdio::piped(), command)
}

fn ended_into(stdout: Stdio, mut command: Command) -> Ended {
    let child = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let (done, waiting) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let Ok(output) = waiting.recv_timeout(LONGEST) else {
        let _ = kill_process(pid, Signal::KILL);
        panic!("does not end: {command:?}");
    };
    output.unwrap().into()
}

/// The default template, also for a disk with little room. Its path.
pub(crate) fn template_for_small_disks(folder: &Path) -> String {
    let (_, text) = grange_crawl::template::shipped()[0];
    let path = folder.join("small-disk.toml");
    let more = "[engine]\nmin_free = \"0B\"\n[fetch]\nscratch_min_free = \"0B\"\n";
    std::fs::write(&path, format!("{text}\n{more}")).unwrap();
    path.into_os_string().into_string().unwrap()
}
