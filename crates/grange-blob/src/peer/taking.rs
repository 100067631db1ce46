//! Bytes on their way in. A file comes in parts, each a request of its own that says where it begins; the last one has
//! the checksum of the whole after it. What came of a part before its wire broke is kept, and the sender goes on from
//! there.
//!
//! Behind an upload runs one `put` of the store, which sees a plain stream. An upload that nobody goes on with is given
//! up, and leaves nothing.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use grange_model::{Checksums, FileName};
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::io::StreamReader;

use super::giving::announced;
use super::serve::{Refusal, bad};
use super::wire::Fault;
use crate::blob::{Blob, Source, Stored, Trailer};

/// How long an upload waits for its sender to come back, and its outcome for somebody to ask. Longer than senders try
/// to pick up a broken wire; what a dead sender left behind does not lie about for longer.
pub(super) const LINGER: Duration = Duration::from_secs(60);

/// Uploads under way at once: each has an open file. One that has ended holds no place.
const OPEN_MAX: usize = 256;

/// Outcomes remembered for senders whose answer got lost: about half a kilobyte each. A sender asks again within seconds;
/// one that finds its outcome forgotten sends the file again and learns that it is there.
const ENDED_MAX: usize = 4096;

/// Pieces between the socket and the disk.
const UNDER_WAY: usize = 16;

/// Bytes of a refused part that are still read: an answer that comes while the sender is still sending can get lost
/// with the connection. More than a part has.
const DRAIN_BYTES_MAX: u64 = 64 << 20;

/// How far an upload has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Bytes that need not be sent again.
    pub(super) received: u64,
}

/// The answer to a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Taken {
    Whole(Stored),
    Part(Progress),
}

/// What is said about an upload with each of its parts.
#[derive(Clone, Debug)]
pub(super) struct Begin {
    pub(super) id: String,
    pub(super) name: FileName,
    pub(super) size: Option<u64>,
    pub(super) expected: Option<Checksums>,
}

/// The uploads to one store.
#[derive(Debug)]
pub(super) struct Uploads {
    linger: Duration,
    known: Mutex<KnownUploads>,
}

/// The uploads under way, and the outcomes of those that ended recently.
#[derive(Debug, Default)]
struct KnownUploads {
    open: HashMap<String, Arc<Upload>>,
    ended: HashMap<String, Arc<Upload>>,
    /// The keys of `ended`, oldest first, with when each is forgotten.
    forget: VecDeque<(Instant, String)>,
}

impl KnownUploads {
    fn find(&self, id: &str) -> Option<&Arc<Upload>> {
        self.open.get(id).or_else(|| self.ended.get(id))
    }

    /// The upload gives up its place; its outcome is remembered for a while.
    fn end(&mut self, id: &str, now: Instant, linger: Duration) {
        if let Some(upload) = self.open.remove(id) {
            self.ended.insert(id.to_owned(), upload);
            self.forget.push_back((now + linger, id.to_owned()));
        }
        while let Some((_, id)) =
            self.forget.pop_front_if(|(due, _)| *due <= now || self.ended.len() > ENDED_MAX)
        {
            self.ended.remove(&id);
        }
    }
}

type Outcome = Option<Result<Stored, (StatusCode, Fault)>>;

#[derive(Debug)]
struct Upload {
    name: FileName,
    received: AtomicU64,
    trailer: Trailer,
    /// Where pieces go; nothing once the last one went. Held by the part that is being taken.
    pieces: tokio::sync::Mutex<Option<mpsc::Sender<io::Result<Bytes>>>>,
    /// Counts the parts. A newer one ends an older one whose wire broke without a word.
    turn: watch::Sender<u64>,
    outcome: watch::Receiver<Outcome>,
}

