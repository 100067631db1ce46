//! Which processes hold a lock file, so that a message can name them. Known on Linux; elsewhere nobody is named.

use std::fmt;
use std::path::Path;

/// A process that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Its command line, where it can be read.
    pub command: Option<String>,
}

/// Longer command lines are cut: some name many files.
const COMMAND_CHARS_MAX: usize = 80;

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        match &self.command {
            Some(command) => write!(f, ", {command}"),
            None => Ok(()),
        }
    }
}

/// The holders in brackets, for the middle of a sentence; empty when nobody is known.
pub(crate) fn listed(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return String::new();
    }
    let listed: Vec<_> = holders.iter().map(ToString::to_string).collect();
    format!(" ({})", listed.join("; "))
}

/// Who holds the lock on this file.
pub(crate) fn of(file: &Path) -> Vec<Holder> {
    use std::os::unix::fs::MetadataExt;
    let Ok(inode) = std::fs::metadata(file).map(|about| about.ino()) else { return Vec::new() };
    let table = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut pids = pids(&table, inode);
    pids.sort_unstable();
    pids.dedup();
    // The number of an inode is unique on one file system only: others with the same number hold another file.
    pids.retain(|pid| has_open(*pid, file).unwrap_or(true));
    pids.into_iter().map(|pid| Holder { pid, command: command_of(pid) }).collect()
}

/// The processes with a lock of the kind that Grange takes, from the text of `/proc/locks`:
/// `5: FLOCK  ADVISORY  READ 12345 fe:00:131073 0 EOF`. Those that wait for one have `->` after the number.
fn pids(table: &str, inode: u64) -> Vec<u32> {
    let holder = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        if words.next()? != "FLOCK" {
            return None;
        }
        let (pid, place) = (words.nth(2)?.parse().ok()?, words.next()?);
        let held: u64 = place.rsplit(':').next()?.parse().ok()?;
        // Processes of other containers have no number here.
        (held == inode && pid > 0).then_some(pid)
    };
    table.lines().filter_map(holder).collect()
}

/// Whether a process has this file open; `None` when it does not let us look.
fn has_open(pid: u32, file: &Path) -> Option<bool> {
    let file = std::fs::canonicalize(file).ok()?;
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    Some(open.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|at| at == file)))
}

fn command_of(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let text = words.join(" ").trim().to_owned();
    let cut = text.char_indices().nth(COMMAND_CHARS_MAX).map(|(at, _)| format!("{}…", &text[..at]));
    Some(cut.unwrap_or(text)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_locks_is_read() {
        let table = "1: FLOCK  ADVISORY  READ  12 fe:00:131073 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 13 fe:00:131073 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 14 fe:00:131073 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 15 fe:00:7 0 EOF\n\
                     4: FLOCK  ADVISORY  READ  0 fe:00:131073 0 EOF\nnonsense\n";
        assert_eq!(pids(table, 131_073), [12]);
        assert_eq!(pids("", 1), [0_u32; 0]);
    }

    #[test]
    fn this_process_is_named_with_its_command() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(of(file.path()), []);
        file.as_file().lock_shared().unwrap();
        let holders = of(file.path());
        assert_eq!(holders.iter().map(|holder| holder.pid).collect::<Vec<_>>(), [std::process::id()]);
        let said = listed(&holders);
        assert!(said.starts_with(&format!(" (process {}, ", std::process::id())), "{said}");
        assert_eq!(listed(&[]), "");
    }
}
