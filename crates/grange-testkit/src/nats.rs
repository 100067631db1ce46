//! NATS for tests: the shared server, or one of one's own that can be killed and started again.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::skipped;

/// The server that `scripts/with-services` started, or `None` (said loudly).
pub fn shared_url() -> Option<String> {
    let url = std::env::var("GRANGE_TEST_NATS_URL").ok();
    if url.is_none() {
        skipped("NATS");
    }
    url
}

/// A NATS server of the test's own, for tests that break it. Killed when dropped.
#[derive(Debug)]
pub struct NatsServer {
    port: u16,
    options: Vec<String>,
    child: Option<Child>,
}

impl NatsServer {
    /// Starts `nats-server` on a free loopback port, or `None` (said loudly) when it is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with further options of the program, such as `--auth`.
    pub fn start_with(options: &[&str]) -> Option<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr()).ok()?.port();
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let mut server = Self { port, options, child: None };
        if server.restart() {
            Some(server)
        } else {
            skipped("the program nats-server");
            None
        }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills the server as a power cut would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again on the same port; false when the program is missing.
    pub fn restart(&mut self) -> bool {
        self.kill();
        let spawned = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-p", &self.port.to_string()])
            .args(&self.options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = spawned else { return false };
        self.child = Some(child);
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(30), "nats-server did not open its port");
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
