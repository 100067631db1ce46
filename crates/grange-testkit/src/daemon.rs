//! Servers that nobody here wrote, each started for one test on a free loopback port: nginx and clamd.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use data_encoding::HEXLOWER;

use crate::{ReservedPort, skipped, wait_for};

/// How much of a content makes its signature.
const SIGNED_BYTES: usize = 1000;

/// A running server with a folder of its own. Both are gone when it is dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    port: ReservedPort,
    _folder: tempfile::TempDir,
}

impl Daemon {
    /// nginx, serving the files of a folder as they are. `None`, said loudly, where it is not installed.
    pub fn nginx(root: &Path) -> Option<Daemon> {
        let program = program("nginx")?;
        // No keep-alive goes on for ever, as on a real server: after seven requests the connection is closed.
        let conf = |folder: &Path, port: u16| {
            let (folder, root) = (folder.display(), root.display());
            format!(
                "daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/log;\n\
                 user root;\n\
                 events {{ worker_connections 256; }}\n\
                 http {{ types {{ text/html html; text/css css; image/png png; }} access_log off;\n\
                 client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n\
                 fastcgi_temp_path {folder}/fcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n\
                 keepalive_requests 7; absolute_redirect off;\n\
                 server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n"
            )
        };
        Some(Daemon::start(&program, conf))
    }

    /// clamd, which finds contents that begin as these do, and nothing else. `None`, said loudly, where it is not
    /// installed.
    pub fn clamd(known: &[(&str, &[u8])]) -> Option<Daemon> {
        let program = program("clamd")?;
        let mut signatures = String::new();
        for (name, content) in known {
            // Any kind of file, from its first byte. Digests are not asked of every kind of file.
            let begins = HEXLOWER.encode(&content[..content.len().min(SIGNED_BYTES)]);
            let _ = writeln!(signatures, "{name}:0:0:{begins}");
        }
        let conf = |folder: &Path, port: u16| {
            std::fs::write(folder.join("test.ndb"), &signatures).expect("the folder is ours");
            let folder = folder.display();
            format!(
                "Foreground yes\nTCPSocket {port}\nTCPAddr 127.0.0.1\nDatabaseDirectory {folder}\n\
                 TemporaryDirectory {folder}\nLogFile {folder}/log\n"
            )
        };
        Some(Daemon::start(&program, conf))
    }

    fn start(program: &Path, conf: impl Fn(&Path, u16) -> String) -> Daemon {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let port = ReservedPort::new();
        let file = folder.path().join("conf");
        std::fs::write(&file, conf(folder.path(), port.number())).expect("the folder is ours");
        let mut command = Command::new(program);
        command.arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("it starts");
        let mut daemon = Daemon { child, port, _folder: folder };
        wait_for(&format!("{} to open its port", program.display()), || {
            let ended = daemon.child.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "{} does not start: see what it prints by hand", program.display());
            TcpStream::connect(daemon.addr()).ok()
        });
        daemon
    }

    pub fn addr(&self) -> SocketAddr {
        self.port.address()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Workers of nginx end with their master only if it is asked kindly.
        let pid = self.child.id().to_string();
        let asked = Command::new("kill").arg(&pid).status().is_ok_and(|status| status.success());
        if !asked {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Where a program is; daemons often lie outside of an ordinary user's path.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = places.map(|place| place.join(name)).find(|program| program.is_file());
    if found.is_none() {
        skipped(&format!("the program {name}"));
    }
    found
}
