//! Logging in, as the engine does it: a challenge is answered, a form is sent, the answer is judged.

mod fetch_server;

use fetch_server::{Act, Client, Server, send, settings};
use grange_crawl::fetch::Request;
use grange_crawl::fetch::auth::{Credentials, Session, challenges, strongest};
use grange_crawl::fetch::login::{FormLogin, FormMethod, SuccessCheck};

#[tokio::test]
async fn a_challenge_is_answered_and_its_nonce_used_again() {
    let challenge = "HTTP/1.1 401 Who?\r\nWWW-Authenticate: Basic realm=\"r\"\r\n\
        WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256\r\nContent-Length: 0\r\n\r\n";
    let fine = || send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let server = Server::start(vec![send(challenge), Act::Next, fine(), Act::Next, fine()]).await;
    let client = Client::new(&settings());
    let fetched = client.get(server.url("/a?b")).await;
    assert_eq!(fetched.status.0, 401);
    let found = challenges(fetched.http.as_ref().unwrap().all("WWW-Authenticate"));
    let credentials = Credentials { user: "u".to_owned(), password: "secret".to_owned() };
    assert!(!format!("{credentials:?}").contains("secret"));
    let mut session = Session::new(strongest(&found).unwrap().clone(), credentials);
    for path in ["/a?b", "/c"] {
        let mut request = Request::get(server.url(path));
        request.authorization = Some(session.authorization("GET", request.target()));
        assert_eq!(client.fetcher.fetch(&request).await.unwrap().status.0, 200);
    }
    let sent = server.requests();
    assert!(sent[1].contains("Authorization: Digest username=\"u\", realm=\"r\", nonce=\"n\", uri=\"/a?b\""));
    assert!(sent[1].contains("nc=00000001") && sent[2].contains("nc=00000002"));
    assert!(!sent.concat().contains("secret"));
}

#[tokio::test]
async fn a_form_is_sent_and_its_answer_judged() {
    let welcome = "HTTP/1.1 302 In\r\nSet-Cookie: sid=7\r\nLocation: /\r\nContent-Length: 7\r\n\r\nWelcome";
    let refused = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nwrong password";
    let check = |change: fn(&mut SuccessCheck)| {
        let mut check = SuccessCheck::default();
        change(&mut check);
        check
    };
    for (reply, success, verdict) in [
        (welcome, SuccessCheck::default(), Ok(())),
        (welcome, check(|c| c.sets_cookie = Some("sid".to_owned())), Ok(())),
        (welcome, check(|c| c.sets_cookie = Some("si".to_owned())), Err("no cookie si was set")),
        (welcome, check(|c| c.statuses = vec![200]), Err("the status is 302")),
        (welcome, check(|c| c.page_matches = Some("(?i)welcome".to_owned())), Ok(())),
        (refused, SuccessCheck::default(), Ok(())),
        (refused, check(|c| c.page_lacks = Some("wrong p".to_owned())), Err("the page holds wrong p")),
        (
            refused,
            check(|c| c.page_matches = Some("Hello".to_owned())),
            Err("the page holds nothing like Hello"),
        ),
        ("nonsense", check(|c| c.statuses = vec![302]), Err("the status is 200")),
    ] {
        let server = Server::start(vec![send(reply), Act::Close]).await;
        let client = Client::new(&settings());
        let login = FormLogin {
            login_url: server.url("/login").to_string(),
            method: FormMethod::Post,
            fields: vec![("user".to_owned(), "u".to_owned()), ("pass".to_owned(), "p&q".to_owned())],
            page_url: None,
            success,
        };
        let mut fetched = client.fetcher.fetch(&login.request().unwrap()).await.unwrap();
        assert_eq!(login.verdict(&mut fetched), verdict.map_err(str::to_owned), "{login:?}");
        assert!(server.requests()[0].ends_with("\r\n\r\nuser=u&pass=p%26q"));
        assert_eq!(client.fetcher.cookies().len(), usize::from(reply == welcome));
    }
}
