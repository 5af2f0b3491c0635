//! Who may do what at this door, `/api/auth/whoami` and `/api/auth/tokens`.

use std::time::Duration;

use atlas_access::Right;
use atlas_api::types::AccessToken;
use atlas_service::{Caller, Error, NewToken};
use http::StatusCode;
use http::header::AUTHORIZATION;
use serde::Deserialize;

use super::HttpDoor;
use super::answer::{self, Answer, Problem};
use super::request::Request;
use crate::identity;

/// How long a token is valid if the request does not say, in seconds: 90 days.
const VALID_BY_DEFAULT: u64 = 90 * 24 * 3_600;
/// The longest validity of a token, in seconds: ten years.
const VALID_FOR_MAX: u64 = 10 * 366 * 24 * 3_600;

/// The caller of a request. What needs no right needs no token either, and a wrong one counts as none there.
pub(crate) async fn caller(door: &HttpDoor, request: &Request, right: Right) -> Result<Caller, Error> {
    match door.service.authenticate(authorization(request)).await {
        Err(_) if right == Right::Public => Ok(identity::nobody()),
        access => Ok(identity::http(access?)),
    }
}

/// The header by which a request shows a token. Bytes that are no text are no token.
pub(crate) fn authorization(request: &Request) -> Option<&str> {
    request.header(AUTHORIZATION.as_str())
}

/// `GET /api/auth/whoami`.
pub(crate) async fn whoami(door: &HttpDoor, request: &Request) -> Answer {
    let access = door.service.authenticate(authorization(request)).await?;
    Ok(answer::body(StatusCode::OK, &door.service.whoami(&identity::http(access))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    name: String,
    principal: Option<String>,
    description: Option<String>,
    /// Null is for ever. What says nothing gets a token that ends.
    #[serde(default = "valid_by_default")]
    valid_for_s: Option<u64>,
}

#[expect(clippy::unnecessary_wraps, reason = "the default of a member that may be null")]
fn valid_by_default() -> Option<u64> {
    Some(VALID_BY_DEFAULT)
}

/// `POST /api/auth/tokens`. The answer has the text of the token, which is nowhere else.
pub(crate) async fn create(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let CreateBody { name, principal, description, valid_for_s } = request.read_json(door).await?;
    if valid_for_s.is_some_and(|seconds| seconds == 0 || seconds > VALID_FOR_MAX) {
        return Err(Problem::malformed(format!("'valid_for_s' must be from 1 to {VALID_FOR_MAX}")));
    }
    let principal = principal.unwrap_or_else(|| name.clone());
    let new = NewToken { name, principal, description, valid_for: valid_for_s.map(Duration::from_secs) };
    let created = door.service.create_token(caller, &new).await?;
    let token = AccessToken { token: created.text.expose().to_owned(), object: created.object.value };
    Ok(answer::body(StatusCode::CREATED, &token))
}

#[cfg(test)]
mod tests;
