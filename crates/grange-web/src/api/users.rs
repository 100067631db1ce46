//! Users and tokens.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use grange_api::wire::users::{NewToken, NewUser, PasswordChange, TokenMade, UserChange, UserSaved};
use grange_model::account::{Token, User};

use crate::Web;
use crate::caller::Caller;
use crate::error::Refusal;

pub(super) async fn list(State(web): State<Web>, Caller(who): Caller) -> Result<Json<Vec<User>>, Refusal> {
    Ok(Json(web.app.users(&who).await?))
}

pub(super) async fn show(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Result<Json<User>, Refusal> {
    Ok(Json(web.app.user(&who, &name).await?))
}

pub(super) async fn add(
    State(web): State<Web>,
    Caller(who): Caller,
    Json(new): Json<NewUser>,
) -> Result<(StatusCode, Json<UserSaved>), Refusal> {
    let (user, password) = web.app.add_user(&who, &new.name, new.role, new.password).await?;
    Ok((StatusCode::CREATED, Json(UserSaved { user, password })))
}

pub(super) async fn change(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(change): Json<UserChange>,
) -> Result<Json<UserSaved>, Refusal> {
    let user = web.app.change_user(&who, &name, change.role, change.disabled, change.edition).await?;
    Ok(Json(UserSaved { user, password: None }))
}

pub(super) async fn password(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(change): Json<PasswordChange>,
) -> Result<Json<UserSaved>, Refusal> {
    let (user, password) = web.app.set_password(&who, &name, change.password).await?;
    Ok(Json(UserSaved { user, password }))
}

pub(super) async fn tokens(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
) -> Result<Json<Vec<Token>>, Refusal> {
    Ok(Json(web.app.tokens(&who, &name).await?))
}

pub(super) async fn make_token(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(name): Path<String>,
    Json(new): Json<NewToken>,
) -> Result<(StatusCode, Json<TokenMade>), Refusal> {
    let lifetime = new.lifetime_s.map(Duration::from_secs);
    let (token, secret) = web.app.make_token(&who, &name, &new.name, lifetime).await?;
    Ok((StatusCode::CREATED, Json(TokenMade { token, secret })))
}

pub(super) async fn revoke_token(
    State(web): State<Web>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    web.app.revoke_token(&who, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
