//! `grange testkit serve-web`

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness;

#[test]
fn the_synthetic_web_serves_what_it_expects_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let size = ["--hosts", "2", "--pages", "7", "--seed", "3"];
    let expect: Vec<&str> =
        ["testkit", "serve-web"].into_iter().chain(size).chain(["--expect", "truth"]).collect();
    harness::run(folder.path(), &expect).ok();
    let truth = std::fs::read_to_string(folder.path().join("truth")).unwrap();
    let page = truth
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["url"] == "http://h0001.test/p/6.html")
        .expect("the last article is expected");

    let mut child = harness::bare(folder.path())
        .args(["testkit", "serve-web", "--listen", "127.0.0.1:0"])
        .args(size)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut greeting = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut greeting).unwrap();
    let address = greeting.trim_end().trim_end_matches('.').rsplit(' ').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /p/6.html HTTP/1.1\r\nHost: h0001.test\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert_eq!(page["length"], answer.len() - head);

    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn rules_without_a_file_to_write_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    harness::run(folder.path(), &["testkit", "serve-web", "--max-hops", "1"]).fails(2, &["--expect"]);
}
