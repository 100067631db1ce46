//! Tests that could not run: reported where they run, and listed at the end of the whole run.
//!
//! The output of a test that passes is captured, so a message alone is not seen. `scripts/with-services` names a file
//! in `GRANGE_TEST_SKIPPED`, every skip appends a line to it, and the script prints the list after the last test.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// The file that collects what was skipped, one line each: the test, a tab, the missing thing.
const LIST: &str = "GRANGE_TEST_SKIPPED";

/// Reports that the running test is skipped because `what` is missing; in CI that is a failure.
pub fn skipped(what: &str) {
    let text = format!("SKIPPED: {what} is not there (run through `scripts/with-services`, or `make test`)");
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{text}");
    eprintln!("\n*** {text} ***\n");
    note_skipped(what);
}

/// Adds the running test to the list of skipped ones. For material that CI does not have either.
pub fn note_skipped(what: &str) {
    let Some(list) = std::env::var_os(LIST) else { return };
    // The test harness names each test's thread after the test.
    let thread = std::thread::current();
    add(Path::new(&list), thread.name().unwrap_or("a test"), what)
        .expect("the list of skipped tests can be written");
}

/// One write of one line to a file opened for appending: lines of parallel test programs do not mix.
fn add(list: &Path, test: &str, what: &str) -> io::Result<()> {
    let line = format!("{test}\t{what}\n");
    OpenOptions::new().create(true).append(true).open(list)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn each_skip_adds_a_line_with_the_test_and_the_missing_thing() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("skipped");
        add(&list, "one::a_test", "PostgreSQL").unwrap();
        add(&list, "two::b_test", "curl").unwrap();
        assert_eq!(std::fs::read_to_string(&list).unwrap(), "one::a_test\tPostgreSQL\ntwo::b_test\tcurl\n");
    }

    /// The script with a command in place of the tests, and no service.
    fn with_services(command: &str) -> (Option<i32>, String) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/with-services");
        let output = Command::new(script)
            .args(["bash", "-c", command])
            .env("SERVICES", "none")
            .env_remove(LIST)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    fn a_run_ends_with_the_list_of_what_was_skipped_and_its_own_exit_code() {
        let skips = r#"printf 'a_test\tcurl\nb_test\tcurl\nc_test\tNATS\n' >>"$GRANGE_TEST_SKIPPED"; exit 7"#;
        let (code, said) = with_services(skips);
        assert_eq!(code, Some(7), "{said}");
        for line in ["3 tests were SKIPPED", "2 without curl", "1 without NATS", "a_test", "c_test"] {
            assert!(said.contains(line), "\"{line}\" is missing in:\n{said}");
        }
        let (code, said) = with_services("true");
        assert_eq!((code, said.contains("SKIPPED")), (Some(0), false), "{said}");
    }
}
