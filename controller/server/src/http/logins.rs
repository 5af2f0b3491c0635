//! `/api/models/{name}/login` and `/api/mcp-servers/{name}/login`: logins of models and MCP servers that give access tokens. Codes go in, and
//! no token comes out.

use atlas_oauth::Proof;
use atlas_service::{BegunLogin, Caller, DeviceLogin, Error, LoggedIn, NewLogin};
use atlas_types::SecretText;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::HttpDoor;
use super::answer::{Answer, json as answer};
use super::request::Request;

/// It has no `Debug`, because it contains codes.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", tag = "step", deny_unknown_fields)]
enum LoginBody {
    /// The code that the browser brought.
    Code { code: Box<str>, verifier: Box<str>, state: String, redirect_uri: String },
    /// Begin a login on another device.
    Device,
    /// Ask whether the person is done there.
    Poll { device_code: Box<str> },
}

/// `POST /api/models/{name}/login`.
pub(crate) async fn log_in(door: &HttpDoor, caller: &Caller, request: &mut Request, model: &str) -> Answer {
    // Without TLS, others could read a code on its way here.
    if !request.is_private(door) {
        return Err(Error::NotPrivate.into());
    }
    let caller = caller.clone().with_request_id(None);
    let value = match request.read_json(door).await? {
        LoginBody::Code { code, verifier, state, redirect_uri } => {
            let (code, verifier) = (SecretText::new(code), SecretText::new(verifier));
            shown(&door.service.log_in(&caller, model, &Proof { code, verifier, state, redirect_uri }).await?)
        }
        LoginBody::Device => {
            let device = door.service.begin_device_login(&caller, model).await?;
            json!({
                "status": "waiting", "device_code": device.code.expose(), "user_code": device.user_code,
                "verification_uri": device.verification_uri, "interval": device.interval, "expires_at": device.expires_at,
            })
        }
        LoginBody::Poll { device_code } => {
            match door.service.end_device_login(&caller, model, &SecretText::new(device_code)).await? {
                DeviceLogin::Wait { longer } => json!({ "status": "waiting", "longer": longer }),
                DeviceLogin::Done(done) => shown(&done),
            }
        }
    };
    Ok(answer(StatusCode::OK, &value))
}

/// `DELETE /api/models/{name}/login`.
pub(crate) async fn log_out(door: &HttpDoor, caller: &Caller, model: &str) -> Answer {
    door.service.log_out(caller, model).await?;
    Ok(answer(StatusCode::OK, &json!({ "status": "logged_out" })))
}

/// It has no `Debug`, because it contains codes.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", tag = "step", deny_unknown_fields)]
enum ServerLoginBody {
    /// Find the issuer.
    Begin {
        redirect_uri: String,
        client_id: Option<String>,
        client_secret: Option<String>,
        scopes: Option<Vec<String>>,
    },
    /// The code that the browser brought.
    Code { code: Box<str>, verifier: Box<str>, state: String, redirect_uri: String },
}

/// `POST /api/mcp-servers/{name}/login`.
pub(crate) async fn log_in_to_server(door: &HttpDoor, caller: &Caller, request: &mut Request, server: &str) -> Answer {
    // Without TLS, others could read a code on its way here.
    if !request.is_private(door) {
        return Err(Error::NotPrivate.into());
    }
    let caller = caller.clone().with_request_id(None);
    let value = match request.read_json(door).await? {
        ServerLoginBody::Begin { redirect_uri, client_id, client_secret, scopes } => {
            let new = NewLogin { redirect_uri, client_id, client_secret, scopes };
            let BegunLogin { issuer, authorize_url, client_id, scopes, resource, names_issuer } =
                door.service.begin_server_login(&caller, server, &new).await?;
            json!({
                "status": "waiting", "issuer": issuer, "authorize_url": authorize_url, "client_id": client_id,
                "scopes": scopes, "resource": resource, "names_issuer": names_issuer,
            })
        }
        ServerLoginBody::Code { code, verifier, state, redirect_uri } => {
            let (code, verifier) = (SecretText::new(code), SecretText::new(verifier));
            shown(
                &door.service.end_server_login(&caller, server, &Proof { code, verifier, state, redirect_uri }).await?,
            )
        }
    };
    Ok(answer(StatusCode::OK, &value))
}

/// `DELETE /api/mcp-servers/{name}/login`.
pub(crate) async fn log_out_of_server(door: &HttpDoor, caller: &Caller, server: &str) -> Answer {
    door.service.log_out_of_server(caller, server).await?;
    Ok(answer(StatusCode::OK, &json!({ "status": "logged_out" })))
}

fn shown(done: &LoggedIn) -> Value {
    json!({ "status": "logged_in", "expires_at": done.expires_at, "renewable": done.renewable })
}
