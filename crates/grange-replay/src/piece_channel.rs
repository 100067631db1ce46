//! Answers that a thread writes while they are sent.
//!
//! The thread waits for the client to read. A client that takes nothing for [`CLIENT_IDLE_MAX`] is gone, or holds the thread on
//! purpose: threads are few, and everything that waits for disks needs one. An answer whose sender goes away before
//! [`PieceSender::finish`] ends in an error, for half of it must not look whole.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Time without reading after which a client is given up. A slow one takes a piece long before.
pub(crate) const CLIENT_IDLE_MAX: Duration = Duration::from_secs(60);
/// Pieces that wait for the client.
const PIECES_AHEAD: usize = 4;

/// Makes the two ends of an answer.
pub(crate) fn channel<E>(runtime: Handle) -> (PieceSender<E>, PieceReceiver<E>) {
    let (send, receive) = mpsc::channel(PIECES_AHEAD);
    let whole = Arc::new(AtomicBool::new(false));
    let sender = PieceSender { send, runtime, whole: Arc::clone(&whole), gone: false };
    (sender, PieceReceiver { receive, whole, over: false, error: None })
}

/// The end of a thread that may wait.
#[derive(Debug)]
pub(crate) struct PieceSender<E> {
    send: mpsc::Sender<Result<Bytes, E>>,
    runtime: Handle,
    whole: Arc<AtomicBool>,
    gone: bool,
}

impl<E> PieceSender<E> {
    /// Sends a piece, or why there are no more. False when nobody takes it any more.
    pub(crate) fn send(&mut self, piece: Result<Bytes, E>) -> bool {
        if self.is_gone() {
            return false;
        }
        let sent = match self.send.try_send(piece) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
            Err(mpsc::error::TrySendError::Full(piece)) => {
                let (runtime, send) = (&self.runtime, &self.send);
                // A timer must be made on its runtime.
                runtime.block_on(async {
                    let sending = tokio::time::timeout(CLIENT_IDLE_MAX, send.send(piece));
                    matches!(sending.await, Ok(Ok(())))
                })
            }
        };
        self.gone = !sent;
        sent
    }

    /// Whether the client left or was given up.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone || self.send.is_closed()
    }

    /// Ends the answer: everything was sent.
    pub(crate) fn finish(self) {
        if !self.gone {
            self.whole.store(true, Ordering::Release);
        }
    }
}

/// The end of the client.
#[derive(Debug)]
pub(crate) struct PieceReceiver<E> {
    receive: mpsc::Receiver<Result<Bytes, E>>,
    whole: Arc<AtomicBool>,
    over: bool,
    /// What ends the answer, held back once.
    error: Option<E>,
}

/// An error that says that the other end went away.
pub(crate) trait BrokenOff {
    fn broken_off() -> Self;
}

impl BrokenOff for io::Error {
    fn broken_off() -> Self {
        Self::new(io::ErrorKind::UnexpectedEof, "the answer broke off")
    }
}

impl<E: BrokenOff> PieceReceiver<E> {
    /// The next piece; `None` behind the last.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, E>>> {
        if self.over {
            return Poll::Ready(self.error.take().map(Err));
        }
        let next = std::task::ready!(self.receive.poll_recv(context));
        self.over = !matches!(next, Some(Ok(_)));
        let broken = next.is_none() && !self.whole.load(Ordering::Acquire);
        self.error = match next {
            Some(Err(error)) => Some(error),
            None if broken => Some(E::broken_off()),
            next => return Poll::Ready(next),
        };
        // An error throws away what the server has gathered and not yet sent, the head of the answer too. While it waits, it
        // sends that.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<E: BrokenOff + Unpin> http_body::Body for PieceReceiver<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        self.poll_next(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// Gathers what is written and sends it in pieces.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    sender: PieceSender<io::Error>,
    buffer: Vec<u8>,
    piece_bytes: usize,
    /// Bytes written in all.
    written: u64,
}

impl BodyWriter {
    /// Makes a body and its writer, which sends pieces of so many bytes, at least one.
    pub(crate) fn new(piece_bytes: usize, runtime: Handle) -> (Self, axum::body::Body) {
        let (sender, receiver) = channel(runtime);
        let buffer = Vec::with_capacity(piece_bytes);
        (Self { sender, buffer, piece_bytes, written: 0 }, axum::body::Body::new(receiver))
    }

    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// Sends the rest. Behind an error in writing, that error is what the client sees.
    pub(crate) fn finish(mut self, done: io::Result<()>) -> io::Result<()> {
        match done.and_then(|()| self.send_piece()) {
            Ok(()) => {
                self.sender.finish();
                Ok(())
            }
            Err(error) => {
                let (kind, text) = (error.kind(), error.to_string());
                self.sender.send(Err(error));
                Err(io::Error::new(kind, text))
            }
        }
    }

    fn send_piece(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return self.check_client();
        }
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(self.piece_bytes));
        if self.sender.send(Ok(piece.into())) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    fn check_client(&self) -> io::Result<()> {
        if self.sender.is_gone() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

impl io::Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A long one in several pieces, so that what waits for the client stays small.
        let taken = bytes.len().min(self.piece_bytes - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        self.written += taken as u64;
        if self.buffer.len() == self.piece_bytes {
            self.send_piece()?;
        }
        Ok(taken)
    }

    /// Sends nothing. It fails when the client is gone: work that passes over much without writing asks so.
    fn flush(&mut self) -> io::Result<()> {
        self.check_client()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use http_body_util::BodyExt as _;
    use tokio::task::spawn_blocking;

    use super::*;

    #[tokio::test]
    async fn only_an_answer_that_was_finished_looks_whole() {
        type Write = fn(BodyWriter);
        let cases: [(&str, Write, Option<&str>); 5] = [
            ("finished", |out| out.finish(Ok(())).unwrap(), Some("12345678")),
            ("failed", |out| assert!(out.finish(Err(io::ErrorKind::Other.into())).is_err()), None),
            ("went away", drop, None),
            (
                "finished with nothing more",
                |mut out| {
                    out.write_all(b"9876").unwrap();
                    out.finish(Ok(())).unwrap();
                },
                Some("123456789876"),
            ),
            (
                "panicked",
                |out| {
                    let _out = out;
                    panic!("as in the test");
                },
                None,
            ),
        ];
        for (what, end, expected) in cases {
            let (mut out, body) = BodyWriter::new(4, Handle::current());
            let written = spawn_blocking(move || {
                out.write_all(b"1234").unwrap();
                out.write_all(b"5678").unwrap();
                end(out);
            });
            let body = body.collect().await.ok().map(http_body_util::Collected::to_bytes);
            assert_eq!(body.as_deref(), expected.map(str::as_bytes), "{what}");
            drop(written.await);
        }
    }

    /// No time of this machine passes: the clock stands unless it is moved.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_given_up_and_sees_no_whole_answer() {
        let (mut out, body) = BodyWriter::new(4, Handle::current());
        let writing = spawn_blocking(move || {
            let done = (0..100).try_for_each(|_| out.write_all(b"1234"));
            let given_up = done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
            (given_up, out.finish(done).is_err())
        });
        while !writing.is_finished() {
            tokio::time::advance(CLIENT_IDLE_MAX).await;
        }
        assert_eq!(writing.await.unwrap(), (true, true));
        assert!(body.collect().await.is_err());
    }

    #[tokio::test]
    async fn a_client_that_left_is_noticed_before_anything_is_sent() {
        let (mut out, body) = BodyWriter::new(1 << 20, Handle::current());
        out.write_all(b"1").unwrap();
        out.flush().unwrap();
        drop(body);
        assert_eq!(out.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
