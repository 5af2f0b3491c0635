//! `/api/secrets`: values of secrets go in, and never come out. Everything else about them is at `/api/objects/secret`.

use atlas_service::{Caller, Error, NewSecret};
use atlas_types::SecretText;
use http::StatusCode;
use serde::Deserialize;

use super::HttpDoor;
use super::answer::{self, Answer};
use super::request::Request;

/// It has no `Debug`, because it contains a value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetBody {
    value: Box<str>,
    #[serde(default)]
    rotate: bool,
}

/// `PUT /api/secrets/{name}` with `{"value": ""}`. The answer is the object.
pub(crate) async fn set(door: &HttpDoor, caller: &Caller, request: &mut Request, name: &str) -> Answer {
    // Without TLS, others could read a value on its way here.
    if !request.is_private(door) {
        return Err(Error::NotPrivate.into());
    }
    let SetBody { value, rotate } = request.read_json(door).await?;
    let new = NewSecret { name: name.to_owned(), value: SecretText::new(value), rotate };
    // A repeat is sealed with another nonce, so it is another request.
    let caller = caller.clone().with_request_id(None);
    Ok(answer::body(StatusCode::OK, &door.service.set_secret(&caller, &new).await?.value))
}
