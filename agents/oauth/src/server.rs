//! The login at an MCP server: the client that Atlas registered at the issuer, and the form in which it is kept with the tokens.

use atlas_model::CallError;
use atlas_types::SecretText;
use serde_json::{Value, json};

use crate::answer::{self, malformed};
use crate::discovery::Endpoints;
use crate::{Issuer, Request, Tokens};

/// The name that people see at the issuer.
const CLIENT_NAME: &str = "Atlas";
/// The method of clients that prove themselves in the header of a request.
const BASIC: &str = "client_secret_basic";

/// The client of a login. It has no `Debug`, because it may contain a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Client {
    pub id: String,
    pub secret: Option<SecretText>,
}

/// The request by which Atlas registers itself at an issuer (RFC 7591). None if clients cannot.
pub fn registration(endpoints: &Endpoints, redirect_uri: &str, scopes: &[String]) -> Option<Request> {
    let url = endpoints.register_url.as_deref()?;
    // Issuers of OpenID Connect take clients for web applications, which may not come back to this machine.
    let kind = if redirect_uri.starts_with("https://") { "web" } else { "native" };
    let method = match endpoints {
        Endpoints { public: true, .. } => "none",
        Endpoints { basic: true, .. } => BASIC,
        _ => "client_secret_post",
    };
    let mut body = json!({
        "application_type": kind,
        "client_name": CLIENT_NAME, "redirect_uris": [redirect_uri], "token_endpoint_auth_method": method,
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
    });
    if !scopes.is_empty() {
        body["scope"] = scopes.join(" ").into();
    }
    let body = SecretText::new(body.to_string());
    Some(Request { url: url.to_owned(), content_type: "application/json", headers: Vec::new(), body })
}

/// A client that an issuer registered. It has no `Debug`, because it may contain a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientRegistration {
    pub client: Client,
    /// Whether the client proves itself in the header of a request; none if the issuer did not say.
    pub basic: Option<bool>,
}

impl ClientRegistration {
    /// Reads the answer to a registration.
    pub fn read(status: u16, body: &[u8]) -> Result<Self, CallError> {
        let answer = answer::parse(body);
        if !(200..300).contains(&status) {
            return Err(answer::refusal(status, body, &[]));
        }
        let id = answer::text(&answer, "client_id");
        let id = id.ok_or_else(|| malformed("the answer to the registration has no client_id"))?;
        let secret = answer::text(&answer, "client_secret").map(SecretText::new);
        let basic = answer::text(&answer, "token_endpoint_auth_method").map(|method| method == BASIC);
        Ok(Self { client: Client { id: id.to_owned(), secret }, basic })
    }
}

/// What a login at an MCP server is for, and where its tokens come from. It has no `Debug`, because it contains a client.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerClient {
    /// The address of the server. Tokens go to no other one.
    pub server: String,
    /// What tokens are asked for.
    pub resource: String,
    pub issuer: String,
    pub authorize_url: String,
    pub token_url: String,
    pub scopes: Vec<String>,
    pub client: Client,
    /// The client proves itself in the header of a request.
    pub basic: bool,
}

impl ServerClient {
    /// The issuer, for requests.
    pub fn issuer(&self) -> Issuer {
        Issuer {
            authorize_url: Some(self.authorize_url.clone()),
            client_secret: self.client.secret.clone(),
            scopes: self.scopes.clone(),
            resource: Some(self.resource.clone()),
            basic: self.basic,
            ..Issuer::public(&self.client.id, &self.token_url)
        }
    }

    fn stored(&self) -> Value {
        json!({
            "server": self.server, "resource": self.resource, "issuer": self.issuer, "authorize_url": self.authorize_url,
            "token_url": self.token_url, "scopes": self.scopes, "client_id": self.client.id,
            "client_secret": self.client.secret.as_ref().map(SecretText::expose), "basic": self.basic,
        })
    }

    fn from_stored(value: &Value) -> Option<Self> {
        let text = |member: &str| answer::text(value, member).map(str::to_owned);
        let scopes = value["scopes"].as_array()?.iter().filter_map(Value::as_str);
        Some(Self {
            server: text("server")?,
            resource: text("resource")?,
            issuer: text("issuer")?,
            authorize_url: text("authorize_url")?,
            token_url: text("token_url")?,
            scopes: scopes.map(str::to_owned).collect(),
            client: Client { id: text("client_id")?, secret: text("client_secret").map(SecretText::new) },
            basic: value["basic"].as_bool()?,
        })
    }
}

/// The value of the secret of a login at an MCP server. It has no `Debug`, because it contains the tokens.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerLogin {
    /// The tokens and the client that got them.
    pub current: Option<(Tokens, ServerClient)>,
    /// The client of a login that a person has begun.
    pub begun: Option<ServerClient>,
}

impl ServerLogin {
    /// The form in which it is kept: that of [`Tokens::stored`] with the clients.
    pub fn stored(&self) -> SecretText {
        let mut value = match &self.current {
            Some((tokens, _)) => serde_json::from_str(tokens.stored().expose()).unwrap_or_default(),
            None => json!({}),
        };
        value["client"] = self.current.as_ref().map(|(_, client)| client.stored()).into();
        value["begun"] = self.begun.as_ref().map(ServerClient::stored).into();
        SecretText::new(value.to_string())
    }

