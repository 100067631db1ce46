//! What tests of whole harvests share: a web, a harvest of it, and what must lie in the archive afterwards.

use std::collections::BTreeMap;
use std::path::Path;

use grange_testkit::wait_for;
use grange_testkit::web::{Expected, Options, Profile, Rules, Web, WebServer};
use serde_json::Value;
use warc::{Check, Reader, RecordType};

use crate::archive_bed::lying_in;
use crate::harness::Grange;

/// Short leases and pauses, so that tests wait for work and not for clocks; and little room is enough.
pub(crate) const QUICK: [&str; 8] = [
    "harvest.min_space_left=1MB",
    "harvest.lease=2s",
    "harvest.progress_every=200ms",
    "harvest.look_every=200ms",
    "harvest.folders_every=1s",
    "harvest.chunk_size=60KB",
    "schedule.planning_lease=2s",
    // On a slow machine every start comes after the end of the lease.
    "schedule.takeovers_max=100",
];

/// A web that is served, and what a right crawl finds in it.
pub(crate) struct Site {
    pub(crate) web: Web,
    pub(crate) server: WebServer,
    pub(crate) expected: BTreeMap<String, Expected>,
}

impl Site {
    pub(crate) async fn serve(hosts: usize, pages: usize, profile: Profile) -> Site {
        let suffix = "dk".to_owned();
        let web = Web::new(Options { hosts, pages, profile, suffix, seed: 5, ..Options::default() });
        let server = web.serve("127.0.0.1:0").await.unwrap();
        let expected = web.expected(&Rules::default());
        Site { web, server, expected }
    }

    /// Defines a harvest of the whole web and puts it into service: its first run is due at once.
    pub(crate) fn harvest(&self, grange: &Grange, name: &str, delay: &str) {
        self.define(grange, name, delay);
        grange.run(&["harvests", "activate", name]).ok();
    }

    /// Defines a harvest of the whole web.
    pub(crate) fn define(&self, grange: &Grange, name: &str, delay: &str) {
        let template = grange.file("template.toml", &Self::template(delay));
        grange.run(&["templates", "put", "web", template.to_str().unwrap()]).ok();
        grange.run(&["harvests", "create", "selective", name, "--schedule", "daily"]).ok();
        let seeds = grange.file("seeds.txt", &self.web.seeds().join("\n"));
        grange.run(&["harvests", "add-seeds", name, seeds.to_str().unwrap(), "--template", "web"]).ok();
    }

    fn template(delay: &str) -> String {
        format!(
            "name = \"web\"\n\
             [engine]\nmin_free = \"0B\"\nworkers = 20\n\
             [robots.cache]\nretry = \"10ms\"\nretry_max = \"20ms\"\ngive_up = \"50ms\"\n\
             [frontier]\nretry_delay = \"20ms\"\n\
             [frontier.pace]\ndelay_factor = 0.0\nmin_delay = \"{delay}\"\nmax_delay = \"{delay}\"\n\
             [fetch]\naccept_encodings = []\n\
             [scope]\nmax_hops = 1000\nmax_trans_hops = 1\nmax_speculative_hops = 1\n\
             [extract]\nfavicon = false\n"
        )
    }

    /// Waits until the crawl has asked for so much of the web.
    pub(crate) fn asked(&self, percent: u64) {
        let wanted = self.expected.len() as u64 * percent / 100;
        wait_for("requests of the crawl", || (self.server.total() >= wanted).then_some(()));
    }

    /// The files of the job hold every URL of the web once, with the right bytes, and nothing else.
    pub(crate) fn is_captured(&self, filedir: &Path, job: &str) {
        let found = captured(filedir, job);
        let mut wrong = Vec::new();
        for (url, expected) in &self.expected {
            match found.get(url).map(Vec::as_slice) {
                Some([(status, length, digest)])
                    if (*status, *length, digest.as_str())
                        == (expected.status, expected.length, expected.payload_sha1.as_str()) => {}
                other => wrong.push(format!("{url}: {other:?} instead of {expected:?}")),
            }
        }
        wrong.extend(found.keys().filter(|url| !self.expected.contains_key(*url)).cloned());
        assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), self.expected.len(), wrong.join("\n"));
    }

    /// The statistics of the job say so too: every domain complete, every object counted.
    pub(crate) fn is_counted(&self, grange: &Grange, job: &str) {
        let shown = grange.run(&["jobs", "show", job, "--json"]).ok().json();
        let rows = shown["statistics"].as_array().unwrap();
        let objects: u64 = rows.iter().map(|row| row["objects"].as_u64().unwrap()).sum();
        assert_eq!(objects, self.expected.len() as u64, "{rows:?}");
        assert_eq!(rows.len(), self.web.seeds().len());
        assert!(
            rows.iter().all(|row| row["stop"] == "complete" && row["bytes"].as_u64() > Some(0)),
            "{rows:?}"
        );
    }
}

/// Waits until the newest job of a harvest has this status, and gives it.
pub(crate) fn job_with(grange: &Grange, harvest: &str, status: &str) -> Value {
    wait_for(&format!("a job that is {status}"), || {
        // Before the first run is planned there is none.
        let job = grange.run(&["jobs", "ls", "--harvest", harvest, "--json"]).ok().json().get(0)?.clone();
        assert!(status == "failed" || job["status"] != "failed", "{job}");
        (job["status"] == status).then_some(job)
    })
}

/// Waits until no folder of a job is left.
pub(crate) fn nothing_left(grange: &Grange) {
    let left = || std::fs::read_dir(grange.data().join("harvest")).map_or(0, Iterator::count);
    wait_for("the folders of jobs to go", || (left() == 0).then_some(()));
}

/// The WARC files of a job with captures in them.
pub(crate) fn files_of(filedir: &Path, job: &str) -> Vec<String> {
    let prefix = format!("{job}-");
    let mut names = lying_in(filedir);
    names.retain(|name| name.starts_with(&prefix) && !name.contains("-metadata-"));
    names.sort();
    names
}

/// Status, length and digest of every answer in the files of a job, by URL. Every record must be sound.
pub(crate) fn captured(filedir: &Path, job: &str) -> BTreeMap<String, Vec<(u16, u64, String)>> {
    captured_in(filedir, &files_of(filedir, job))
}

/// The same in some of its files.
pub(crate) fn captured_in(filedir: &Path, names: &[String]) -> BTreeMap<String, Vec<(u16, u64, String)>> {
    let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for name in names {
        let mut reader = Reader::open(filedir.join(name)).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            let url = record.target_uri().map(|uri| String::from_utf8_lossy(uri).into_owned());
            let digest = record.header().get("WARC-Payload-Digest").unwrap_or_default();
            let digest = String::from_utf8_lossy(digest).into_owned();
            let answer = matches!(record.kind(), RecordType::Response | RecordType::Revisit);
            if answer && let Some(http) = record.http().unwrap() {
                let status = http.status().unwrap_or_default();
                let length = std::io::copy(&mut record.payload().unwrap(), &mut std::io::sink()).unwrap();
                found.entry(url.unwrap_or_default()).or_default().push((status, length, digest));
            }
        }
        assert_eq!(reader.problems(), [], "{name}");
        let mut reader = Reader::open(filedir.join(name)).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            let check = record.digest_check().unwrap();
            assert!(
                !matches!(check.block, Check::Bad(_)) && !matches!(check.payload, Check::Bad(_)),
                "{name}"
            );
        }
    }
    found
}
