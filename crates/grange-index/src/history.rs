//! Rows that are the same capture: those that are kept, and the one that is shown.

/// What a row does to others that are the same capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowRole<'a> {
    /// It takes away those that are older.
    Deletes,
    /// It is the file's own, or it was posted: all that is older, and all that yields, is gone for good.
    Stays,
    /// The lines of a job name it. They can be taken out, and then it must not be missing where others name it too.
    Yields(&'a str),
}

/// Rows of one capture in a segment. No block holds only a part of them, so there must be an end; of more index files than
/// this that name the same record the oldest are forgotten.
const ROWS_MAX: usize = 256;

/// Which rows of one capture are kept, given newest first. The first of them is shown, unless it deletes.
pub(crate) fn kept<'a>(rows: impl IntoIterator<Item = RowRole<'a>>) -> Vec<usize> {
    let (mut kept, mut jobs) = (Vec::new(), Vec::new());
    for (at, role) in rows.into_iter().enumerate() {
        match role {
            RowRole::Deletes => {
                kept.push(at);
                break;
            }
            RowRole::Stays => return vec![at],
            RowRole::Yields(job) if jobs.len() < ROWS_MAX && !jobs.contains(&job) => {
                jobs.push(job);
                kept.push(at);
            }
            RowRole::Yields(_) => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::RowRole::{Deletes, Stays, Yields};
    use super::*;

    #[test]
    fn lines_of_every_job_are_kept_until_something_stays_or_deletes() {
        let (a, b) = (Yields("a"), Yields("b"));
        for (rows, expected) in [
            (&[][..], &[][..]),
            (&[a], &[0]),
            (&[a, b], &[0, 1]),
            (&[a, a, b, a], &[0, 2]),
            (&[a, Stays, b], &[1]),
            (&[Stays, Stays], &[0]),
            (&[Stays, Deletes], &[0]),
            (&[Deletes, a, Stays], &[0]),
            // It still hides what is in older segments.
            (&[a, Deletes, b, Stays], &[0, 1]),
        ] {
            assert_eq!(kept(rows.iter().copied()), expected, "{rows:?}");
        }
    }

    #[test]
    fn rows_of_one_capture_have_an_end() {
        let jobs: Vec<String> = (0..=ROWS_MAX).map(|job| job.to_string()).collect();
        let kept = kept(jobs.iter().map(|job| Yields(job)).chain([Deletes]));
        assert_eq!(kept.len(), ROWS_MAX + 1);
        assert_eq!(kept.last(), Some(&(ROWS_MAX + 1)), "a deletion is never forgotten");
    }
}
