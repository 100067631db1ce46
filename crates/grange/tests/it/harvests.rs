//! Curators at work: domains, schedules, harvests and jobs through the command line, with and without a node.

use grange_testkit::wait_for;
use serde_json::Value;

use crate::archive_bed::single;
use crate::harness::Grange;

/// Jobs wait; nothing is crawled.
const NO_HARVESTER: &str = "node.roles=[\"bitarchive\", \"archiver\", \"scheduler\", \"admin\"]";

/// Waits until there are so many jobs of a harvest.
fn jobs(grange: &Grange, harvest: &str, count: usize) -> Vec<Value> {
    wait_for("the jobs of the harvest", || {
        let listed = grange.run(&["jobs", "ls", "--harvest", harvest, "--json"]).ok().json();
        Some(listed.as_array().unwrap().clone()).filter(|listed| listed.len() >= count)
    })
}

#[test]
fn domains_come_from_a_file_with_a_report() {
    let grange = Grange::new();
    grange.run(&["domains", "create", "old.dk"]).ok();
    let file = grange.file("names", "# ours\nnew.dk old.dk\n\nBÜCHER.de\nnot_a_domain\nwww.new.dk\nnew.dk\n");
    let report = grange.run(&["domains", "import", file.to_str().unwrap(), "--json"]);
    assert_eq!(report.code, 5, "{report:?}");
    let report = report.json();
    assert_eq!(
        (&report["created"], &report["existing"], &report["illegal"]),
        (&2.into(), &2.into(), &2.into())
    );
    assert_eq!(
        report["existing_names"],
        serde_json::json!(["old.dk", "new.dk"]),
        "the second time it was there"
    );
    assert_eq!(report["illegal_lines"][0]["line"], 5);
    let shown = grange.run(&["domains", "show", "bücher.de", "--json"]).ok().json();
    assert_eq!(shown["domain"]["name"], "xn--bcher-kva.de");
    assert_eq!(shown["configurations"][0]["name"], "defaultconfig");
    assert_eq!(shown["seed_lists"][0]["active"], 4);
    grange.run(&["domains", "show", "nowhere.dk"]).fails(3, &["nowhere.dk"]);
    grange.run(&["domains", "set", "new.dk", "--alias-of", "old.dk"]).ok();
    grange.run(&["domains", "set", "old.dk", "--alias-of", "new.dk"]).fails(4, &["is itself an alias"]);
    let aliases = grange.run(&["domains", "aliases", "--json"]).ok().json();
    assert_eq!((&aliases[0]["domain"], &aliases[0]["expired"]), (&"new.dk".into(), &false.into()));
    let bad = grange.file("seeds", "http://old.dk/\nmailto:x\n");
    let bad = bad.to_str().unwrap();
    grange.run(&["seeds", "put", "old.dk", "mine", bad]).fails(2, &["line 2"]);
    grange.run(&["seeds", "rm", "old.dk", "defaultseeds"]).fails(4, &["in use", "defaultconfig"]);
}

#[test]
fn a_login_is_kept_and_its_secret_never_shown() {
    let grange = Grange::new();
    grange.run(&["domains", "create", "a.dk"]).ok();
    let secret = grange.file("secret", "hunter2-hunter2\n");
    let file = secret.to_str().unwrap();
    let login = [
        "domains",
        "login",
        "a.dk",
        "forum",
        "--url",
        "http://a.dk/",
        "--username",
        "u",
        "--secret-file",
        file,
    ];
    grange.run(&login).ok();
    // Without the page that asks for it nobody knows whom the secret is for.
    for nowhere in ["", "a.dk/members", "/members", "ftp://a.dk/", "http://", "https://u:hunter2@a.dk/"] {
        let mut login = login;
        login[5] = nowhere;
        let refused = grange.run(&login).fails(2, &["cannot keep the login", "give a url such as"]);
        assert!(!refused.stderr.contains("hunter2"), "{refused:?}");
    }
    let shown = grange.run(&["domains", "logins", "a.dk", "--json"]).ok().stdout;
    let changes = grange.run(&["changes", "--json"]).ok().stdout;
    assert!(shown.contains("forum") && !shown.contains("hunter2") && !changes.contains("hunter2"));
    let database = std::fs::read(grange.data().join("grange.db")).unwrap();
    let log = std::fs::read(grange.data().join("grange.db-wal")).unwrap_or_default();
    let holds = |bytes: &[u8]| bytes.windows(7).any(|window| window == b"hunter2");
    assert!(!holds(&database) && !holds(&log), "sealed at rest");
    assert!(grange.data().join("secrets/vault.key").exists());
}

