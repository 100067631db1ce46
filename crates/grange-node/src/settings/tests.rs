use std::path::Path;

use super::*;

fn known() -> Known {
    Known::of::<Settings>()
}

/// Loads one file text, environment variables and flags; gives the settings or the problems as text.
fn loaded(file: &str, environment: &[(&str, &str)], flags: &[&str]) -> Result<Settings, String> {
    let known = known();
    let file = Layer::parse(Path::new("grange.toml"), file).map_err(|problem| problem.to_string())?;
    let variables = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let flags = Layer::flags(&flags, &known).map_err(|problem| problem.to_string())?;
    let layers = vec![file, Layer::environment(variables, &known), flags];
    let loaded = load::load(layers, &known).and_then(usable);
    loaded.map(|loaded| loaded.settings).map_err(|problems| problems.to_string())
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let settings = loaded("", &[], &[]).unwrap();
    assert_eq!(settings.web.listen.to_string(), "127.0.0.1:7070");
    assert_eq!(serde_json::to_value(&settings).unwrap(), serde_json::to_value(Settings::default()).unwrap());
}

#[test]
fn later_layers_win_and_tables_merge() {
    let file = "[node]\nname = \"file\"\nheartbeat = \"5s\"\nroles = [\"admin\", \"replay\"]\n";
    let settings = loaded(
        file,
        &[("GRANGE_NODE__NAME", "environment"), ("GRANGE_NODE__ROLES", "[\"admin\"]"), ("GRANGE_DATA", "x")],
        &["node.name=flag"],
    )
    .unwrap();
    assert_eq!(settings.node.name, "flag");
    assert_eq!(settings.node.heartbeat, Period::from_secs(5));
    // Replaced, not merged.
    assert_eq!(settings.node.roles, [NodeRole::Admin]);
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_what_to_do() {
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str], &'a str);
    let cases: &[Case<'_>] = &[
        (
            "[web]\nlistn = \"x\"\n",
            &[],
            &[],
            "grange.toml:2: unknown key \"web.listn\"; did you mean \"web.listen\"?",
        ),
        ("[wbe]\nlisten = \"x\"\n", &[], &[], "grange.toml:1: unknown key \"wbe\"; did you mean \"web\"?"),
        (
            "\nzzzzqqq = 1\n",
            &[],
            &[],
            "grange.toml:2: unknown key \"zzzzqqq\"; `grange settings example` lists all keys",
        ),
        (
            "",
            &[("GRANGE_WEB__LISTN", "x")],
            &[],
            "environment variable GRANGE_WEB__LISTN: unknown key \"web.listn\"; did you mean \"web.listen\"?",
        ),
        ("", &[], &["node.nmae=x"], "--set: unknown key \"node.nmae\"; did you mean \"node.name\"?"),
        ("", &[], &["node.name"], "--set node.name: write --set section.key=value"),
        (
            "[node]\nheartbeat = 30\n",
            &[],
            &[],
            "grange.toml:2: node.heartbeat: wrong kind of value: integer `30`, expected text",
        ),
        (
            "[node]\n\nheartbeat = \"30\"\n",
            &[],
            &[],
            "grange.toml:3: node.heartbeat: \"30\" is not a length of time: write a number with a unit, such as 500ms, 30s, 5m, 1h 30m or 7d",
        ),
        ("[node\n", &[], &[], "grange.toml:1: not TOML: unclosed table, expected `]`"),
        (
            "[web]\nlistn = 1\n[node]\nnmae = 2\n",
            &[],
            &[],
            "grange.toml:4: unknown key \"node.nmae\"; did you mean \"node.name\"?\ngrange.toml:2: unknown key \"web.listn\"; did you mean \"web.listen\"?",
        ),
    ];
    for (file, environment, flags, expected) in cases {
        assert_eq!(
            loaded(file, environment, flags).unwrap_err(),
            *expected,
            "{file:?} {environment:?} {flags:?}"
        );
    }
}

