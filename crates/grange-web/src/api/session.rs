//! Logging in and out with a browser.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::Web;
use crate::caller::{Caller, SESSION_COOKIE, cookie};
use crate::error::Refusal;

#[derive(Deserialize)]
pub(super) struct LogIn {
    name: String,
    password: String,
}

/// The secret goes into a cookie that scripts cannot read; the CSRF secret goes to the page, which repeats it.
#[derive(Serialize)]
struct LoggedIn {
    user: String,
    csrf: String,
}

pub(super) async fn log_in(State(web): State<Web>, Json(form): Json<LogIn>) -> Result<Response, Refusal> {
    let session = web.app.log_in(&form.name, form.password).await?;
    let secure = if web.app.secure_cookies() { "; Secure" } else { "" };
    let cookie = format!(
        "{SESSION_COOKIE}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}{secure}",
        session.secret,
        session.lifetime.as_secs()
    );
    let body = Json(LoggedIn { user: session.who.name().to_owned(), csrf: session.csrf });
    Ok((StatusCode::CREATED, [(header::SET_COOKIE, cookie)], body).into_response())
}

pub(super) async fn log_out(
    State(web): State<Web>,
    Caller(_): Caller,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    if let Some(secret) = cookie(&headers, SESSION_COOKIE) {
        web.app.log_out(secret).await?;
    }
    let gone = format!("{SESSION_COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, gone)]).into_response())
}