#[tokio::test]
async fn a_viewer_reads_domains_and_is_refused_their_logins() {
    let grange = Grange::with(&[NO_HARVESTER]);
    grange.run(&["domains", "create", "a.dk"]).ok();
    let password = grange.file("password", "correct horse battery\n");
    let password = password.to_str().unwrap();
    grange.run(&["users", "add", "vera", "--role", "viewer", "--password-file", password]).ok();
    let secret = grange.file("secret", "hunter2-hunter2\n");
    let kept = ["--url", "http://a.dk/", "--username", "u", "--secret-file", secret.to_str().unwrap()];
    grange.run(&[&["domains", "login", "a.dk", "forum"], &kept[..]].concat()).ok();
    let node = grange.up();
    let base = format!("{}/api/v1", node.url("admin"));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let body = serde_json::json!({ "name": "vera", "password": "correct horse battery" });
    let session = http.post(format!("{base}/session")).json(&body).send().await.unwrap();
    assert_eq!(session.status(), 201);
    let cookie = session.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let session: Value = session.json().await.unwrap();
    let login = serde_json::json!({ "url": "http://a.dk/", "username": "u", "secret": "s" });
    for (method, path, status) in [
        ("GET", "domains/a.dk", 200),
        ("GET", "domains/a.dk/logins", 403),
        ("PUT", "domains/a.dk/logins/forum", 403),
        ("DELETE", "domains/a.dk/logins/forum", 403),
    ] {
        let call = http.request(method.parse().unwrap(), format!("{base}/{path}")).header("cookie", &cookie);
        let call = call.header("x-csrf-token", session["csrf"].as_str().unwrap());
        let answer = if method == "PUT" { call.json(&login) } else { call }.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{method} {path}");
        let text = answer.text().await.unwrap();
        assert!(!text.contains("forum") || status == 200, "{method} {path}: {text}");
        assert!(!text.contains("hunter2"), "{method} {path}: {text}");
    }
    assert_eq!(node.stop(), 0);
}

#[test]
fn a_selective_harvest_made_now_becomes_a_job() {
    let grange = Grange::with(&[NO_HARVESTER]);
    let node = grange.up();
    grange
        .run(&["harvests", "create", "selective", "news", "--schedule", "daily", "--domain", "a.dk", "--now"])
        .ok();
    let job = jobs(&grange, "news", 1)[0].clone();
    assert_eq!((&job["status"], &job["channel"], &job["run"]), (&"new".into(), &"focused".into(), &1.into()));
    let id = job["id"].to_string();
    let shown = grange.run(&["jobs", "show", &id, "--json"]).ok().json();
    assert_eq!(shown["domains"][0]["domain"], "a.dk");
    assert_eq!(shown["domains"][0]["seeds"][0], "http://a.dk");
    let harvest = grange.run(&["harvests", "show", "news", "--json"]).ok().json();
    assert_eq!((&harvest["active"], &harvest["runs"]), (&true.into(), &1.into()));
    assert!(harvest["next_at"].is_string());
    grange.run(&["jobs", "cancel", &id]).ok();
    grange.run(&["jobs", "resubmit", &id]).ok();
    assert_eq!(jobs(&grange, "news", 2)[0]["continuation_of"], job["id"]);
    grange.run(&["jobs", "cancel", &id]).fails(4, &["resubmitted"]);
    grange.run(&["jobs", "show", "999"]).fails(3, &["999"]);
    assert_eq!(node.stop(), 0);
}