#[test]
fn settings_that_cannot_work_are_refused_with_what_to_do() {
    // What is set, and the key that is refused with words of the fix.
    let cases: &[(&[&str], &str, &str)] = &[
        (&["harvest.jobs_at_once=0"], "harvest.jobs_at_once", "leave harvester out of node.roles"),
        (&["harvest.channels=[]"], "harvest.channels", "name one"),
        (&["harvest.progress_every=60s"], "harvest.progress_every", "harvest.lease is 1m; set a third"),
        (&["harvest.lease=5s"], "harvest.progress_every", "harvest.lease is 5s; set a third"),
        (&["harvest.lease=0s"], "harvest.lease", "set a time such as 60s"),
        (
            &["harvest.look_every=1m"],
            "schedule.harvester_lost_after",
            "harvest.look_every is 1m; set a longer",
        ),
        (&["node.heartbeat=0s"], "node.heartbeat", "set a time such as 10s"),
        (&["db.backup_keep=0"], "db.backup_keep", "db.backup_every = \"0s\""),
        (&["oai.repositories_at_once=65"], "oai.repositories_at_once", "set 1 to 64"),
        (&["oai.serve_page=10001"], "oai.serve_page", "set 1 to 10000"),
        (&["index.look_every=10m"], "index.takeover_after", "index.look_every is 10m; set a longer"),
        (&["swap.peers=[\"a:1\"]"], "swap.peers", "set swap.key_file"),
        (&["archive.lease=0s"], "archive.lease", "the default is 30s"),
    ];
    for (set, key, fix) in cases {
        let refused = loaded("", &[], set).unwrap_err();
        assert!(refused.contains(&format!("{key}: ")) && refused.contains(fix), "{set:?}: {refused}");
        assert_eq!(refused.lines().count(), 1, "{set:?}: {refused}");
    }
    for set in [
        &["harvest.progress_every=59s"][..],
        &["db.backup_keep=0", "db.backup_every=0s"],
        &["oai.repositories_at_once=64", "oai.serve_page=10000"],
        &["swap.peers=[\"a:1\"]", "swap.key_file=key"],
    ] {
        loaded("", &[], set).unwrap();
    }
    let all = loaded("[node]\nheartbeat = \"0s\"\n[oai]\nlease = \"0s\"\n", &[], &[]).unwrap_err();
    assert_eq!(all.lines().count(), 2, "all at once: {all}");
    assert!(all.starts_with("grange.toml:2: node.heartbeat: "), "{all}");
}

/// A number that nobody thought about is refused when it is 0, or its 0 is described.
#[test]
fn a_zero_is_refused_or_means_something() {
    // 0 is no limit, never, none of it, or as fast as it goes.
    let meaningful = [
        "node.clock_skew_max",
        "db.backup_every",
        "archive.upload_retries",
        "archive.list_every",
        "archive.check_every",
        "archive.challenge_every",
        "archive.check_bytes_per_second",
        "archive.check_spread",
        "archive.checkpoint_every",
        "schedule.alias_lifetime",
        "schedule.takeovers_max",
        "schedule.splitting.min_absolute_size_difference",
        "schedule.expectation.max_domain_size",
        "harvest.min_space_left",
        "harvest.sample_every",
        "harvest.chunk_size",
        "harvest.chunk_age",
        "harvest.folders_every",
        "index.cache",
        "index.merge_bytes_per_second",
        "replay.rewrite_budget",
        "oai.delay",
        "oai.retry_after_max",
        "oai.takeovers_max",
        "swap.workers",
        "swap.min_space_left",
        "swap.move_rate",
        "swap.patience.slowest",
        "swap.patience.grace",
    ];
    let mut accepted = Vec::new();
    let known = known();
    for key in known.keys.iter().filter(|key| !key.path.contains(['[', '*'])) {
        for zero in ["0", "0s", "0B"] {
            let set = format!("{}={zero}", key.path);
            let numeric = key.default.is_number() || key.kind == "length of time" || key.kind == "size";
            if numeric && loaded("", &[], &[&set]).is_ok() {
                accepted.push(key.path.as_str());
            }
        }
    }
    accepted.sort_unstable();
    let mut expected = meaningful.to_vec();
    expected.sort_unstable();
    assert_eq!(accepted, expected);
}

#[test]
fn a_missing_file_says_so() {
    let problems = load(&[PathBuf::from("/nowhere/grange.toml")], &[]).unwrap_err().to_string();
    assert!(
        problems.starts_with("cannot read the settings file /nowhere/grange.toml: No such file"),
        "{problems}"
    );
}

#[test]
fn every_key_is_documented_and_every_secret_is_a_file() {
    for key in known().keys {
        assert!(!key.doc.is_empty(), "{} has no doc comment", key.path);
        let last = key.path.rsplit('.').next().unwrap_or_default();
        let secret = ["password", "token", "secret"].iter().any(|word| last.contains(word));
        assert!(!secret || last.ends_with("_file"), "{} must name a file, not hold a secret", key.path);
    }
}

#[test]
fn the_example_with_every_key_set_is_read_back_as_the_defaults() {
    let example = print::example(&known());
    // Sections whose names are free, and those of which there may be many, show what one looks like; they stand for none.
    let (mut lines, mut free) = (Vec::new(), false);
    for line in example.lines().filter(|line| !line.starts_with("# ") && !line.ends_with('…')) {
        let line = line.strip_prefix('#').unwrap_or(line);
        if line.starts_with('[') {
            free = line.contains("NAME") || line.starts_with("[[");
        }
        if !free {
            lines.push(line);
        }
    }
    let uncommented = lines.join("\n");
    let settings = loaded(&uncommented, &[], &[]).unwrap();
    assert_eq!(serde_json::to_value(&settings).unwrap(), serde_json::to_value(Settings::default()).unwrap());
}

#[test]
fn explain_tells_all_about_one_key() {
    let known = known();
    let flags = Layer::flags(&["web.session_idle=1h".to_owned()], &known).unwrap();
    let loaded = load::load::<Settings>(vec![flags], &known).unwrap();
    let key = known.key("web.session_idle").unwrap();
    let text = print::explain(&loaded, key, "web.session_idle");
    for part in ["length of time", "\"2h\"", "\"1h\" (--set)", "GRANGE_WEB__SESSION_IDLE"] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
}
