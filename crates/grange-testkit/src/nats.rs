//! NATS for tests: the shared server, or one of one's own that can be killed and started again.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::{ReservedPort, skipped, wait_for};

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
    port: ReservedPort,
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
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let mut server = Self { port: ReservedPort::new(), options, child: None };
        if server.restart() {
            Some(server)
        } else {
            skipped("the program nats-server");
            None
        }
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.port.address())
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
            .args(["-a", "127.0.0.1", "-p", &self.port.number().to_string()])
            .args(&self.options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = spawned else { return false };
        let child = self.child.insert(child);
        let address = self.port.address();
        wait_for("nats-server to open its port", || {
            let ended = child.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "nats-server ended: {ended:?}");
            TcpStream::connect(address).ok()
        });
        true
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
