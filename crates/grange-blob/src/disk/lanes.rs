//! Audits: many files, one algorithm. Four files at a time go through one core's vector units (`sha512x4`), which is
//! faster than one after the other however fast one alone is.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use grange_model::Sha512;
use sha512x4::Stream;
use tokio::sync::oneshot;

use super::forget;

/// Four of these lie in a core's own cache beside each other.
const BUFFER_BYTES: usize = 64 << 10;

/// Files on their way through one thread.
const LANES: usize = 4;

/// From this size on a file is worth a lane; below, opening it costs more than summing it up.
pub(super) const LANE_BYTES_MIN: u64 = 1 << 20;

/// Files that wait to be summed up, and the threads that do it: as many as there are cores, none when nothing waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Task>,
    threads: usize,
}

#[derive(Debug)]
struct Task {
    file: File,
    answer: oneshot::Sender<io::Result<Sha512>>,
}

impl Lanes {
    /// Sums up what the file holds from where it stands to its end.
    pub(super) async fn sum(&self, file: File) -> io::Result<Sha512> {
        let (answer, summed) = oneshot::channel();
        self.enqueue(Task { file, answer })?;
        summed.await.unwrap_or_else(|_| Err(io::Error::other("the thread that read it has gone")))
    }

    fn enqueue(&self, task: Task) -> io::Result<()> {
        let mut queue = self.lock();
        queue.waiting.push_back(task);
        // A thread takes four; a second one is worth its core when the first has its lanes full.
        let wanted = queue.waiting.len().div_ceil(LANES).min(cores());
        if queue.threads < wanted {
            let lanes = self.clone();
            thread::Builder::new().name("checksums".to_owned()).spawn(move || lanes.work())?;
            queue.threads += 1;
        }
        Ok(())
    }

    fn work(&self) {
        let mut present = Present { lanes: self, counted: true };
        let mut streams: [Stream; LANES] = Default::default();
        let mut lanes: [Option<Lane>; LANES] = Default::default();
        loop {
            for (lane, stream) in lanes.iter_mut().zip(&mut streams) {
                if lane.is_none() {
                    *stream = Stream::default();
                    *lane = self.lock().waiting.pop_front().map(Lane::new);
                }
            }
            if lanes.iter().all(Option::is_none) && present.leave() {
                return;
            }
            for lane in lanes.iter_mut().flatten() {
                lane.fill();
            }
            advance(&mut streams, &lanes);
            for (lane, stream) in lanes.iter_mut().zip(&mut streams) {
                if let Some(done) = lane.take_if(|lane| lane.end.is_some()) {
                    done.tell(std::mem::take(stream));
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A thread that counts, until it leaves or panics.
struct Present<'a> {
    lanes: &'a Lanes,
    counted: bool,
}

impl Present<'_> {
    /// Goes when nothing waits. Decided and counted under the lock that new files come by: none is left to a thread
    /// that has gone.
    fn leave(&mut self) -> bool {
        let mut queue = self.lanes.lock();
        if queue.waiting.is_empty() {
            queue.threads -= 1;
            self.counted = false;
        }
        !self.counted
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        if self.counted {
            self.lanes.lock().threads -= 1;
        }
    }
}

/// One file under way.
#[derive(Debug)]
struct Lane {
    task: Task,
    buffer: Vec<u8>,
    filled: usize,
    /// How reading ended, once it has.
    end: Option<io::Result<()>>,
}

impl Lane {
    fn new(task: Task) -> Self {
        Self { task, buffer: vec![0; BUFFER_BYTES], filled: 0, end: None }
    }

    fn fill(&mut self) {
        self.filled = 0;
        if self.task.answer.is_closed() {
            // Nobody waits for it any more: a stop must not read on for hours.
            return self.end = Some(Err(io::ErrorKind::Interrupted.into()));
        }
        while self.filled < self.buffer.len() {
            match self.task.file.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return self.end = Some(Ok(())),
                Ok(bytes) => self.filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.end = Some(Err(error)),
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    fn tell(self, stream: Stream) {
        // An audit reads everything once; it must not push out of memory what people are reading.
        forget(&self.task.file);
        let sum = self.end.unwrap_or(Ok(())).map(|()| Sha512(stream.finish()));
        // Whoever asked may have gone.
        let _ = self.task.answer.send(sum);
    }
}

/// Sums up what each lane has read. An empty lane computes along with another's bytes and is then forgotten: with two
/// lanes busy that is still faster than one after the other.
fn advance(streams: &mut [Stream; LANES], lanes: &[Option<Lane>; LANES]) {
    let busy = || lanes.iter().flatten();
    match (busy().count(), busy().max_by_key(|lane| lane.filled)) {
        (0, _) | (_, None) => {}
        (1, Some(_)) => {
            for (stream, lane) in streams.iter_mut().zip(lanes) {
                stream.update(lane.as_ref().map_or(&[], Lane::bytes));
            }
        }
        (_, Some(longest)) => {
            let inputs = lanes.each_ref().map(|lane| lane.as_ref().unwrap_or(longest).bytes());
            sha512x4::update(streams, inputs);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use futures_util::future::join_all;
    use sha2::Digest;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn many_files_of_many_lengths_are_summed_up_right() {
        let folder = tempfile::tempdir().unwrap();
        let lanes = Lanes::default();
        let lengths =
            [0, 1, 127, 128, 65_535, 65_536, 65_537, 300_000, 1_000_003, 12, 262_144, 131_072, 99_999];
        let sums = lengths.iter().cycle().take(60).enumerate().map(|(number, length)| {
            let text: Vec<u8> = (0..*length).map(|index| (index * 7 + number) as u8).collect();
            let path = folder.path().join(number.to_string());
            File::create(&path).unwrap().write_all(&text).unwrap();
            let (lanes, file) = (lanes.clone(), File::open(&path).unwrap());
            async move { (lanes.sum(file).await.unwrap(), Sha512(sha2::Sha512::digest(&text).into())) }
        });
        for (found, right) in join_all(sums).await {
            assert_eq!(found, right);
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_does_not_disturb_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("good");
        let text = vec![7; 200_000];
        File::create(&path).unwrap().write_all(&text).unwrap();
        let lanes = Lanes::default();
        // A folder can be opened but not read.
        let (bad, good) = tokio::join!(
            lanes.sum(File::open(folder.path()).unwrap()),
            lanes.sum(File::open(&path).unwrap())
        );
        assert_eq!(bad.unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(good.unwrap(), Sha512(sha2::Sha512::digest(text).into()));
    }
}
