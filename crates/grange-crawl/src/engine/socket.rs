//! Orders over a socket in the crawl's folder: one line of JSON each way. Whoever may write into the folder may
//! give orders.

use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::handle::Handle;
use super::order::{Order, Request};

/// The longest order: a list of some thousand seeds.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Whoever connects must speak within this time; it keeps a forgotten connection from staying for ever.
const SPEAK_WITHIN: Duration = Duration::from_secs(30);

/// Listens until it is dropped.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

impl Socket {
    pub(super) fn open(path: &Path, handle: Handle) -> std::io::Result<Socket> {
        // Left by a process that was killed; the folder's lock says that no other one lives.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(Address::of(path)?.path())?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, handle.clone()));
            }
        });
        Ok(Socket { path: path.to_owned(), task })
    }
}

/// A socket's path in a form that the system takes as an address, however deep its folder lies.
struct Address {
    path: PathBuf,
    /// Keeps the path good.
    _folder: Option<std::fs::File>,
}

/// What Linux takes, with the zero at the end.
const ADDRESS_BYTES_MAX: usize = 108;

impl Address {
    fn of(path: &Path) -> std::io::Result<Address> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(Address { path: path.to_owned(), _folder: None });
        };
        if path.as_os_str().len() < ADDRESS_BYTES_MAX {
            return Ok(Address { path: path.to_owned(), _folder: None });
        }
        let folder = std::fs::File::open(folder)?;
        let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Address { path: short, _folder: Some(folder) })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn converse(stream: UnixStream, handle: Handle) {
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading.take(LINE_BYTES_MAX));
    let mut line = String::new();
    while let Ok(Ok(1..)) = tokio::time::timeout(SPEAK_WITHIN, reading.read_line(&mut line)).await {
        let answer = match serde_json::from_str::<Request>(&line) {
            Err(error) => json!({"error": format!("not an order: {error}")}),
            Ok(request) => match handle.order(&request.who, request.order).await {
                Ok(answer) => json!({"answer": answer}),
                Err(error) => json!({"error": error.to_string()}),
            },
        };
        if writing.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
            return;
        }
        reading.get_mut().set_limit(LINE_BYTES_MAX);
        line.clear();
    }
}

/// Why an order did not reach a crawl.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("no crawl is running in {0}; start it with --resume")]
    NotRunning(PathBuf, #[source] std::io::Error),
    #[error("the crawl in {0} did not answer")]
    Silent(PathBuf),
    #[error("{0}")]
    Refused(String),
}

/// Gives an order to the crawl that runs in a folder.
pub async fn ask(folder: &Path, who: &str, order: Order) -> Result<Value, AskError> {
    let silent = || AskError::Silent(folder.to_owned());
    let absent = |error| AskError::NotRunning(folder.to_owned(), error);
    let address = Address::of(&folder.join("state/control.sock")).map_err(absent)?;
    let mut stream = UnixStream::connect(address.path()).await.map_err(absent)?;
    let request = Request { who: who.to_owned(), order };
    let line = serde_json::to_string(&request).map_err(|_| silent())? + "\n";
    stream.write_all(line.as_bytes()).await.map_err(|_| silent())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await.map_err(|_| silent())?;
    let mut answer: Value = serde_json::from_str(&answer).map_err(|_| silent())?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(AskError::Refused(error.to_owned())),
        None => Ok(answer["answer"].take()),
    }
}