#[test]
fn a_snapshot_is_previewed_and_runs_once() {
    let grange = Grange::with(&[NO_HARVESTER]);
    let names: Vec<_> = (0..30).map(|n| format!("d{n}.dk")).collect();
    let file = grange.file("names", &names.join("\n"));
    grange.run(&["domains", "import", file.to_str().unwrap()]).ok();
    grange.run(&["harvests", "create", "snapshot", "first", "--max-bytes", "100MB"]).ok();
    let preview = grange.run(&["harvests", "preview", "first", "--json"]).ok().json();
    assert_eq!((&preview["domains"], &preview["jobs"]), (&30.into(), &1.into()));
    // 100 MB are 2,631 objects of 38,000 bytes.
    assert_eq!(preview["expected_objects"], 30 * 2631);
    grange.run(&["harvests", "create", "snapshot", "all", "--max-bytes", "100MB", "--activate"]).ok();
    let node = grange.up();
    let job = jobs(&grange, "all", 1)[0].clone();
    assert_eq!((&job["configurations"], &job["limits"]["bytes"]), (&30.into(), &100_000_000.into()));
    grange.run(&["harvests", "activate", "all"]).fails(4, &["has run"]);
    let runs = grange.run(&["harvests", "runs", "all", "--json"]).ok().json();
    assert_eq!(runs.as_array().unwrap().len(), 1);
    assert_eq!(node.stop(), 0);
}

#[test]
fn seeds_of_an_event_bring_their_domains_along() {
    let grange = Grange::new();
    grange.run(&["harvests", "create", "selective", "valg", "--schedule", "hourly"]).ok();
    let file = grange.file("seeds", "// parties\nhttp://a.dk/x\nb.dk\nnonsense\n");
    let path = file.to_str().unwrap();
    let added = grange.run(&["harvests", "add-seeds", "valg", path, "--template", "front-page", "--json"]);
    assert_eq!(added.code, 5);
    assert_eq!(added.json()["added"]["domains_created"], 2);
    let members = grange.run(&["harvests", "domains", "valg", "--json"]).ok().json();
    assert_eq!(members[0]["configuration"], "valg_front-page_UnlimitedBytes_UnlimitedObjects");
    grange.run(&["harvests", "add", "valg", "c.dk"]).fails(5, &["c.dk"]);
    grange.run(&["harvests", "create", "selective", "valg", "--schedule", "daily"]).fails(4, &["already"]);
    grange.run(&["harvests", "create", "selective", "x", "--schedule", "never"]).fails(3, &["never"]);
}

#[test]
fn schedules_templates_traps_and_channels_are_kept() {
    let grange = Grange::new();
    let put = ["schedules", "put", "month-end", "--unit", "month", "--day", "31", "--at", "02:30"];
    grange.run(&[&put[..], &["--time-zone", "Europe/Copenhagen"]].concat()).ok();
    let shown = grange.run(&["schedules", "show", "month-end", "--json"]).ok().json();
    assert_eq!(shown["dates"].as_array().unwrap().len(), 10);
    grange.run(&["schedules", "put", "x", "--unit", "day", "--at", "25:00"]).fails(2, &["hour (0–23)"]);
    let names = grange.run(&["schedules", "ls", "--json"]).ok().stdout;
    assert!(["hourly", "daily", "weekly", "monthly"].iter().all(|name| names.contains(name)), "{names}");
    grange.run(&["schedules", "rm", "month-end"]).ok();

    let text = grange.file("template", "name = \"mine\"\n");
    grange.run(&["templates", "put", "default", text.to_str().unwrap()]).ok();
    assert_eq!(grange.run(&["templates", "show", "default"]).ok().stdout, "name = \"mine\"\n");
    let old = grange.run(&["templates", "show", "default", "--version", "1"]).ok().stdout;
    assert!(old.contains("name = \"default\"") && old.contains("[scope]"), "the crawler's own: {old}");
    let wrong = grange.file("wrong", "name = \"x\"\n[scpoe]\n");
    grange.run(&["templates", "put", "x", wrong.to_str().unwrap()]).fails(2, &["line 2", "scpoe", "scope"]);
    let empty = grange.file("empty", " \n");
    grange.run(&["templates", "put", "x", empty.to_str().unwrap()]).fails(2, &["it is empty"]);

    let traps = grange.file("traps", ".*/calendar/.*\n");
    grange.run(&["traps", "put", "common", traps.to_str().unwrap()]).ok();
    let bad = grange.file("bad", "(\n");
    grange.run(&["traps", "put", "common", bad.to_str().unwrap()]).fails(2, &["line 1"]);
    let log =
        grange.file("crawl.log", "2026-01-01T00:00:00.000Z 200 10 http://a.dk/calendar/1 L - text/html\n");
    let hits = grange.run(&["traps", "test", ".*/calendar/.*", log.to_str().unwrap(), "--json"]).ok().json();
    assert_eq!(hits["blocked"], 1);

    grange.run(&["channels", "create", "own"]).ok();
    grange.run(&["channels", "rm", "focused"]).fails(4, &["default"]);
    let channels = grange.run(&["channels", "ls", "--json"]).ok().json();
    assert_eq!(channels.as_array().unwrap().len(), 3);
}

