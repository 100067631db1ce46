//! Giving synced bytes their names, many at a time.
//!
//! A name counts once the folder that holds it is synced. On ext4 with a journal that means to commit the journal, and a
//! commit makes everything durable that was done before it, in whatever folder: so uploads that wait for a commit at the
//! same time share the next one. Whoever comes first leads: it links the names of all who wait, syncs the folder of the
//! last, and tells everybody. On other file systems each upload syncs its own folder.
//!
//! A name whose folder could not be synced goes again: a second sync could succeed without writing it. The caller holds the
//! name meanwhile, so that no other upload relies on it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use crate::error::Error;
use crate::store::Spot;
use crate::tree::{Published, Staged};

/// Synced bytes and the name they are to have.
#[derive(Debug)]
pub(crate) struct Wish {
    pub staged: Arc<Staged>,
    pub spot: Spot,
    pub size: u64,
}

impl Wish {
    /// The one atomic step, by the table that still holds.
    fn link(&self) -> Result<Published, Error> {
        let Spot { known, tree, path, .. } = &self.spot;
        let _epoch = known.gate.for_names(known.record.standing())?;
        let publish = || tree.publish(&self.staged, path, self.size);
        let published = if self.spot.moved {
            let given = known.gate.unless_removed(path.point(), publish);
            given.ok_or_else(|| Error::refused(format!("\"{path}\" was removed while it moved")))?
        } else {
            publish()
        };
        published.map_err(Error::io("name", path.as_str()))
    }

    fn sync(&self) -> io::Result<()> {
        self.spot.tree.sync_new(&self.spot.path)
    }

    /// Takes the name away again.
    fn withdraw(&self, failure: &io::Error) {
        self.spot.tree.withdraw(&self.spot.path, self.size, failure);
    }

    fn unsynced(&self, error: &io::Error) -> Error {
        let error = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
        Error::io("sync the folder of", self.spot.path.as_str())(error)
    }
}

type Answer = Result<Published, Error>;

#[derive(Debug)]
struct Waiting {
    wish: Wish,
    answer: Mutex<Option<Answer>>,
    /// Parked until it has an answer, or is to lead.
    thread: Thread,
}

impl Waiting {
    fn answer(&self) -> MutexGuard<'_, Option<Answer>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those who wait for the next commit of one partition.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    waiting: Vec<Arc<Waiting>>,
    /// Somebody is linking and syncing.
    led: bool,
}

/// Gives a name that the caller holds: durable after [`Published::New`], gone again after an error. Blocks.
pub(crate) fn give(wish: Wish) -> Answer {
    let partition = Arc::clone(&wish.spot.tree.partition);
    if partition.commits_together() { partition.naming.give(wish) } else { alone(&wish) }
}

fn alone(wish: &Wish) -> Answer {
    let published = wish.link()?;
    if published == Published::New
        && let Err(error) = wish.sync()
    {
        wish.withdraw(&error);
        return Err(wish.unsynced(&error));
    }
    Ok(published)
}

impl Naming {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, wish: Wish) -> Answer {
        let own = Arc::new(Waiting { wish, answer: Mutex::new(None), thread: thread::current() });
        let mut line = self.line();
        line.waiting.push(Arc::clone(&own));
        loop {
            if let Some(answer) = own.answer().take() {
                return answer;
            }
            if line.led {
                drop(line);
                thread::park();
                line = self.line();
                continue;
            }
            line.led = true;
            let group = Group { naming: self, wishes: std::mem::take(&mut line.waiting) };
            drop(line);
            lead(&group.wishes);
            drop(group);
            line = self.line();
        }
    }
}

/// Held while leading; whatever happens, nobody is left waiting.
struct Group<'n> {
    naming: &'n Naming,
    wishes: Vec<Arc<Waiting>>,
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            for waiting in &self.wishes {
                waiting.answer().get_or_insert_with(|| Err(Error::away("giving names failed")));
            }
        }
        let mut line = self.naming.line();
        line.led = false;
        if let Some(next) = line.waiting.first() {
            next.thread.unpark();
        }
        drop(line);
        for waiting in &self.wishes {
            waiting.thread.unpark();
        }
    }
}

