//! Harvests that meet a replica that refuses, and sites that want to know who asks.

use std::path::Path;

use grange_testkit::wait_for;
use grange_testkit::web::{PASSWORD, Profile, Rules, USER};
use warc::{Reader, RecordType};

use crate::archive_bed::{CHECKSUMS, audit, bytes_at, lying_in, machine, write_settings};
use crate::harvest_bed::{QUICK, Site, files_of, job_with, nothing_left};

/// `reader:open-sesame` as Basic authentication sends it.
const BASIC: &str = "cmVhZGVyOm9wZW4tc2VzYW1l";

/// What is behind a login: asked for by HTTP, or with a form.
const AREAS: [&str; 3] = ["/basic/", "/digest/", "/login/in/"];

/// Three replicas, of which the second has no room, or has.
fn replicas(second_has_room: bool) -> String {
    let left = if second_has_room { "1MB" } else { "999999GiB" };
    let second = format!("{{ url = \"file:replicas/two\", min_space_left = \"{left}\" }}");
    [bytes_at("one", &["file:replicas/one"]), bytes_at("two", &[&second]), CHECKSUMS.to_owned()].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replica_that_refuses_is_an_upload_error_and_what_was_kept_is_stored_later() {
    let site = Site::serve(2, 10, Profile::Plain).await;
    let few = ["harvest.upload_attempts=2"];
    let grange = machine(&[&QUICK[..], &few].concat(), &replicas(false));
    site.leads(&grange);
    let [one, two] = ["one", "two"].map(|name| grange.data().join(format!("replicas/{name}/filedir")));
    let node = grange.up();
    site.harvest(&grange, "news", "0s");
    let job = job_with(&grange, "news", "failed");
    let id = job["id"].to_string();
    assert_eq!(job["harvest_errors"], serde_json::Value::Null, "the crawl itself went well: {job}");
    let text = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
    assert!(text("upload_errors").ends_with("files failed to upload"), "{job}");
    assert!(text("upload_error_details").contains("replica two"), "{job}");
    // What could not be proven everywhere is still on the harvester, whatever the other replicas have.
    let kept: Vec<_> = kept_files(&grange.data().join("harvest"));
    assert!(!kept.is_empty() && lying_in(&two).is_empty(), "{kept:?}");
    let mut all = lying_in(&one);
    all.sort();
    assert_eq!(kept, all, "every file waits, the papers among them");
    // The statistics of a crawl that went well are right, stored or not.
    site.is_counted(&grange, &id);
    assert_eq!(node.stop(), 0);

    write_settings(&grange, &replicas(true));
    let node = grange.up();
    nothing_left(&grange);
    site.is_captured(&two, &id);
    let mut sorted = lying_in(&two);
    sorted.sort();
    assert_eq!(sorted, all);
    let [_, missing, corrupt, undecided, extra] = audit(&grange);
    assert_eq!([missing, corrupt, undecided, extra], [0; 4]);
    // The job stays as it was reported, and says what came of it.
    let shown = wait_for("the word that everything is stored", || {
        let shown = grange.run(&["jobs", "ls", "--harvest", "news", "--json"]).ok().json()[0].clone();
        let details = shown["upload_error_details"].as_str().unwrap_or_default();
        details.contains("has stored what was left").then(|| shown.clone())
    });
    assert_eq!(shown["status"], "failed");
    assert_eq!(node.stop(), 0);
}

/// The WARC files and papers in the folders of jobs, by name.
fn kept_files(base: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for job in std::fs::read_dir(base).unwrap() {
        for place in ["crawl/warcs", "metadata"] {
            let entries = std::fs::read_dir(job.as_ref().unwrap().path().join(place)).unwrap();
            names.extend(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
        }
    }
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_site_with_a_login_is_crawled_and_the_secret_stays_secret() {
    let site = Site::serve(1, 3, Profile::Deterministic).await;
    let without = site.web.expected(&Rules::default());
    let with = site.web.expected(&Rules { credentials: true, ..Rules::default() });
    let behind: Vec<_> = with
        .keys()
        .filter(|url| AREAS.iter().any(|area| url.contains(area)))
        .filter(|url| with[*url].status == 200 && without.get(*url).is_none_or(|one| one.status != 200))
        .collect();
    assert!(AREAS.iter().all(|area| behind.iter().any(|url| url.contains(area))), "{behind:?}");
    let grange = crate::archive_bed::single_with(&QUICK);
    site.leads(&grange);
    let node = grange.up();
    site.define(&grange, "news", "0s");
    let members = grange.run(&["harvests", "domains", "news", "--json"]).ok().json();
    let (domain, recipe) =
        (members[0]["domain"].as_str().unwrap(), members[0]["configuration"].as_str().unwrap());
    let secret = grange.file("secret", PASSWORD);
    let (secret, at) = (secret.to_str().unwrap(), format!("http://{domain}/"));
    let login =
        ["domains", "login", domain, "forum", "--url", &at, "--username", USER, "--secret-file", secret];
    grange.run(&login).ok();
    // Where a form is sent, and how it is filled in.
    let enter = format!("http://{domain}/login/enter");
    let form = ["--user-field", "user", "--secret-field", "password", "--sets-cookie", "session"];
    let kept = ["domains", "login", domain, "members", "--username", USER, "--secret-file", secret];
    grange.run(&[&kept[..], &["--url", "enter"], &form].concat()).fails(2, &["\"enter\" is none"]);
    grange.run(&[&kept[..], &["--url", &enter], &form].concat()).ok();
    let logins = ["--login", "forum", "--login", "members"];
    grange.run(&[&["domains", "configure", domain, recipe][..], &logins].concat()).ok();
    grange.run(&["harvests", "activate", "news"]).ok();
    let id = job_with(&grange, "news", "done")["id"].to_string();
    nothing_left(&grange);
    std::fs::remove_file(secret).unwrap();
    assert_eq!(node.stop(), 0);

    let filedir = grange.data().join("replicas/one/filedir");
    let mut got = Vec::new();
    let mut bytes = Vec::new();
    for name in lying_in(&filedir) {
        let mut reader = Reader::open(filedir.join(&name)).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            let url = String::from_utf8_lossy(record.target_uri().unwrap_or_default()).into_owned();
            if record.kind() == RecordType::Response
                && let Some(http) = record.http().unwrap()
                && http.status() == Some(200)
            {
                got.push(url);
            }
            for header in record.header().iter() {
                bytes.extend_from_slice(header.1);
            }
        }
        let mut reader = Reader::open(filedir.join(&name)).unwrap();
        while let Some(mut record) = reader.next().unwrap() {
            std::io::copy(&mut record.block(), &mut bytes).unwrap();
        }
    }
    assert!(files_of(&filedir, &id).iter().all(|name| name.starts_with(&id)));
    let missing: Vec<_> = behind.iter().filter(|url| !got.contains(url)).collect();
    assert!(missing.is_empty(), "not let in: {missing:?}");
    // Neither in the archive, papers included, nor in the database, the log, or anything else that is left.
    let holds = |bytes: &[u8], word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    for word in [PASSWORD, BASIC] {
        assert!(!holds(&bytes, word), "\"{word}\" is in the archive");
    }
    let mut looked_at = 0;
    for path in everything_below(grange.data().parent().unwrap()) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!holds(&bytes, PASSWORD) && !holds(&bytes, BASIC), "{}", path.display());
        looked_at += 1;
    }
    assert!(looked_at > 10, "{looked_at}");
}

fn everything_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(everything_below(&path));
        } else if path.is_file() {
            files.push(path);
        }
    }
    files
}
