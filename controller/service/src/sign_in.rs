//! Tokens of issuers of OpenID Connect ([ADR 53](../../../docs/adr/0053-tokens-of-issuers.md)). The objects of the kind `issuer` say whose tokens
//! count; this controller reads their keys when a token needs them, and keeps them.
//!
//! Requests whose tokens are checked are those of strangers: an issuer is asked at most once in [`RETRY_AFTER`], whatever they send.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_access::Access;
use atlas_objects::{GrantSpec, IssuerSpec};
use atlas_oidc::{Expectation, Keys, UncheckedToken, TokenError, TokenHolder, key_address, metadata_address, principal_of, verify};
use atlas_state::State;
use atlas_types::{Object, ObjectKind, Principal};

use crate::service::Shared;
use crate::{Consistency, Error, Service, access};

/// How long keys count before they are read again.
const FRESH: Duration = Duration::from_secs(3_600);
/// How long keys still count while their issuer cannot be reached.
const KEPT: Duration = Duration::from_secs(24 * 3_600);
/// The shortest time between two questions to one issuer.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// Most issuers whose keys are kept.
const ISSUERS_MAX: usize = 64;

/// The keys of issuers, by address.
#[derive(Default)]
pub(crate) struct IssuerKeys(Mutex<BTreeMap<String, Arc<Entry>>>);

#[derive(Default)]
struct Entry {
    known: Mutex<Known>,
    /// Held while the issuer is asked, so that it is asked once.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default, Clone)]
struct Known {
    /// The keys, and when they were read.
    keys: Option<(Arc<Keys>, Duration)>,
    /// When the issuer was asked last, and why it gave no keys.
    asked: Option<Duration>,
    failure: Option<String>,
}

impl IssuerKeys {
    fn entry(&self, url: &str) -> Arc<Entry> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= ISSUERS_MAX && !entries.contains_key(url) {
            entries.clear();
        }
        Arc::clone(entries.entry(url.to_owned()).or_default())
    }
}

impl Entry {
    fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What to do with what is known of an issuer.
enum Use {
    Keys(Arc<Keys>),
    Ask,
    Fail(String),
}

impl Known {
    /// `refused` is set if these keys did not have that of a token, so that it may be a new one.
    fn decide(&self, now: Duration, refused: Option<&Arc<Keys>>) -> Use {
        let is_new = |keys: &Arc<Keys>| refused.is_none_or(|refused| !Arc::ptr_eq(refused, keys));
        let age = |read: Duration| now.saturating_sub(read);
        if let Some((keys, read)) = &self.keys
            && is_new(keys)
            && age(*read) < FRESH
        {
            return Use::Keys(Arc::clone(keys));
        }
        if self.asked.is_none_or(|asked| age(asked) >= RETRY_AFTER) {
            return Use::Ask;
        }
        match &self.keys {
            Some((keys, read)) if is_new(keys) && age(*read) < KEPT => Use::Keys(Arc::clone(keys)),
            Some(_) if refused.is_some() => Use::Fail("no key of the issuer has signed the token".to_owned()),
            _ => Use::Fail(self.failure.clone().unwrap_or_else(|| "the issuer gave no keys".to_owned())),
        }
    }
}

impl Service {
    /// Who shows a token of an issuer. Of several issuers with one address, the first one by name that accepts the token counts.
    pub(crate) async fn sign_in(&self, token: &str) -> Result<Arc<Access>, Error> {
        let unknown = || Error::Unauthenticated("the token is not valid here");
        let seen = UncheckedToken::read(token).ok_or_else(unknown)?;
        let state = self.handle().applied();
        let issuers = issuers(&state, &seen.issuer);
        if issuers.is_empty() {
            return Err(unknown());
        }
        let now = i64::try_from(self.now_ms() / 1_000).unwrap_or(i64::MAX);
        let (mut refused, mut why) = (None, TokenError::UnknownKey);
        // The second time with keys that are read after the first.
        for _ in 0..2 {
            let keys = self.shared.keys_of(&seen.issuer, refused.as_ref()).await.map_err(|why| {
                tracing::warn!(issuer = seen.issuer, why, "a token was refused");
                Error::Unauthenticated("the token cannot be checked now: see the log of the controller")
            })?;
            for (name, spec) in &issuers {
                match verify(token, &keys, &expected(spec), now) {
                    Ok(TokenHolder { principal }) => {
                        let principal = Principal::new(&principal_of(name, &principal)).map_err(|_| unknown())?;
                        return Ok(Arc::new(access::access(&state, principal)));
                    }
                    Err(error) => why = error,
                }
            }
            if why != TokenError::UnknownKey {
                break;
            }
            refused = Some(keys);
        }
        tracing::debug!(issuer = seen.issuer, %why, "a token was refused");
        Err(match why {
            TokenError::Expired => Error::Unauthenticated("the token has expired"),
            TokenError::Audience => Error::Unauthenticated("the token is for another audience"),
            _ => unknown(),
        })
    }
}

impl Service {
    /// The addresses of all issuers whose tokens are accepted, with the client by which people log in there. None while authentication is
    /// off.
    pub async fn issuer_addresses(&self) -> Result<BTreeMap<String, Option<String>>, Error> {
        if self.shared.authentication.is_none() {
            return Ok(BTreeMap::new());
        }
        let state = self.state(Consistency::Stale).await?;
        let mut found = BTreeMap::new();
        for object in state.objects_of_kind(&ObjectKind::new("issuer")?) {
            let Ok(spec) = IssuerSpec::read(&object.spec) else { continue };
            let client: &mut Option<String> = found.entry(spec.url).or_default();
            *client = client.take().or(spec.login_client);
        }
        Ok(found)
    }
}

impl Shared {
    /// The keys of an issuer, other ones than `refused`. An error says why there are none.
    async fn keys_of(&self, url: &str, refused: Option<&Arc<Keys>>) -> Result<Arc<Keys>, String> {
        let entry = self.issuer_keys.entry(url);
        let decide = || entry.known().decide(self.env.clock.monotonic(), refused);
        match decide() {
            Use::Keys(keys) => return Ok(keys),
            Use::Fail(why) => return Err(why),
            Use::Ask => {}
        }
        let _asking = entry.asking.lock().await;
        // Somebody else may have asked meanwhile.
        match decide() {
            Use::Keys(keys) => return Ok(keys),
            Use::Fail(why) => return Err(why),
            Use::Ask => {}
        }
        let read = self.read_keys(url).await;
        let now = self.env.clock.monotonic();
        let mut known = entry.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.asked = Some(now);
        match read {
            Ok(keys) => {
                let keys = Arc::new(keys);
                (known.keys, known.failure) = (Some((Arc::clone(&keys), now)), None);
                Ok(keys)
            }
            Err(why) => {
                known.failure = Some(why);
                match known.decide(now, refused) {
                    Use::Keys(keys) => Ok(keys),
                    Use::Fail(why) => Err(why),
                    Use::Ask => Err("the issuer gave no keys".to_owned()),
                }
            }
        }
    }