fn lead(wishes: &[Arc<Waiting>]) {
    let links: Vec<_> = wishes.iter().map(|waiting| waiting.wish.link()).collect();
    // In the order of the links: the commit of the last is, or comes after, that of all before.
    let last = wishes.iter().zip(&links).rfind(|(_, link)| matches!(link, Ok(Published::New)));
    let synced = last.map_or(Ok(()), |(waiting, _)| waiting.wish.sync());
    for (waiting, link) in wishes.iter().zip(links) {
        let answer = match (&synced, link) {
            (Err(error), Ok(Published::New)) => {
                waiting.wish.withdraw(error);
                Err(waiting.wish.unsynced(error))
            }
            (_, link) => link,
        };
        *waiting.answer() = Some(answer);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::num::NonZeroU32;

    use super::*;
    use crate::collection::{Collection, Layout, Slice};
    use crate::digest::Sum;
    use crate::name::{LocalPath, Namespace};
    use crate::partition::Partition;
    use crate::tree::{Found, Tree};
    use crate::view::{Home, Known};

    fn collection(folder: &tempfile::TempDir) -> (Arc<Tree>, Arc<Known>) {
        let uuid = Partition::init(folder.path(), "").unwrap();
        let partition = Arc::new(Partition::open(folder.path()).unwrap());
        let namespace = Namespace::new("c").unwrap();
        let tree = Arc::new(Tree::open(Arc::clone(&partition), namespace.clone()).unwrap());
        let record = Collection {
            uuid,
            namespace,
            epoch: 1,
            layout: Layout::Stable { slices: NonZeroU32::MIN },
            public: true,
            slices: vec![Slice { uuid, partition: uuid }],
        };
        let known = Arc::new(Known::for_tests(record, vec![Home::Here(Arc::clone(&tree))]));
        (tree, known)
    }

    fn wish(tree: &Arc<Tree>, known: &Arc<Known>, path: &str, bytes: &[u8]) -> Wish {
        let mut staged = tree.stage().unwrap();
        staged.file.write_all(bytes).unwrap();
        staged.seal(&Sum::of(bytes), None).unwrap();
        let (known, tree, path) = (Arc::clone(known), Arc::clone(tree), LocalPath::new(path).unwrap());
        let spot = Spot { known, tree, path, unmoved: None, modified: None, moved: false, stored: None };
        Wish { staged: Arc::new(staged), spot, size: bytes.len() as u64 }
    }

    #[test]
    fn names_that_were_not_synced_together_are_all_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, known) = collection(&folder);
        let lead_all = |names: &[&str], failures: usize| {
            let waiting = names.iter().map(|name| Waiting {
                wish: wish(&tree, &known, name, name.as_bytes()),
                answer: Mutex::new(None),
                thread: thread::current(),
            });
            let waiting: Vec<_> = waiting.map(Arc::new).collect();
            tree.partition.sync_faults.plan(0, failures);
            lead(&waiting);
            let answers = waiting.iter().map(|waiting| waiting.answer().take().unwrap());
            answers.map(Result::ok).collect::<Vec<_>>()
        };
        assert_eq!(lead_all(&["kept"], 0), [Some(Published::New)]);
        let found = tree.find(&LocalPath::new("kept").unwrap()).unwrap();
        assert_eq!(lead_all(&["a", "kept", "b"], 1), [None, Some(Published::Taken(found)), None]);
        assert_eq!(
            tree.list(None).unwrap().unwrap().len(),
            1,
            "only the name that was synced before is left"
        );
        assert_eq!(tree.counts().0, 1);
        assert_eq!(lead_all(&["a", "b"], 0), [Some(Published::New), Some(Published::New)]);
        assert_eq!(tree.counts().0, 3);
    }

    #[test]
    fn of_many_at_the_same_time_each_gets_its_own_answer() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, known) = collection(&folder);
        let partition = &tree.partition;
        for part in 0..4 {
            tree.make_directory(&LocalPath::new(format!("d{part}")).unwrap()).unwrap();
        }
        let wish = |number: usize| {
            wish(&tree, &known, &format!("d{}/f{number}", number % 4), number.to_string().as_bytes())
        };
        // Every name is wanted by two.
        let wishes: Vec<_> = (0..64).map(|number| wish(number / 2)).collect();
        let naming = &partition.naming;
        let answers: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> =
                wishes.into_iter().map(|wish| scope.spawn(move || naming.give(wish))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
        });
        let new = answers.iter().filter(|answer| **answer == Published::New).count();
        assert_eq!(new, 32);
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer, Published::New | Published::Taken(Found::File { .. })))
        );
        assert_eq!(tree.counts().0, 32);
        // By a table that no longer holds nobody gets a name.
        *known.gate.write() = 2;
        assert!(partition.naming.give(wish(1000)).is_err());
        assert_eq!(tree.counts().0, 32);
    }
}