impl Uploads {
    pub(super) fn new(linger: Duration) -> Self {
        Self { linger, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, KnownUploads> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it came. Whoever asks has lost the wire of the part before, which ends here.
    pub(super) async fn progress(&self, id: &str) -> Option<Progress> {
        let upload = Arc::clone(self.known().find(id)?);
        upload.turn.send_modify(|turn| *turn += 1);
        let _no_part = upload.pieces.lock().await;
        Some(Progress { received: upload.received.load(Ordering::Acquire) })
    }

    /// The sender has no more: nothing of it is kept.
    pub(super) async fn give_up(&self, id: &str) {
        let Some(upload) = self.known().open.remove(id) else { return };
        upload.turn.send_modify(|turn| *turn += 1);
        let pieces = upload.pieces.lock().await.take();
        if let Some(pieces) = pieces {
            let _ = pieces.send(Err(io::Error::new(io::ErrorKind::Interrupted, "the sender gave up"))).await;
        }
    }

    /// The upload that a part belongs to; a part from the start begins one.
    fn upload(
        self: &Arc<Self>,
        blob: &Arc<dyn Blob>,
        begin: &Begin,
        offset: u64,
    ) -> Result<Arc<Upload>, Refusal> {
        let mut known = self.known();
        if let Some(upload) = known.find(&begin.id) {
            if upload.name != begin.name {
                return Err(bad("this upload is of another file"));
            }
            return Ok(Arc::clone(upload));
        }
        if offset > 0 {
            let fault =
                Fault::plain("blob-upload-gone", "nothing is known of this upload: send the file again");
            return Err(Refusal(StatusCode::GONE, Box::new(fault)));
        }
        if known.open.len() >= OPEN_MAX {
            let fault = Fault::plain("blob-busy", "too many files are being sent here: try again soon");
            return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, Box::new(fault)));
        }
        let (sender, receiver) = mpsc::channel(UNDER_WAY);
        let (told, outcome) = watch::channel(None);
        let trailer = Trailer::default();
        let upload = Arc::new(Upload {
            name: begin.name.clone(),
            received: AtomicU64::new(0),
            trailer: Arc::clone(&trailer),
            pieces: tokio::sync::Mutex::new(Some(sender)),
            turn: watch::Sender::new(0),
            outcome,
        });
        known.open.insert(begin.id.clone(), Arc::clone(&upload));
        let (blob, begin, uploads) = (Arc::clone(blob), begin.clone(), Arc::clone(self));
        tokio::spawn(async move {
            let reader = StreamReader::new(Box::pin(incoming(receiver, uploads.linger)));
            let mut source = Source::new(reader).with_trailer(trailer);
            if let Some(size) = begin.size {
                source = source.of_size(size);
            }
            let stored = blob.put(&begin.name, source, begin.expected.as_ref()).await;
            told.send_replace(Some(stored.map_err(|error| Fault::of(&error))));
            uploads.known().end(&begin.id, Instant::now(), uploads.linger);
        });
        Ok(upload)
    }

    /// Takes one part. Answers how far it came, or with the last one what became of the file.
    pub(super) async fn take<B>(
        self: &Arc<Self>,
        blob: &Arc<dyn Blob>,
        begin: &Begin,
        offset: u64,
        mut body: B,
    ) -> Result<Taken, Refusal>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let taken = match self.upload(blob, begin, offset) {
            Ok(upload) => upload.take(offset, &mut body).await,
            Err(refusal) => Err(refusal),
        };
        drain(&mut body).await;
        taken
    }
}

impl Upload {
    async fn take<B>(&self, offset: u64, body: &mut B) -> Result<Taken, Refusal>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.turn.send_modify(|turn| *turn += 1);
        let mut turn = self.turn.subscribe();
        let mut pieces = self.pieces.lock().await;
        let received = self.received.load(Ordering::Acquire);
        if offset != received {
            let text = format!("the part begins at {offset}, {received} bytes are here");
            return Err(Refusal(StatusCode::CONFLICT, Box::new(Fault::plain("blob-upload-offset", text))));
        }
        while let Some(sender) = &*pieces {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                _ = turn.changed() => return Err(bad("a newer part came")),
            };
            match frame {
                None => return Ok(Taken::Part(Progress { received: self.received.load(Ordering::Acquire) })),
                Some(Err(error)) => {
                    let error: Box<dyn std::error::Error + Send + Sync> = error.into();
                    return Err(bad(format!("the part broke off: {error}")));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        let count = bytes.len() as u64;
                        // The store stops listening when it knows its answer.
                        if count > 0 && sender.send(Ok(bytes)).await.is_err() {
                            break;
                        }
                        self.received.fetch_add(count, Ordering::AcqRel);
                    }
                    Err(frame) => {
                        if let Some(sums) = frame.trailers_ref().and_then(announced) {
                            let _ = self.trailer.set(sums);
                            *pieces = None;
                        }
                    }
                },
            }
        }
        drop(pieces);
        let mut outcome = self.outcome.clone();
        let gone = || {
            Refusal(StatusCode::INTERNAL_SERVER_ERROR, Box::new(Fault::plain("blob-io", "the upload ended")))
        };
        let outcome = outcome.wait_for(Option::is_some).await.map_err(|_| gone())?.clone();
        match outcome.ok_or_else(gone)? {
            Ok(stored) => Ok(Taken::Whole(stored)),
            Err((status, fault)) => Err(Refusal(status, Box::new(fault))),
        }
    }
}

/// The pieces of all parts as one stream. It ends well only after the sender's checksum.
fn incoming(
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    linger: Duration,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::unfold(pieces, move |mut pieces| async move {
        let piece = match tokio::time::timeout(linger, pieces.recv()).await {
            Ok(piece) => piece?,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the sender did not come back")),
        };
        Some((piece, pieces))
    })
}

/// Reads what is left of a refused part and throws it away.
async fn drain<B: Body<Data = Bytes> + Unpin>(body: &mut B) {
    let mut left = DRAIN_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let read = frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}
