//! A node in its own process.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use grange_testkit::LONGEST;

/// How much of a node's log is shown when its test fails.
const SHOWN_LINES: usize = 60;

/// A running `grange up`. Killed when dropped.
#[derive(Debug)]
pub(crate) struct RunningNode {
    child: Child,
    /// What it printed until it was up.
    pub greeting: String,
    data: PathBuf,
}

impl RunningNode {
    pub(super) fn start(mut command: Command, data: &Path) -> Self {
        // The node's log goes to a file that is shown when the start fails.
        let log = data.with_extension("log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(file).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, printed) = mpsc::channel();
        // Reads on its own, so that a node that never prints its last line fails the test instead of holding it.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let is_last = line.starts_with("Stop with");
                if sender.send(line).is_err() || is_last {
                    break;
                }
            }
        });
        let mut greeting = String::new();
        while !greeting.lines().last().is_some_and(|line| line.starts_with("Stop with")) {
            let Ok(line) = printed.recv_timeout(LONGEST) else {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the node did not start:\n{}", std::fs::read_to_string(&log).unwrap_or_default());
            };
            greeting.push_str(&line);
            greeting.push('\n');
        }
        Self { child, greeting, data: data.to_owned() }
    }

    /// For nodes that cannot become ready: does not wait for anything.
    pub(super) fn spawn(mut command: Command, data: &Path) -> Self {
        let file =
            std::fs::OpenOptions::new().create(true).append(true).open(data.with_extension("log")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Self { child, greeting: String::new(), data: data.to_owned() }
    }

    /// Waits for something that the node does, and fails when it ends instead.
    pub(crate) fn wait_for(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        grange_testkit::wait_for(what, || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the node ended: {ended:?}\n{}", self.log());
            done(self).then_some(())
        });
    }

    /// What `/readyz` of the node port answers: its status and body.
    pub(crate) async fn ready(&self) -> (u16, Value) {
        let url = format!("{}/readyz", self.local()["url"].as_str().unwrap());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = http.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the node has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.data.with_extension("log")).unwrap_or_default()
    }

    /// The URL after `admin` or `node` in the greeting.
    pub(crate) fn url(&self, name: &str) -> String {
        let line = self.greeting.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    /// What the node left for commands on its machine.
    pub(crate) fn local(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.data.join("run/node.json")).unwrap()).unwrap()
    }

    /// `kill -9`, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, then waits for the end; gives the exit code.
    pub(crate) fn stop(mut self) -> i32 {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(start.elapsed() < LONGEST, "the node does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            // Whoever reads of the failure has nothing else to go by: the folder is gone.
            let log = std::fs::read_to_string(self.data.with_extension("log")).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
            eprintln!("--- log of {} (last lines)\n{}", self.data.display(), last.join("\n"));
        }
    }
}