    async fn read_keys(&self, url: &str) -> Result<Keys, String> {
        let read = async |address: String| {
            let found = self.issuers.fetch(&address).await.map_err(|why| format!("{address}: {why}"))?;
            if found.status == 200 { Ok(found.body) } else { Err(format!("{address} answered {}", found.status)) }
        };
        let address = metadata_address(url);
        let document = read(address.clone()).await?;
        let keys = key_address(url, &document).map_err(|error| format!("the document at {address}: {error}"))?;
        let document = read(keys.clone()).await?;
        Keys::read(&document).map_err(|error| format!("the document at {keys}: {error}"))
    }
}

fn expected(spec: &IssuerSpec) -> Expectation<'_> {
    Expectation {
        issuer: &spec.url,
        audiences: &spec.audiences,
        principal_claim: &spec.principal_claim,
        claims: &spec.claims,
    }
}

/// The issuers with an address, in the order of their names.
fn issuers(state: &State, url: &str) -> Vec<(String, IssuerSpec)> {
    let Ok(kind) = ObjectKind::new("issuer") else { return Vec::new() };
    let read = |object: &Arc<Object>| Some((object.key.name.to_string(), IssuerSpec::read(&object.spec).ok()?));
    let mut found: Vec<_> = state.objects_of_kind(&kind).filter_map(read).filter(|(_, spec)| spec.url == url).collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// What the issuer of a principal grants all of its principals.
pub(crate) fn grants_of_issuer(state: &State, principal: &Principal) -> Vec<GrantSpec> {
    let Some((name, _)) = principal.as_str().split_once(':') else { return Vec::new() };
    let spec = access::key("issuer", name).and_then(|key| IssuerSpec::read(&state.object(&key)?.spec).ok());
    spec.map(|spec| spec.grants).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn keys() -> Arc<Keys> {
        let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        Arc::new(Keys::read(key.as_bytes()).expect("a key"))
    }

    #[test]
    fn an_issuer_is_asked_rarely() {
        let word = |known: &Known, now, refused: Option<&Arc<Keys>>| match known.decide(seconds(now), refused) {
            Use::Keys(_) => "keys",
            Use::Ask => "ask",
            Use::Fail(_) => "fail",
        };
        assert_eq!(word(&Known::default(), 5, None), "ask");
        let failed = Known { asked: Some(seconds(5)), failure: Some("away".to_owned()), keys: None };
        assert_eq!((word(&failed, 14, None), word(&failed, 15, None)), ("fail", "ask"));
        let old = keys();
        let known = Known { keys: Some((Arc::clone(&old), seconds(5))), asked: Some(seconds(5)), failure: None };
        assert_eq!((word(&known, 3_604, None), word(&known, 3_605, None)), ("keys", "ask"));
        // A token with an unknown key is a reason to ask, but not again and again.
        assert_eq!((word(&known, 14, Some(&old)), word(&known, 15, Some(&old))), ("fail", "ask"));
        assert_eq!(word(&known, 14, Some(&keys())), "keys");
        // While the issuer is away, its keys count for a day.
        let away = Known { asked: Some(seconds(86_400)), failure: Some("away".to_owned()), ..known };
        assert_eq!((word(&away, 86_404, None), word(&away, 86_405, None)), ("keys", "fail"));
    }
}
