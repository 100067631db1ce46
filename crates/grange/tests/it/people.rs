//! Users, tokens and the record of changes, with and without a running node.

use crate::harness::Grange;

#[test]
fn users_are_kept_with_and_without_a_node() {
    let grange = Grange::new();
    let added = grange.run(&["users", "add", "Anna", "--role", "curator"]).ok().stdout;
    assert!(added.contains("Added anna (curator)") && added.contains("shown only now"), "{added}");
    let node = grange.up();
    let secret = grange.file("password", "correct horse battery\n");
    let file = secret.to_str().unwrap();
    grange.run(&["users", "add", "bo", "--role", "viewer", "--password-file", file]).ok();
    grange.run(&["users", "disable", "anna"]).ok();
    assert_eq!(node.stop(), 0);

    let users = grange.run(&["users", "list", "--json"]).ok().json();
    let shown: Vec<_> = users
        .as_array()
        .unwrap()
        .iter()
        .map(|user| format!("{} {} {}", user["name"], user["role"], user["disabled_at"].is_string()))
        .collect();
    assert_eq!(shown, ["\"anna\" \"curator\" true", "\"bo\" \"viewer\" false"]);

    // A first user was there before the node's first start, so it made no admin.
    let changes = grange.run(&["changes", "--json"]).ok().json();
    let acts: Vec<_> = changes["changes"]
        .as_array()
        .unwrap()
        .iter()
        // What a new Grange ships with is on record as well, as the node's own act.
        .filter(|change| change["subject"].as_str().is_some_and(|subject| subject.starts_with("user:")))
        .map(|change| format!("{} {} {}", change["who"], change["via"], change["subject"]))
        .collect();
    assert_eq!(acts.len(), 3, "{acts:?}");
    // The account that runs the tests, and not what the environment says.
    let who: Vec<_> = acts.iter().map(|act| act.split(" \"user:").next().unwrap_or_default()).collect();
    assert!(who.iter().all(|one| *one == who[0] && one.ends_with(" \"local\"")), "{acts:?}");
    assert!(!who[0].contains("tester"), "{acts:?}");
    assert!(!changes.to_string().contains("argon2"), "no hash in the record of changes");
}

#[test]
fn what_cannot_be_done_says_why_and_with_which_code() {
    let grange = Grange::new();
    grange.run(&["users", "add", "anna", "--role", "admin"]).ok();
    grange.run(&["users", "add", "anna", "--role", "viewer"]).fails(4, &["already", "anna"]);
    grange.run(&["users", "add", "an na", "--role", "viewer"]).fails(2, &["cannot be a user name"]);
    grange.run(&["users", "add", "x", "--role", "king"]).fails(2, &["king", "curator"]);
    grange.run(&["users", "passwd", "nobody"]).fails(3, &["nobody"]);
    grange.run(&["users", "disable", "anna"]).fails(4, &["last admin"]);
    grange.run(&["users", "revoke", "not-an-id"]).fails(3, &["not-an-id"]);
    let short = grange.file("short", "short\n");
    let file = short.to_str().unwrap();
    grange.run(&["users", "passwd", "anna", "--password-file", file]).fails(2, &["at least 10 characters"]);
    grange.run(&["users", "passwd", "anna", "--password-file", "/nowhere"]).fails(1, &["/nowhere"]);
}

#[test]
fn a_token_may_do_what_its_user_may_until_it_is_revoked() {
    let grange = Grange::new();
    let node = grange.up();
    let admin = node.url("admin");
    grange.run(&["users", "add", "olga", "--role", "operator"]).ok();
    let token = grange.run(&["users", "token", "olga", "--for", "tests"]).ok().stdout;
    let file = grange.file("token", &token);
    let remote = |args: &[&str]| {
        let mut all = vec!["--server", &admin, "--token-file", file.to_str().unwrap()];
        all.extend(args);
        grange.run(&all)
    };
    let nodes = remote(&["nodes", "--json"]).ok().json();
    assert_eq!(nodes[0]["state"], "alive");
    remote(&["users", "list"]).fails(4, &["operator", "manage-users"]);
    let tokens = grange.run(&["users", "tokens", "olga", "--json"]).ok().json();
    assert!(tokens[0]["last_used_at"].is_string(), "{tokens}");
    assert!(!tokens.to_string().contains(token.trim()), "the secret is told once");
    grange.run(&["users", "revoke", tokens[0]["id"].as_str().unwrap()]).ok();
    remote(&["nodes"]).fails(4, &["log in first"]);
    // And a disabled user's token stops working without being revoked.
    let token = grange.run(&["users", "token", "olga"]).ok().stdout;
    std::fs::write(&file, token).unwrap();
    remote(&["nodes"]).ok();
    grange.run(&["users", "disable", "olga"]).ok();
    remote(&["nodes"]).fails(4, &["log in first"]);
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let grange = Grange::new();
    let file = grange.file("token", "x");
    let args = ["--server", "http://127.0.0.1:1", "--token-file", file.to_str().unwrap(), "nodes"];
    grange.run(&args).fails(1, &["cannot reach http://127.0.0.1:1"]);
    grange.run(&["--server", "http://127.0.0.1:1", "nodes"]).fails(2, &["--token-file"]);
}

#[test]
fn no_token_is_passed_by_where_the_data_folder_is_read() {
    let grange = Grange::new();
    let file = grange.file("token", "x");
    let file = file.to_str().unwrap();
    for kind in ["cdx", "full", "dedup"] {
        let args = ["--token-file", file, "index", "jobs", "7", "--kind", kind];
        grange.run(&args).fails(2, &["cannot read the index of jobs with --token-file"]);
        let args = [&["--server", "http://127.0.0.1:1"], &args[..]].concat();
        grange.run(&args).fails(2, &["cannot read the index of jobs with --server"]);
    }
    grange.run(&["--token-file", file, "db", "migrate"]).fails(2, &["--token-file"]);
    grange.run(&["--token-file", file, "access", "ls"]).fails(2, &["name it with --server"]);
}
