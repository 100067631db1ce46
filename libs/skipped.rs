//! Included by the tests of the libraries, which know nothing of Grange: adds the running test to the list of skipped
//! tests that `scripts/with-services` prints at the end of a run.

use std::io::Write as _;

pub(super) fn note_skipped(what: &str) {
    eprintln!("\n*** SKIPPED: {what} is not there ***\n");
    let Some(list) = std::env::var_os("GRANGE_TEST_SKIPPED") else { return };
    // The test harness names each test's thread after the test.
    let thread = std::thread::current();
    let line = format!("{}\t{what}\n", thread.name().unwrap_or("a test"));
    let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).expect("the list opens");
    list.write_all(line.as_bytes()).expect("the list of skipped tests can be written");
}