#[test]
fn traps_are_tried_on_the_crawl_logs_of_stored_jobs() {
    let grange = single();
    let path = grange.path("7-metadata-1.warc.gz");
    let date = warc::Date::parse(b"2026-01-02T03:04:05Z").unwrap();
    let mut file = warc::write::WarcFile::create(&path, &warc::write::FileOptions::default(), date).unwrap();
    let log = (0..1000).fold(String::new(), |log, n| {
        log + &format!(
            "2026-01-01T00:00:00.000Z   200         10 http://a.dk/calendar/{n} L - text/html #001 - - - -\n"
        )
    });
    let other =
        "2026-01-01T00:00:00.000Z   200         10 http://a.dk/calendar/1 L - text/html #001 - - - -\n";
    for (name, text) in [("crawl.log", log.as_str()), ("scope.log", other)] {
        let address = format!("metadata://e.org/crawl/logs/{name}?heritrixVersion=x&harvestid=1&jobid=7");
        let mut record = warc::write::NewRecord::resource(&address, date, "text/plain", text.as_bytes());
        file.write(&mut record).unwrap();
    }
    file.close().unwrap();
    grange.run(&["store", path.to_str().unwrap()]).ok();
    let hits =
        grange.run(&["traps", "test", ".*/calendar/.*5", "--job", "7", "--job", "8", "--json"]).ok().json();
    assert_eq!((&hits["lines"], &hits["blocked"]), (&1000.into(), &100.into()));
    assert_eq!((&hits["jobs"], &hits["missing"]), (&serde_json::json!([7]), &serde_json::json!([8])));
    let text = grange.run(&["traps", "test", ".*/none/.*", "--job", "7"]).ok().stdout;
    assert!(text.starts_with("0 of 1000 lines of 1 jobs would have been blocked."), "{text}");
    // Without a job the newest that are done are meant; here there are none.
    let text = grange.run(&["traps", "test", ".*"]).ok().stdout;
    assert!(text.starts_with("0 of 0 lines of 0 jobs"), "{text}");
    grange.run(&["traps", "test", ".*", "--job", "99"]).fails(3, &[]);
    grange.run(&["traps", "test", "("]).fails(2, &["unclosed"]);
}

#[test]
fn a_template_cannot_say_where_requests_go() {
    let grange = Grange::new();
    for (table, line, key) in [
        ("fetch", "all_hosts_to = \"192.0.2.1\"", "fetch.all_hosts_to"),
        ("fetch", "proxy = \"http://192.0.2.1:3128\"", "fetch.proxy"),
        ("fetch", "allow_networks = [\"10.0.0.0/8\"]", "fetch.allow_networks"),
        ("virus", "clamd = \"tcp:192.0.2.1:3310\"", "virus.clamd"),
    ] {
        let text = format!("name = \"mine\"\n[{table}]\n{line}\n");
        let file = grange.file("mine.toml", &text);
        let put = grange.run(&["templates", "put", "mine", file.to_str().unwrap()]);
        put.fails(2, &[key, "only the operator can set", "harvest.network"]);
    }
}