    /// Reads the form in which it is kept. What cannot be read counts as absent.
    pub fn from_stored(text: &SecretText) -> Self {
        let value: Value = serde_json::from_str(text.expose()).unwrap_or_default();
        let client = |member: &str| ServerClient::from_stored(&value[member]);
        Self { current: Tokens::from_stored(text).zip(client("client")), begun: client("begun") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(register: Option<&str>) -> Endpoints {
        Endpoints {
            issuer: "https://id.example".into(),
            authorize_url: "https://id.example/a".into(),
            token_url: "https://id.example/t".into(),
            register_url: register.map(str::to_owned),
            device_url: None,
            public: true,
            basic: false,
            names_issuer: false,
            offline_scope: false,
        }
    }

    fn client(basic: bool) -> ServerClient {
        ServerClient {
            server: "https://mcp.example/mcp".into(),
            resource: "https://mcp.example/mcp".into(),
            issuer: "https://id.example".into(),
            authorize_url: "https://id.example/a".into(),
            token_url: "https://id.example/t".into(),
            scopes: vec!["read".into()],
            client: Client { id: "c/1".into(), secret: Some(SecretText::new("s:2")) },
            basic,
        }
    }

    #[test]
    fn clients_register_themselves() {
        let asked =
            registration(&endpoints(Some("https://id.example/r")), "http://127.0.0.1:1/callback", &["a".into()]);
        let asked = asked.expect("a request");
        let body: Value = serde_json::from_str(asked.body.expose()).expect("JSON");
        assert_eq!(
            (body["redirect_uris"][0].as_str(), body["scope"].as_str()),
            (Some("http://127.0.0.1:1/callback"), Some("a"))
        );
        assert_eq!(body["application_type"], "native");
        let web = registration(&endpoints(Some("https://id.example/r")), "https://atlas.example/callback", &[]);
        assert!(web.expect("a request").body.expose().contains(r#""application_type":"web""#));
        assert!(registration(&endpoints(None), "", &[]).is_none());
        assert_eq!(body["token_endpoint_auth_method"], "none");
        for (basic, method) in [(true, "client_secret_basic"), (false, "client_secret_post")] {
            let endpoints = Endpoints { public: false, basic, ..endpoints(Some("https://id.example/r")) };
            let asked = registration(&endpoints, "http://127.0.0.1:1/callback", &[]).expect("a request");
            assert!(asked.body.expose().contains(&format!(r#""token_endpoint_auth_method":"{method}""#)));
        }
        let read = |body: &[u8]| ClientRegistration::read(201, body).unwrap_or_else(|error| panic!("{error}"));
        let client = read(br#"{"client_id": "x"}"#);
        assert!(client.client.id == "x" && client.client.secret.is_none() && client.basic.is_none());
        let named = read(br#"{"client_id": "x", "token_endpoint_auth_method": "client_secret_basic"}"#);
        assert_eq!(named.basic, Some(true));
        let refused =
            |status, body: &[u8]| ClientRegistration::read(status, body).map(drop).expect_err("refused").message;
        assert_eq!(refused(201, b"{}"), "the answer to the registration has no client_id");
        assert_eq!(refused(400, br#"{"error": "invalid_redirect_uri"}"#), "invalid_redirect_uri");
    }

    #[test]
    fn tokens_are_asked_for_one_server() {
        let url =
            crate::Login::begin("http://127.0.0.1:1/callback", &[0; 64]).url(&client(false).issuer()).expect("a page");
        assert!(url.contains("&resource=https%3A%2F%2Fmcp.example%2Fmcp"), "{url}");
        let post = client(false).issuer().refresh(&SecretText::new("r"));
        assert_eq!(
            post.body.expose(),
            "grant_type=refresh_token&refresh_token=r&resource=https%3A%2F%2Fmcp.example%2Fmcp&client_id=c%2F1&client_secret=s%3A2"
        );
        // By the standard, both parts are encoded before.
        let basic = client(true).issuer().refresh(&SecretText::new("r"));
        assert!(!basic.body.expose().contains("client_"), "{}", basic.body.expose());
        assert_eq!(basic.headers, [("authorization".to_owned(), "Basic YyUyRjE6cyUzQTI=".to_owned())]);
    }

    #[test]
    fn a_login_is_read_as_it_was_kept() {
        let tokens = Tokens { access: SecretText::new("a"), refresh: None, expires_at: Some(9) };
        for login in [
            ServerLogin::default(),
            ServerLogin { current: None, begun: Some(client(true)) },
            ServerLogin { current: Some((tokens, client(false))), begun: Some(client(true)) },
        ] {
            assert!(ServerLogin::from_stored(&login.stored()) == login);
        }
        for other in ["", "[]", r#"{"access_token": "a"}"#, r#"{"client": 5}"#] {
            assert!(ServerLogin::from_stored(&SecretText::new(other)) == ServerLogin::default(), "{other}");
        }
    }
}
