//! Questions to the index: which keys, which times, in which order, and what is left out of the answer.

mod collapse;
mod field;
mod filter;

pub use collapse::{Collapse, Collapsed};
pub use field::Field;
pub use filter::{BadFilter, Filter};

use crate::error::{Error, Result};
use crate::segment::Position;
use crate::snapshot::{Ascending, Descending, Snapshot};
use crate::stamp::Stamp;
use crate::view::CaptureView;

/// The keys that a question covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// This key.
    Exact(String),
    /// Keys from the first on that are below the second; `None` is to the end of the index.
    Range(String, Option<String>),
}

/// In which order captures are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    Ascending,
    Descending,
    /// By distance from a time, for one key. Several keys are told in ascending order.
    Closest(Stamp),
}

/// A question.
#[derive(Debug, Clone)]
pub struct Query {
    pub keys: Keys,
    /// The first time that counts.
    pub from: Stamp,
    /// The last time that counts.
    pub to: Stamp,
    pub order: Order,
    /// Go on behind this place, in the order asked for.
    pub after: Option<Position>,
    pub filters: Vec<Filter>,
    /// Rows that may be read, told or not; beyond them the answer is [`Error::Unfinished`]. `None` is as many as it takes.
    pub rows_most: Option<u64>,
}

impl Query {
    pub fn new(keys: Keys) -> Self {
        Self {
            keys,
            from: Stamp::MIN,
            to: Stamp::MAX,
            order: Order::Ascending,
            after: None,
            filters: Vec::new(),
            rows_most: None,
        }
    }
}

/// What a sink says to each capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    More,
    Stop,
}

/// What was noticed while answering.
#[derive(Debug, Default)]
pub struct Answered {
    /// Blocks that could not be read; the answer is without them.
    pub damaged: Vec<Error>,
    pub damaged_count: u64,
}

/// Errors kept; one is enough to act on.
const DAMAGED_MAX: usize = 10;

impl Query {
    /// Hands every capture that answers to `sink`, until it has enough. Damage is noted and passed over.
    pub fn run(
        &self,
        snapshot: &Snapshot,
        mut sink: impl FnMut(&CaptureView<'_>) -> Result<Next>,
    ) -> Result<Answered> {
        let mut answered = Answered::default();
        let mut read = 0;
        let mut give = |view: &CaptureView<'_>| -> Result<Next> {
            read += 1;
            if let Some(most) = self.rows_most.filter(|most| read > *most) {
                return Err(Error::Unfinished { most });
            }
            let in_time = self.from <= view.time() && view.time() <= self.to;
            if in_time && !view.is_description() && self.filters.iter().all(|filter| filter.admits(view)) {
                sink(view)
            } else {
                Ok(Next::More)
            }
        };
        // Of one key, nothing in time comes behind what is not.
        let is_behind = |out_of_time: bool| out_of_time && matches!(self.keys, Keys::Exact(_));
        match (self.order, &self.keys) {
            (Order::Ascending, _) | (Order::Closest(_), Keys::Range(..)) => {
                let mut rows = self.ascending(snapshot)?;
                while answered.past_damage(|| rows.advance())? {
                    if let Some(view) = rows.current()
                        && (is_behind(view.time() > self.to) || give(&view)? == Next::Stop)
                    {
                        break;
                    }
                }
            }
            (Order::Descending, _) => {
                let mut rows = self.descending(snapshot);
                while answered.past_damage(|| rows.advance())? {
                    if let Some(view) = rows.current()
                        && (is_behind(view.time() < self.from) || give(&view)? == Next::Stop)
                    {
                        break;
                    }
                }
            }
            (Order::Closest(time), Keys::Exact(surt)) => {
                let mut rows = snapshot.by_distance(surt, time)?;
                let distance = |other: Stamp| (other.seconds() - time.seconds()).abs();
                let mut after = self.after.as_ref();
                while answered.past_damage(|| rows.advance())? {
                    let Some(view) = rows.current() else { continue };
                    // The place reached may be gone; what is farther away is behind it.
                    if let Some(reached) = after {
                        let (here, there) = (distance(view.time()), distance(reached.time));
                        if here <= there {
                            if view.position() == *reached {
                                after = None;
                            }
                            continue;
                        }
                        after = None;
                    }
                    if give(&view)? == Next::Stop {
                        break;
                    }
                }
            }
        }
        Ok(answered)
    }

    fn ascending(&self, snapshot: &Snapshot) -> Result<Ascending> {
        match (&self.keys, &self.after) {
            (Keys::Exact(surt), None) => snapshot.captures(surt, self.from),
            (keys, after) => {
                let (start, end) = bounds(keys);
                let mut position = Position::before(start);
                if let Some(after) = after {
                    position = position.max(behind(after));
                }
                Ok(snapshot.ascending(position, end))
            }
        }
    }

    fn descending(&self, snapshot: &Snapshot) -> Descending {
        let (start, end) = bounds(&self.keys);
        let mut position = match (&self.keys, end) {
            // Captures of one key after the last time need not be read.
            (Keys::Exact(surt), _) if self.to < Stamp::MAX => {
                Position { time: Stamp::from_code(self.to.code() + 1), ..Position::before(surt.as_bytes()) }
            }
            (_, Some(end)) => Position::before(end),
            (_, None) => Position::before([0xff]),
        };
        if let Some(after) = &self.after {
            position = position.min(after.clone());
        }
        snapshot.descending(start, position)
    }
}

impl Answered {
    /// Goes on behind damage, noting it. Other errors end the answer.
    fn past_damage(&mut self, mut advance: impl FnMut() -> Result<bool>) -> Result<bool> {
        loop {
            match advance() {
                Err(error @ Error::Damaged { .. }) => {
                    self.damaged_count += 1;
                    if self.damaged.len() < DAMAGED_MAX {
                        self.damaged.push(error);
                    }
                }
                other => return other,
            }
        }
    }
}

fn bounds(keys: &Keys) -> (Vec<u8>, Option<Vec<u8>>) {
    match keys {
        Keys::Exact(surt) => {
            // Above every row of the key (a NUL follows it there) and not above any larger key.
            let end = [surt.as_bytes(), &[1]].concat();
            (surt.clone().into_bytes(), Some(end))
        }
        Keys::Range(start, end) => (start.clone().into_bytes(), end.clone().map(String::into_bytes)),
    }
}

/// The first place after a row.
fn behind(row: &Position) -> Position {
    Position { offset: row.offset.saturating_add(1), ..row.clone() }
}
