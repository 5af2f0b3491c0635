//! Tokens of issuers of OpenID Connect ([ADR 53](../../../docs/adr/0053-tokens-of-issuers.md)). The objects of the kind `issuer` say whose tokens
//! count; this controller reads their keys when a token needs them, and keeps them.
//!
//! Requests whose tokens are checked are those of strangers: an issuer is asked at most once in 10 s, whatever they send.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use atlas_access::Access;
use atlas_desk::{Consistency, Error};
use atlas_objects::IssuerSpec;
use atlas_oidc::{
    Expectation, Keys, TokenError, TokenHolder, UncheckedToken, key_address, metadata_address, principal_of, verify,
};
use atlas_state::State;
use atlas_types::{Object, ObjectKind, Principal};

use crate::Authenticator;
use crate::grants::access;
use crate::issuer_keys::Use;

impl Authenticator {
    /// Who shows a token of an issuer. Of several issuers with one address, the first one by name that accepts the token counts.
    pub(crate) async fn sign_in(&self, token: &str) -> Result<Arc<Access>, Error> {
        let unknown = || Error::Unauthenticated("the token is not valid here");
        let seen = UncheckedToken::read(token).ok_or_else(unknown)?;
        let state = self.desk.handle.applied();
        let issuers = issuers(&state, &seen.issuer);
        if issuers.is_empty() {
            return Err(unknown());
        }
        let now = i64::try_from(self.desk.now_ms() / 1_000).unwrap_or(i64::MAX);
        let (mut refused, mut why) = (None, TokenError::UnknownKey);
        // The second time with keys that are read after the first.
        for _ in 0..2 {
            let keys = self.keys_of(&seen.issuer, refused.as_ref()).await.map_err(|why| {
                tracing::warn!(issuer = seen.issuer, why, "a token was refused");
                Error::Unauthenticated("the token cannot be checked now: see the log of the controller")
            })?;
            for (name, spec) in &issuers {
                match verify(token, &keys, &expected(spec), now) {
                    Ok(TokenHolder { principal }) => {
                        let principal = Principal::new(&principal_of(name, &principal)).map_err(|_| unknown())?;
                        return Ok(Arc::new(access(&state, principal)));
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

impl Authenticator {
    /// The addresses of all issuers whose tokens are accepted, with the client by which people log in there. None while authentication is
    /// off.
    pub async fn issuer_addresses(&self) -> Result<BTreeMap<String, Option<String>>, Error> {
        if self.authentication.is_none() {
            return Ok(BTreeMap::new());
        }
        let state = self.desk.state(Consistency::Stale).await?;
        let mut found = BTreeMap::new();
        for object in state.objects_of_kind(&ObjectKind::new("issuer")?) {
            let Ok(spec) = IssuerSpec::read(&object.spec) else { continue };
            let client: &mut Option<String> = found.entry(spec.url).or_default();
            *client = client.take().or(spec.login_client);
        }
        Ok(found)
    }
}

impl Authenticator {
    /// The keys of an issuer, other ones than `refused`. An error says why there are none.
    async fn keys_of(&self, url: &str, refused: Option<&Arc<Keys>>) -> Result<Arc<Keys>, String> {
        let entry = self.issuer_keys.entry(url);
        let decide = || entry.known().decide(self.desk.env.clock.monotonic(), refused);
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
        let now = self.desk.env.clock.monotonic();
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
