//! Where the tokens of an MCP server come from. The server names its issuer, and the issuer its endpoints (RFC 9728 and RFC 8414). Both are
//! foreign: whatever they name is checked before anything is sent there.

use atlas_model::{CallError, check_url};
use serde_json::Value;

use crate::answer::{self, malformed};

/// The scope by which issuers of OpenID Connect are asked for tokens that can be renewed.
pub const OFFLINE_SCOPE: &str = "offline_access";

/// Most issuers, scopes and other items of a list that are read.
const ITEMS_MAX: usize = 64;

/// What the address of a server is: with whom it begins, and the path without a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Address<'a> {
    /// The scheme, the host and the port.
    origin: &'a str,
    path: &'a str,
}

impl<'a> Address<'a> {
    fn of(url: &'a str) -> Result<Self, CallError> {
        check_url(url).map_err(|why| malformed(format!("the address {:?} {why}", answer::bounded(url))))?;
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let host = url.find("://").map_or(0, |at| at + 3);
        let end = url[host..].find('/').map_or(url.len(), |at| host + at);
        Ok(Self { origin: &url[..end], path: url[end..].trim_end_matches('/') })
    }

    fn is_loopback(&self) -> bool {
        let authority = self.origin.split_once("://").map_or("", |(_, authority)| authority);
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether `other` is this address or below it.
    fn contains(&self, other: &Address<'_>) -> bool {
        let below = || other.path.strip_prefix(self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.origin.eq_ignore_ascii_case(other.origin) && below()
    }
}

/// The addresses at which a server describes itself, the best first. `challenge` is its `WWW-Authenticate` header.
pub fn resource_urls(server: &str, challenge: Option<&str>) -> Result<Vec<String>, CallError> {
    let address = Address::of(server)?;
    let named = challenge.and_then(|challenge| parameter(challenge, "resource_metadata"));
    let named =
        named.filter(|url| Address::of(url).is_ok_and(|named| named.origin.eq_ignore_ascii_case(address.origin)));
    let well_known = |path: &str| format!("{}/.well-known/oauth-protected-resource{path}", address.origin);
    let mut urls: Vec<String> = named.map(str::to_owned).into_iter().collect();
    urls.push(well_known(address.path));
    urls.push(well_known(""));
    urls.dedup();
    Ok(urls)
}

/// The scopes that a `WWW-Authenticate` header asks for.
pub fn challenged_scopes(challenge: &str) -> Option<Vec<String>> {
    let scopes = parameter(challenge, "scope")?;
    Some(scopes.split_ascii_whitespace().take(ITEMS_MAX).map(str::to_owned).collect())
}

/// A parameter of a header, with or without quotes.
fn parameter<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let starts = header.match_indices(name).map(|(at, _)| at);
    let value = |at: usize| {
        let before = header[..at].chars().next_back();
        let rest = header[at + name.len()..].trim_start().strip_prefix('=')?.trim_start();
        before.is_none_or(|before| before == ',' || before.is_whitespace()).then_some(rest)
    };
    let rest = starts.into_iter().find_map(value)?;
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map(|(value, _)| value),
        None => rest.split([',', ' ', '\t']).next().filter(|value| !value.is_empty()),
    }
}

/// What a server says about its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// What tokens are asked for: the address of the server or one above it.
    pub resource: String,
    /// The issuer.
    pub issuer: String,
    pub scopes: Vec<String>,
}

impl Resource {
    /// Reads the description of the server at `server`.
    pub fn read(body: &[u8], server: &str) -> Result<Self, CallError> {
        // It would get the tokens.
        allowed(server, server)?;
        let metadata = answer::parse(body);
        let missing = |member: &str| malformed(format!("the description of the MCP server has no {member}"));
        let resource = answer::text(&metadata, "resource").ok_or_else(|| missing("resource"))?;
        // A token for another server would be a token that this server could use there.
        if !Address::of(resource)?.contains(&Address::of(server)?) {
            return Err(malformed(format!(
                "the MCP server describes itself as {:?}, which is another server",
                answer::bounded(resource)
            )));
        }
        let issuer = texts(&metadata, "authorization_servers").into_iter().next();
        let issuer = issuer.ok_or_else(|| missing("authorization_servers"))?;
        allowed(&issuer, server)?;
        Ok(Self { resource: resource.to_owned(), issuer, scopes: texts(&metadata, "scopes_supported") })
    }
}

/// The addresses at which an issuer describes itself, in the order of the protocol.
pub fn issuer_urls(issuer: &str) -> Result<Vec<String>, CallError> {
    let Address { origin, path } = Address::of(issuer)?;
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    Ok(urls)
}

