//! The credential of a request, which goes on to the MCP servers and models that get it.

use atlas_service::Caller;
use atlas_types::SecretText;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

/// The header with a credential for somebody else, beside the token of Atlas in `Authorization`.
pub(crate) const FORWARD: &str = "x-atlas-forward-authorization";

/// The caller of a request with the credential that its jobs pass on, if it has one.
pub(crate) fn passing_on(caller: &Caller, context: &RequestContext<RoleServer>) -> Caller {
    let head = context.extensions.get::<http::request::Parts>();
    let credential = head.and_then(|head| of(&head.headers, caller.is_authenticated()));
    caller.clone().with_inbound(credential)
}

/// The credential in the header for it, else that of `Authorization`, unless that one lets the caller in here. A token of Atlas is never
/// passed on: whoever runs the server could use it here.
fn of(headers: &HeaderMap, lets_in: bool) -> Option<SecretText> {
    let own = headers.get(AUTHORIZATION).filter(|_| !lets_in);
    let value = headers.get(FORWARD).or(own)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty();
    let is_ours = atlas_access::parts(token.trim()).is_some();
    (is_bearer && !is_ours).then(|| SecretText::new(value))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn passed_on(headers: &[(&str, &str)], lets_in: bool) -> Option<String> {
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().expect("a name"), value.parse().expect("a value"))
        };
        of(&headers.iter().map(header).collect(), lets_in).map(|bearer| bearer.expose().to_owned())
    }

    #[test]
    fn bearers_are_passed_on_but_not_those_of_atlas() {
        let only = |value: &str| passed_on(&[("authorization", value)], false);
        assert_eq!(only("Bearer theirs").as_deref(), Some("Bearer theirs"));
        assert_eq!(only("bearer theirs").as_deref(), Some("bearer theirs"));
        let ours = atlas_access::token("ci", [1, 2, 3, 4]);
        for value in ["Basic abc", "Bearer", "Bearer  ", &format!("Bearer {ours}"), &format!("bearer  {ours} ")] {
            assert_eq!(only(value), None, "{value:?}");
            assert_eq!(passed_on(&[(FORWARD, value)], true), None, "{value:?}");
        }
    }

    #[test]
    fn what_lets_a_caller_in_is_not_passed_on_and_another_header_is() {
        let (own, theirs) = (("authorization", "Bearer own"), (FORWARD, "Bearer theirs"));
        assert_eq!(passed_on(&[own], true), None, "such as the token of an issuer");
        for lets_in in [true, false] {
            assert_eq!(passed_on(&[own, theirs], lets_in).as_deref(), Some("Bearer theirs"));
            assert_eq!(passed_on(&[theirs], lets_in).as_deref(), Some("Bearer theirs"));
        }
    }
}
