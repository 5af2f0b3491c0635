//! The keys of issuers of OpenID Connect, as this controller has read them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_oidc::Keys;

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

/// What is known of one issuer.
#[derive(Default)]
pub(crate) struct Entry {
    pub(crate) known: Mutex<Known>,
    /// Held while the issuer is asked, so that it is asked once.
    pub(crate) asking: tokio::sync::Mutex<()>,
}

/// Its keys.
#[derive(Default, Clone)]
pub(crate) struct Known {
    /// The keys, and when they were read.
    pub(crate) keys: Option<(Arc<Keys>, Duration)>,
    /// When the issuer was asked last, and why it gave no keys.
    pub(crate) asked: Option<Duration>,
    pub(crate) failure: Option<String>,
}

impl IssuerKeys {
    pub(crate) fn entry(&self, url: &str) -> Arc<Entry> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= ISSUERS_MAX && !entries.contains_key(url) {
            entries.clear();
        }
        Arc::clone(entries.entry(url.to_owned()).or_default())
    }
}

impl Entry {
    pub(crate) fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What to do with what is known of an issuer.
pub(crate) enum Use {
    Keys(Arc<Keys>),
    Ask,
    Fail(String),
}

impl Known {
    /// `refused` is set if these keys did not have that of a token, so that it may be a new one.
    pub(crate) fn decide(&self, now: Duration, refused: Option<&Arc<Keys>>) -> Use {
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