/// What an issuer says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    pub issuer: String,
    pub authorize_url: String,
    pub token_url: String,
    /// Where clients register themselves, if they may.
    pub register_url: Option<String>,
    /// Where codes for other devices come from, if the issuer has them.
    pub device_url: Option<String>,
    /// Clients may have no secret. An issuer that lists no methods is taken to allow it.
    pub public: bool,
    /// Clients prove themselves in the header of a request, and not in its body.
    pub basic: bool,
    /// The answers of the login page name the issuer (RFC 9207).
    pub names_issuer: bool,
    /// Tokens that can be renewed have to be asked for by the scope `offline_access`.
    pub offline_scope: bool,
}

impl Endpoints {
    /// Reads the description of `issuer`, which the MCP server at `server` named.
    pub fn read(body: &[u8], issuer: &str, server: &str) -> Result<Self, CallError> {
        let endpoints = Self::of_people(body, issuer, server)?;
        if !texts(&answer::parse(body), "code_challenge_methods_supported").iter().any(|method| method == "S256") {
            return Err(malformed("the issuer does not support PKCE with S256, which MCP asks for"));
        }
        Ok(endpoints)
    }

    /// Reads the description of `issuer`, where people log in for the server at `server`. Some issuers of OpenID Connect have PKCE
    /// without saying so.
    pub fn of_people(body: &[u8], issuer: &str, server: &str) -> Result<Self, CallError> {
        let metadata = answer::parse(body);
        let text = |member: &str| {
            let missing = || malformed(format!("the description of the issuer has no {member}"));
            answer::text(&metadata, member).map(str::to_owned).ok_or_else(missing)
        };
        let named = text("issuer")?;
        // Otherwise one issuer could answer for another.
        if named.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(malformed(format!("the issuer calls itself {:?}, not {issuer:?}", answer::bounded(&named))));
        }
        let authorize_url = text("authorization_endpoint")?;
        let token_url = text("token_endpoint")?;
        let register_url = answer::text(&metadata, "registration_endpoint").map(str::to_owned);
        let device_url = answer::text(&metadata, "device_authorization_endpoint").map(str::to_owned);
        for url in [&authorize_url, &token_url].into_iter().chain(&register_url).chain(&device_url) {
            allowed(url, server)?;
        }
        let methods = texts(&metadata, "token_endpoint_auth_methods_supported");
        let has = |wanted: &str| methods.iter().any(|method| method == wanted);
        // Without a list, the standard's default is the header.
        let basic = !has("client_secret_post") && (methods.is_empty() || has("client_secret_basic"));
        let public = methods.is_empty() || has("none");
        let names_issuer = metadata["authorization_response_iss_parameter_supported"] == true;
        let offline_scope = texts(&metadata, "scopes_supported").iter().any(|scope| scope == OFFLINE_SCOPE);
        let issuer = named;
        Ok(Self {
            issuer,
            authorize_url,
            token_url,
            register_url,
            device_url,
            public,
            basic,
            names_issuer,
            offline_scope,
        })
    }
}

/// Refuses addresses to which a token or a code would go without encryption, unless all is on this machine.
fn allowed(url: &str, server: &str) -> Result<(), CallError> {
    let (address, server) = (Address::of(url)?, Address::of(server)?);
    if address.origin.starts_with("https://") || (address.is_loopback() && server.is_loopback()) {
        return Ok(());
    }
    Err(malformed(format!("the address {:?} does not begin with https://", answer::bounded(url))))
}

