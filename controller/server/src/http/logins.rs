//! `/api/models/{name}/login` and `/api/mcp-servers/{name}/login`: logins of models and MCP servers that give access tokens. Codes go in, and
//! no token comes out.

use atlas_api::types::{LoginProgress, ServerLoginProgress};
use atlas_oauth::Proof;
use atlas_service::{BegunLogin, Caller, DeviceLogin, Error, LoggedIn, NewLogin};
use atlas_types::SecretText;
use http::StatusCode;
use serde::Deserialize;

use super::HttpDoor;
use super::answer::{Answer, body};
use super::request::Request;

/// The words of a status.
const WAITING: &str = "waiting";
const LOGGED_IN: &str = "logged_in";
const LOGGED_OUT: &str = "logged_out";

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
    let progress = match request.read_json(door).await? {
        LoginBody::Code { code, verifier, state, redirect_uri } => {
            let (code, verifier) = (SecretText::new(code), SecretText::new(verifier));
            logged_in(&door.service.log_in(&caller, model, &Proof { code, verifier, state, redirect_uri }).await?)
        }
        LoginBody::Device => {
            let device = door.service.begin_device_login(&caller, model).await?;
            LoginProgress {
                status: WAITING.to_owned(),
                device_code: Some(device.code.expose().to_owned()),
                user_code: Some(device.user_code),
                verification_uri: Some(device.verification_uri),
                interval: Some(device.interval),
                expires_at: Some(Some(device.expires_at)),
                ..LoginProgress::default()
            }
        }
        LoginBody::Poll { device_code } => {
            match door.service.end_device_login(&caller, model, &SecretText::new(device_code)).await? {
                DeviceLogin::Wait { longer } => {
                    LoginProgress { status: WAITING.to_owned(), longer: Some(longer), ..LoginProgress::default() }
                }
                DeviceLogin::Done(done) => logged_in(&done),
            }
        }
    };
    Ok(body(StatusCode::OK, &progress))
}

/// `DELETE /api/models/{name}/login`.
pub(crate) async fn log_out(door: &HttpDoor, caller: &Caller, model: &str) -> Answer {
    door.service.log_out(caller, model).await?;
    Ok(body(StatusCode::OK, &LoginProgress { status: LOGGED_OUT.to_owned(), ..LoginProgress::default() }))
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
    let progress = match request.read_json(door).await? {
        ServerLoginBody::Begin { redirect_uri, client_id, client_secret, scopes } => {
            let new = NewLogin { redirect_uri, client_id, client_secret, scopes };
            let BegunLogin { issuer, authorize_url, client_id, scopes, resource, names_issuer } =
                door.service.begin_server_login(&caller, server, &new).await?;
            ServerLoginProgress {
                status: WAITING.to_owned(),
                issuer: Some(issuer),
                authorize_url: Some(authorize_url),
                client_id: Some(client_id),
                scopes: Some(scopes),
                resource: Some(resource),
                names_issuer: Some(names_issuer),
                ..ServerLoginProgress::default()
            }
        }
        ServerLoginBody::Code { code, verifier, state, redirect_uri } => {
            let (code, verifier) = (SecretText::new(code), SecretText::new(verifier));
            let proof = Proof { code, verifier, state, redirect_uri };
            logged_in_to_server(&door.service.end_server_login(&caller, server, &proof).await?)
        }
    };
    Ok(body(StatusCode::OK, &progress))
}

/// `DELETE /api/mcp-servers/{name}/login`.
pub(crate) async fn log_out_of_server(door: &HttpDoor, caller: &Caller, server: &str) -> Answer {
    door.service.log_out_of_server(caller, server).await?;
    Ok(body(StatusCode::OK, &ServerLoginProgress { status: LOGGED_OUT.to_owned(), ..ServerLoginProgress::default() }))
}

fn logged_in(done: &LoggedIn) -> LoginProgress {
    LoginProgress {
        status: LOGGED_IN.to_owned(),
        expires_at: Some(done.expires_at),
        renewable: Some(done.renewable),
        ..LoginProgress::default()
    }
}

fn logged_in_to_server(done: &LoggedIn) -> ServerLoginProgress {
    ServerLoginProgress {
        status: LOGGED_IN.to_owned(),
        expires_at: Some(done.expires_at),
        renewable: Some(done.renewable),
        ..ServerLoginProgress::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_tells_whether_its_token_expires() {
        let written = |expires_at| {
            let done = LoggedIn { expires_at, renewable: false };
            let texts = (serde_json::to_string(&logged_in(&done)), serde_json::to_string(&logged_in_to_server(&done)));
            let texts = (texts.0.expect("JSON"), texts.1.expect("JSON"));
            assert_eq!(texts.0, texts.1);
            texts.0
        };
        assert_eq!(written(Some(7)), r#"{"status":"logged_in","expires_at":7,"renewable":false}"#);
        assert_eq!(written(None), r#"{"status":"logged_in","expires_at":null,"renewable":false}"#);
    }
}
