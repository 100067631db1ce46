//! `grange settings …` as an operator meets it.

use crate::harness::{self, Grange};

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_nearest_known_key() {
    let grange = Grange::new();
    let file = grange.file("mine.toml", "# my settings\n[web]\nlistne = \"127.0.0.1:80\"\n");
    let file = file.to_str().unwrap();
    harness::run(&grange.path(""), &["--settings", file, "settings", "check"])
        .fails(2, &["mine.toml:3", "web.listne", "did you mean \"web.listen\"?"]);
    harness::run(&grange.path(""), &["--settings", file, "up"]).fails(2, &["web.listne"]);
    assert!(!grange.path("grange-data").exists(), "nothing is made before the settings are right");
}

#[test]
fn right_settings_are_called_right() {
    let grange = Grange::new();
    let file = grange.file("mine.toml", "[web]\nsession_idle = \"1h\"\n");
    let ended =
        harness::run(&grange.path(""), &["--settings", file.to_str().unwrap(), "settings", "check"]).ok();
    assert!(ended.stdout.contains("1 set"), "{}", ended.stdout);
}

#[test]
fn a_missing_file_or_a_flag_without_value_is_wrong_use() {
    let grange = Grange::new();
    grange
        .run(&["--settings", "/nowhere.toml", "settings", "check"])
        .fails(2, &["/nowhere.toml", "No such file"]);
    grange.run(&["--set", "web.listen", "settings", "check"]).fails(2, &["write --set section.key=value"]);
    grange
        .run(&["--set", "node.heartbeat=5", "settings", "check"])
        .fails(2, &["node.heartbeat", "such as 500ms"]);
}

#[test]
fn the_data_folder_may_hold_the_settings_and_flags_win() {
    let grange = Grange::new();
    std::fs::create_dir_all(grange.data()).unwrap();
    std::fs::write(grange.data().join("grange.toml"), "[node]\nname = \"from the folder\"\n").unwrap();
    let shown = grange.run(&["settings", "show", "--json"]).ok().json();
    assert_eq!(shown["node"]["name"], "from the folder");
    let shown = grange.run(&["--set", "node.name=flag", "settings", "show"]).ok().stdout;
    assert!(shown.contains("name = \"flag\"  # --set"), "{shown}");
}

#[test]
fn a_password_in_a_url_is_not_shown() {
    let grange = Grange::with(&["bus.url=nats://me:sesame@example.org:4222"]);
    for args in
        [&["settings", "show"][..], &["settings", "show", "--json"], &["settings", "explain", "bus.url"]]
    {
        let shown = grange.run(args).ok().stdout;
        assert!(shown.contains("nats://me:…@example.org:4222") && !shown.contains("sesame"), "{shown}");
    }
}

#[test]
fn explain_knows_every_key_and_helps_with_typos() {
    let grange = Grange::new();
    let text = grange.run(&["settings", "explain", "db.url"]).ok().stdout;
    assert!(text.contains("sqlite:") && text.contains("GRANGE_DB__URL"), "{text}");
    let section = grange.run(&["settings", "explain", "db"]).ok().stdout;
    assert!(section.starts_with("[db]") && section.contains("db.url"), "{section}");
    grange.run(&["settings", "explain", "db.ulr"]).fails(2, &["did you mean \"db.url\"?"]);
}
