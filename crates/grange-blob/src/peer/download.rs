//! Fetching a file from a peer. A wire that breaks in the middle is picked up where it broke; at the end the
//! checksum of the whole decides.

use std::io;

use bytes::Bytes;
use grange_base::{Retry, RetryPolicy};
use grange_model::{Algorithm, FileName};
use http::{Method, StatusCode, header};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;

use super::giving::announced;
use super::wire::{SIZE, escaped};
use super::{ANSWER_WITHIN, Answer, Peer};
use crate::blob::Opened;
use crate::digest::{By, Summing};
use crate::error::Error;

/// Pieces read ahead of the reader; each is what one read of the socket gave.
const UNDER_WAY: usize = 16;

/// How often a broken transfer is picked up again without a single byte having come in between.
const PICK_UP: RetryPolicy = RetryPolicy {
    first: std::time::Duration::from_millis(100),
    most: std::time::Duration::from_secs(10),
    attempts: 8,
};

pub(super) async fn get(peer: &Peer, name: &FileName) -> Result<Opened, Error> {
    let (size, answer) = request(peer, name, 0).await?;
    let (sender, receiver) = mpsc::channel(UNDER_WAY);
    let transfer = Transfer {
        peer: peer.clone(),
        name: name.clone(),
        size,
        summing: Summing::inline(By::Second, &[Algorithm::Sha512]),
        sender,
    };
    // Ends when the reader is dropped: nobody takes the pieces any more.
    tokio::spawn(transfer.run(answer));
    let pieces = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    Ok(Opened::new(size, StreamReader::new(Box::pin(pieces))))
}

/// Asks for the bytes from `offset` on.
async fn request(peer: &Peer, name: &FileName, offset: u64) -> Result<(u64, Answer), Error> {
    let path = format!("/files/{}", escaped(name.as_str()));
    let add = |request: reqwest::RequestBuilder| {
        // Without TE a server leaves the trailer out (RFC 9110, 6.5.1).
        let request = request.header(header::TE, "trailers");
        if offset > 0 { request.header(header::RANGE, format!("bytes={offset}-")) } else { request }
    };
    let answer = peer.send(Method::GET, &path, Some(name), ANSWER_WITHIN, add).await?;
    let wanted = if offset > 0 { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let size = answer.headers().get(SIZE).and_then(|size| size.to_str().ok()?.parse().ok());
    match size {
        Some(size) if answer.status() == wanted => Ok((size, answer)),
        _ => Err(peer.foreign("the size of the file, or the part asked for, is missing in the answer")),
    }
}

struct Transfer {
    peer: Peer,
    name: FileName,
    size: u64,
    summing: Summing,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

/// How one answer's body ended.
enum End {
    /// The trailer came and proves everything.
    Proven,
    /// The reader went, or was told what is wrong.
    Told,
    /// The wire broke; can be picked up.
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl Transfer {
    async fn run(mut self, first: Answer) {
        let mut next = Some(first);
        let mut attempt = 0;
        loop {
            let before = self.summing.bytes();
            let broken = match next.take() {
                Some(answer) => match self.receive(answer).await {
                    End::Proven | End::Told => return,
                    End::Broken(error) => error,
                },
                None => match request(&self.peer, &self.name, before).await {
                    Ok((size, answer)) if size == self.size => {
                        next = Some(answer);
                        continue;
                    }
                    Ok(_) => return self.tell("the file has changed on the other side").await,
                    Err(error) if error.retry() == Retry::No => return self.fail(error).await,
                    Err(error) => error.into(),
                },
            };
            attempt = if self.summing.bytes() > before { 1 } else { attempt + 1 };
            let Some(wait) = PICK_UP.wait(attempt, Retry::Soon) else {
                return self.fail(broken).await;
            };
            let (place, offset) = (&self.peer.place, self.summing.bytes());
            tracing::info!(place, name = %self.name, offset, error = %broken, "a transfer broke; picking it up");
            tokio::select! {
                () = self.peer.clock.sleep(wait) => {}
                () = self.sender.closed() => return,
            }
        }
    }

    async fn receive(&mut self, answer: Answer) -> End {
        let mut body = answer.into_body();
        loop {
            let frame = match tokio::time::timeout(ANSWER_WITHIN, body.frame()).await {
                Err(late) => return End::Broken(late.into()),
                Ok(None) => return End::Broken("the answer ended without a checksum".into()),
                Ok(Some(Err(error))) => return End::Broken(error.into()),
                Ok(Some(Ok(frame))) => frame,
            };
            match frame.into_data() {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    self.summing.update(&bytes);
                    if self.sender.send(Ok(bytes)).await.is_err() {
                        return End::Told;
                    }
                }
                Err(frame) => return self.judge(frame.trailers_ref().and_then(announced)).await,
            }
        }
    }

    async fn judge(&mut self, announced: Option<grange_model::Checksums>) -> End {
        let summing = std::mem::replace(&mut self.summing, Summing::inline(By::Second, &[]));
        let sums = summing.finish();
        match announced {
            Some(announced) if announced.same_as(&sums) => End::Proven,
            _ => {
                self.tell("the bytes that came are not those that were sent: their checksum is another")
                    .await;
                End::Told
            }
        }
    }

    async fn tell(&self, text: &str) {
        let text = format!("{text} ({} from {})", self.name, self.peer.place);
        let _ = self.sender.send(Err(io::Error::new(io::ErrorKind::InvalidData, text))).await;
    }

    async fn fail(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        let _ = self.sender.send(Err(io::Error::other(error))).await;
    }
}