/// A member that is a list of texts.
fn texts(metadata: &Value, member: &str) -> Vec<String> {
    let items = metadata.get(member).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).take(ITEMS_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    const SERVER: &str = "https://mcp.example/v1/mcp";

    fn shown<T: std::fmt::Debug>(result: Result<T, CallError>, expected: &Expect) {
        expected.assert_eq(&match result {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("! {}", error.message),
        });
    }

    #[test]
    fn a_server_names_where_it_describes_itself() {
        shown(
            resource_urls(SERVER, None),
            &expect![[
                r#"["https://mcp.example/.well-known/oauth-protected-resource/v1/mcp", "https://mcp.example/.well-known/oauth-protected-resource"]"#
            ]],
        );
        let challenge =
            r#"Bearer error="invalid_token", resource_metadata="https://mcp.example/meta", scope="read write""#;
        let urls = resource_urls(SERVER, Some(challenge)).expect("addresses");
        assert_eq!(urls[0], "https://mcp.example/meta");
        assert_eq!(challenged_scopes(challenge).expect("scopes"), ["read", "write"]);
        assert_eq!(challenged_scopes("Bearer scope=read, x=1").expect("scopes"), ["read"]);
        assert_eq!(challenged_scopes("Bearer myscope=read"), None);
        // Another host is not asked.
        let elsewhere = resource_urls(SERVER, Some(r#"Bearer resource_metadata="http://169.254.169.254/x""#));
        assert_eq!(elsewhere.expect("addresses").len(), 2);
        shown(
            resource_urls("file:///etc", None),
            &expect![[r#"! the address "file:///etc" does not start with http:// or https://"#]],
        );
    }

    #[test]
    fn the_description_of_a_server_is_checked() {
        let read = |body: Value| Resource::read(body.to_string().as_bytes(), SERVER);
        let sound = json!({"resource": "https://mcp.example/v1", "authorization_servers": ["https://id.example"], "scopes_supported": ["a"]});
        shown(
            read(sound.clone()),
            &expect![[
                r#"Resource { resource: "https://mcp.example/v1", issuer: "https://id.example", scopes: ["a"] }"#
            ]],
        );
        let with = |member: &str, value: Value| {
            let mut changed = sound.clone();
            changed[member] = value;
            read(changed)
        };
        for other in ["https://mcp.example/v", "https://mcp.example.evil/v1", "http://mcp.example/v1"] {
            assert!(with("resource", other.into()).is_err(), "{other}");
        }
        shown(
            with("authorization_servers", json!(["http://id.example"])),
            &expect![[r#"! the address "http://id.example" does not begin with https://"#]],
        );
        shown(
            with("authorization_servers", json!([])),
            &expect!["! the description of the MCP server has no authorization_servers"],
        );
        shown(Resource::read(b"<html>", SERVER), &expect!["! the description of the MCP server has no resource"]);
        shown(
            Resource::read(sound.to_string().as_bytes(), "http://mcp.example/v1"),
            &expect![[r#"! the address "http://mcp.example/v1" does not begin with https://"#]],
        );
    }

    #[test]
    fn an_issuer_is_asked_at_the_addresses_of_the_standard() {
        shown(
            issuer_urls("https://id.example"),
            &expect![[
                r#"["https://id.example/.well-known/oauth-authorization-server", "https://id.example/.well-known/openid-configuration"]"#
            ]],
        );
        shown(
            issuer_urls("https://id.example/t/"),
            &expect![[
                r#"["https://id.example/.well-known/oauth-authorization-server/t", "https://id.example/.well-known/openid-configuration/t", "https://id.example/t/.well-known/openid-configuration"]"#
            ]],
        );
    }

    #[test]
    fn the_description_of_an_issuer_is_checked() {
        let sound = json!({
            "issuer": "https://id.example", "authorization_endpoint": "https://id.example/a",
            "token_endpoint": "https://id.example/t", "registration_endpoint": "https://id.example/r",
            "code_challenge_methods_supported": ["plain", "S256"],
        });
        let with = |member: &str, value: Value| {
            let mut changed = sound.clone();
            changed[member] = value;
            Endpoints::read(changed.to_string().as_bytes(), "https://id.example/", SERVER)
        };
        let basic = |methods: Value| with("token_endpoint_auth_methods_supported", methods).expect("sound").basic;
        assert!(basic(Value::Null) && basic(json!(["client_secret_basic"])));
        assert!(!basic(json!(["client_secret_basic", "client_secret_post"])) && !basic(json!(["none"])));
        let public = |methods: Value| with("token_endpoint_auth_methods_supported", methods).expect("sound").public;
        assert!(public(Value::Null) && public(json!(["none", "client_secret_basic"])));
        assert!(!public(json!(["client_secret_basic"])));
        let offline = |scopes: Value| with("scopes_supported", scopes).expect("sound").offline_scope;
        assert!(offline(json!(["a", "offline_access"])) && !offline(json!(["a"])) && !offline(Value::Null));
        let names_issuer =
            |value: Value| with("authorization_response_iss_parameter_supported", value).expect("sound").names_issuer;
        assert!(names_issuer(json!(true)) && !names_issuer(json!(false)) && !names_issuer(Value::Null));
        shown(
            with("issuer", "https://other.example".into()),
            &expect![[r#"! the issuer calls itself "https://other.example", not "https://id.example/""#]],
        );
        shown(
            with("code_challenge_methods_supported", json!(["plain"])),
            &expect!["! the issuer does not support PKCE with S256, which MCP asks for"],
        );
        shown(
            with("token_endpoint", "http://127.0.0.1/t".into()),
            &expect![[r#"! the address "http://127.0.0.1/t" does not begin with https://"#]],
        );
        shown(with("token_endpoint", 5.into()), &expect!["! the description of the issuer has no token_endpoint"]);
        let local = |url: &str, server: &str| allowed(url, server).is_ok();
        assert!(local("http://127.0.0.1:1/t", "http://localhost:2/mcp") && local("http://[::1]/", "http://127.0.0.1/"));
        assert!(!local("http://10.0.0.1/t", "http://127.0.0.1/"));
    }
}
