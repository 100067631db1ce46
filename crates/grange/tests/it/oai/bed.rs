//! Repositories of the tests: programs that others wrote, with data of ours.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A running repository. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Provider {
    child: Child,
    pub url: String,
    state: PathBuf,
}

/// So many records, so many on a page.
pub(crate) fn state(count: u64, page: u64) -> Value {
    json!({ "count": count, "page": page })
}

/// The identifiers of those that are not deleted from the beginning.
pub(crate) fn active(count: u64) -> BTreeSet<String> {
    (0..count).filter(|n| n % 10 != 9).map(|n| format!("oai:prov.example:coll{}:{n}", n % 3)).collect()
}

/// The Python with the foreign tools; `None`, loudly, where there is none.
pub(crate) fn python() -> Option<std::ffi::OsString> {
    let python = std::env::var_os("GRANGE_TEST_PYTHON");
    if python.is_none() {
        grange_testkit::skipped("the Python of the judges (GRANGE_TEST_PYTHON)");
    }
    python
}

impl Provider {
    /// Starts a repository of `oaipmh` or `oai_repo`.
    pub(crate) fn start(kind: &str, state: &Path, holds: Value) -> Option<Self> {
        std::fs::write(state, holds.to_string()).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oai/provider.py");
        let mut command = Command::new(python()?);
        command.arg(script).arg(kind).arg(state).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http"), "the repository did not start");
        Some(Self { child, url: url.trim().to_owned(), state: state.to_owned() })
    }

    /// From now on it holds this.
    pub(crate) fn change(&self, holds: &Value) {
        let aside = self.state.with_extension("new");
        std::fs::write(&aside, holds.to_string()).unwrap();
        std::fs::rename(aside, &self.state).unwrap();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
