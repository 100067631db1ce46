//! Logging in with a browser.

use serde_json::{Value, json};

use crate::harness::Grange;

#[tokio::test]
async fn a_session_needs_the_password_and_a_change_needs_its_page() {
    let grange = Grange::new();
    let node = grange.up();
    let secret = grange.file("password", "correct horse battery\n");
    grange.run(&["users", "passwd", "admin", "--password-file", secret.to_str().unwrap()]).ok();
    let base = format!("{}/api/v1", node.url("admin"));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();

    for (name, password) in [("admin", "wrong password"), ("nobody", "correct horse battery"), ("a b", "x")] {
        let body = json!({ "name": name, "password": password });
        let answer = http.post(format!("{base}/session")).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 401);
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], "wrong-password");
    }

    let body = json!({ "name": "admin", "password": "correct horse battery" });
    let answer = http.post(format!("{base}/session")).json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    let set = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Strict"), "{set}");
    let cookie = set.split(';').next().unwrap().to_owned();
    let csrf = answer.json::<Value>().await.unwrap()["csrf"].as_str().unwrap().to_owned();

    let get = async |cookie: &str| {
        http.get(format!("{base}/users")).header("cookie", cookie).send().await.unwrap().status().as_u16()
    };
    assert_eq!(get(&cookie).await, 200);
    assert_eq!(get("grange_session=grange_guess").await, 401);

    let add = async |csrf: &str| {
        let body = json!({ "name": "anna", "role": "viewer" });
        let call = http.post(format!("{base}/users")).header("cookie", &cookie).header("x-csrf-token", csrf);
        call.json(&body).send().await.unwrap().status().as_u16()
    };
    assert_eq!(add("").await, 403);
    assert_eq!(add("grange_guess").await, 403);
    assert_eq!(add(&csrf).await, 201);

    let out = http.delete(format!("{base}/session")).header("cookie", &cookie).header("x-csrf-token", &csrf);
    assert_eq!(out.send().await.unwrap().status(), 204);
    assert_eq!(get(&cookie).await, 401);
}
