//! What an operator reads when the bus cannot be opened.

use grange_base::{Chain, Clock, Period, Shutdown};
use grange_testkit::{NatsServer, ReservedPort, TcpFault, TestDatabase};

use crate::bus::State;
use crate::error::Error;
use crate::open::open;
use crate::settings::Settings;

async fn refused(settings: Settings) -> Error {
    open(&settings, None, &Clock::system(), &Shutdown::never()).await.expect_err("this cannot be opened")
}

fn settings(url: String) -> Settings {
    Settings { url, connect_timeout: Period::from_secs(1), ..Settings::default() }
}

/// For servers that answer, on a busy machine.
fn patient(url: String) -> Settings {
    Settings { url, connect_timeout: Period::from_secs(60), ..Settings::default() }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_its_password() {
    let reserved = ReservedPort::new();
    let port = reserved.number();
    for (url, shown) in [
        (format!("nats://grange:hunter2@127.0.0.1:{port}"), format!("nats://grange:***@127.0.0.1:{port}")),
        (
            format!("postgres://grange:hunter2@127.0.0.1:{port}/grange"),
            format!("postgres://grange:***@127.0.0.1:{port}/grange"),
        ),
    ] {
        let error = refused(settings(url)).await;
        assert_eq!(error.code(), "bus-unreachable");
        let text = Chain(&error).to_string();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(!format!("{error:?}").contains("hunter2"));
        assert!(
            text.starts_with(&format!(
                "cannot reach the message bus at {shown} within 1s: check that the server runs there and lets us \
                 in, or change bus.url: "
            )),
            "{text}"
        );
        assert!(text.contains("refused"), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_in_time() {
    let wire = TcpFault::before("127.0.0.1:1").await;
    wire.silence();
    for scheme in ["nats", "postgres"] {
        let error = refused(settings(format!("{scheme}://{}/grange", wire.address()))).await;
        assert_eq!(error.code(), "bus-unreachable", "{error}");
    }
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_named() {
    let Some(database) = TestDatabase::create().await else {
        return;
    };
    let error = refused(patient(format!("{}_not", database.url))).await;
    let text = Chain(&error).to_string();
    assert!(text.contains("does not exist"), "{text}");
}

#[tokio::test]
async fn bad_settings_are_refused_before_anything_is_tried() {
    let reserved = ReservedPort::new();
    let missing = Settings {
        token_file: Some("/nowhere/token".into()),
        ..settings(format!("nats://{}", reserved.address()))
    };
    for (settings, code) in [
        (settings("redis://h".into()), "bus-url"),
        (settings("postgres:".into()), "bus-no-database"),
        (Settings { environment: "MY_SITE".into(), ..Settings::default() }, "bus-environment"),
        (missing, "bus-token-file"),
    ] {
        assert_eq!(refused(settings).await.code(), code);
    }
}

#[tokio::test]
async fn a_nats_token_or_password_comes_from_its_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "hunter2\n").unwrap();
    for (options, user) in
        [(&["--auth", "hunter2"][..], ""), (&["--user", "grange", "--pass", "hunter2"], "grange@")]
    {
        let Some(server) = NatsServer::start_with(options) else {
            return;
        };
        let url = server.url().replace("//", &format!("//{user}"));
        let error = refused(patient(url.clone())).await;
        assert_eq!(error.code(), "bus-unreachable");
        assert!(Chain(&error).to_string().contains("authorization violation"), "{}", Chain(&error));
        let settings = Settings { token_file: Some(file.path().to_owned()), ..patient(url) };
        opened(&settings).await;
    }
}

#[tokio::test]
async fn an_open_bus_shows_no_password() {
    if let Some(server) = NatsServer::start_with(&["--user", "grange", "--pass", "hunter2"]) {
        let url = server.url().replace("//", "//grange:hunter2@");
        opened(&patient(url)).await;
    }
    if let Some(database) = TestDatabase::create().await {
        // The test server trusts everyone, also with a password.
        opened(&patient(database.url.replace("grange@", "grange:hunter2@"))).await;
    }
}

async fn opened(settings: &Settings) {
    let bus = open(settings, None, &Clock::system(), &Shutdown::never()).await.unwrap();
    assert_eq!(bus.state(), State::Connected);
    assert!(!bus.place().contains("hunter2") && !format!("{bus:?}").contains("hunter2"), "{bus:?}");
}
