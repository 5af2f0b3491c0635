//! The credential of a request, which goes on to the MCP servers of the agent that get it.

use atlas_types::SecretText;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

/// The `Authorization` header of the HTTP request of a call, if it is a bearer for somebody else.
pub(crate) fn inbound(context: &RequestContext<RoleServer>) -> Option<SecretText> {
    of(&context.extensions.get::<http::request::Parts>()?.headers)
}

/// A token of Atlas is never passed on: whoever runs the server could use it here.
fn of(headers: &HeaderMap) -> Option<SecretText> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty();
    let is_ours = atlas_access::parts(token.trim()).is_some();
    (is_bearer && !is_ours).then(|| SecretText::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed_on(value: &str) -> Option<String> {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().expect("a header"))]);
        of(&headers).map(|bearer| bearer.expose().to_owned())
    }

    #[test]
    fn bearers_are_passed_on_but_not_those_of_atlas() {
        assert_eq!(passed_on("Bearer theirs").as_deref(), Some("Bearer theirs"));
        assert_eq!(passed_on("bearer theirs").as_deref(), Some("bearer theirs"));
        let ours = atlas_access::token("ci", [1, 2, 3, 4]);
        for value in ["Basic abc", "Bearer", "Bearer  ", &format!("Bearer {ours}"), &format!("bearer  {ours} ")] {
            assert_eq!(passed_on(value), None, "{value:?}");
        }
    }
}
