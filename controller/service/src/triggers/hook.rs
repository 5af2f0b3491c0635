//! Calls of the addresses of webhooks: `POST /api/hooks/{id}` (compatibility §14.5).

use std::collections::BTreeMap;

use atlas_artifacts::{digest_of, hash};
use atlas_desk::on_behalf;
use atlas_objects::{SealedVersion, SecretProvider, SecretSpec};
use atlas_state::State;
use atlas_triggers::{Call, Kind, superseded};
use atlas_types::{FiredBy, ObjectKey, ObjectKind, ObjectName, RequestId, SecretText};
use atlas_vault::seal;
use bytes::Bytes;
use serde_json::{Map, Value};
use tracing::warn;

use super::firing::Wanted;
use super::{Trigger, trigger_key};
use crate::{Caller, Error, Service};

/// The headers of a call that the service looks at, in lower case.
pub const HOOK_HEADERS: [&str; 13] = atlas_triggers::SIGNED_HEADERS;

/// A call of a webhook, before anything about it is known to be right.
#[derive(Debug, Default)]
pub struct HookCall {
    pub body: Bytes,
    /// Of the [`HOOK_HEADERS`] those that are there and text.
    pub headers: BTreeMap<&'static str, String>,
    /// What the sender calls this delivery; a repeat gets the first answer.
    pub delivery: Option<String>,
}

impl HookCall {
    fn call(&self) -> Call<'_> {
        Call { body: &self.body, headers: self.headers.clone() }
    }
}

/// What a call of a webhook leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum HookAnswer {
    /// A job or run with this id.
    Started(String),
    /// Nothing is started: the sender only asked whether somebody is here, and this is the answer.
    Greeted(Value),
}

impl Service {
    /// Refuses the call of a webhook that does not exist, before its body is read.
    pub async fn check_hook(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let state = self.shared.current().await?;
        let found = trigger_key(&caller.namespace, id).ok().and_then(|key| state.object(&key).cloned());
        found.map(drop).ok_or_else(unknown)
    }

    /// Fires a webhook for a call.
    pub async fn call_hook(&self, caller: &Caller, id: &str, call: &HookCall) -> Result<HookAnswer, Error> {
        let answer = self.called(caller, id, call).await;
        if let Err(error) = &answer {
            self.shared.metrics.trigger_calls_refused.inc();
            tracing::debug!(trigger = id, error = error as &dyn std::error::Error, "a call of a webhook was refused");
        }
        answer
    }

    async fn called(&self, caller: &Caller, id: &str, call: &HookCall) -> Result<HookAnswer, Error> {
        let key = trigger_key(&caller.namespace, id).map_err(|_| unknown())?;
        let state = self.shared.read().await?;
        let trigger = Trigger::read(state.object(&key).ok_or_else(unknown)?)?;
        self.check_signature(&state, &trigger, call)?;
        let body = body_of(&call.body)?;
        let revision = trigger.object.revision;
        let accepts = |now: &Trigger| {
            // The signature was checked against this revision.
            if now.object.revision != revision {
                return Err(Error::ObjectChanged { revision: now.object.revision });
            }
            if !now.is_enabled() {
                return Err(Error::Malformed(format!("Trigger '{id}' is disabled")));
            }
            match now.definition.kind {
                Kind::Webhook => Ok(()),
                _ => Err(Error::Malformed(format!(
                    "Trigger '{id}' is type '{}', not webhook",
                    now.definition.kind.name()
                ))),
            }
        };
        accepts(&trigger)?;
        let rules = &trigger.definition.rules;
        if let Some(answer) = rules.scheme.greeting(&call.call(), &body) {
            return Ok(HookAnswer::Greeted(answer));
        }
        let input = rules.input_of(&body);
        let input = input.map_err(|path| Error::Malformed(format!("the call has no '{path}'")))?;
        let known_by = known_by(&trigger, call, &body)?;
        let wanted = Wanted { by: FiredBy::Webhook, tick: None, input: &input, known_by };
        // Anybody may call it. The job is that of whoever changed the trigger last, as if the time had fired it: nobody approves a job of his
        // own by calling without a token.
        let caller = on_behalf::principal(caller.clone(), trigger.object.by.clone());
        self.fire_wanted(&caller, id, &wanted, accepts, unknown).await.map(HookAnswer::Started)
    }

    /// The signature is checked before anything else of the call is looked at.
    fn check_signature(&self, state: &State, trigger: &Trigger, call: &HookCall) -> Result<(), Error> {
        let secrets = self.hook_secrets(state, trigger)?;
        if secrets.is_empty() {
            return Ok(());
        }
        let secrets: Vec<&str> = secrets.iter().map(SecretText::expose).collect();
        let rules = &trigger.definition.rules;
        let now = self.shared.env.clock.wall().0 / 1_000_000;
        if rules.scheme.accepts(&secrets, &call.call(), rules.replay_window_seconds, now) {
            Ok(())
        } else {
            Err(Error::BadSignature)
        }
    }

    /// The secrets that sign calls, the newest first: one of the store that was replaced counts for a while. None if calls need no signature.
    fn hook_secrets(&self, state: &State, trigger: &Trigger) -> Result<Vec<SecretText>, Error> {
        if let Some(name) = &trigger.definition.rules.hmac {
            // The caller has not shown yet that it may know anything.
            let lost = || {
                warn!(trigger = %trigger.object.key.name, secret = %name, "a call was refused: the secret of the webhook is missing");
                unknown()
            };
            let namespace = trigger.object.key.namespace.clone();
            let key = ObjectKey { namespace, kind: ObjectKind::new("secret")?, name: ObjectName::new(name)? };
            let object = state.object(&key).ok_or_else(lost)?;
            let spec = SecretSpec::read(&object.spec).map_err(|error| Error::internal("read a secret", &error))?;
            if spec.versions.is_empty() || spec.provider != SecretProvider::Store {
                return Err(lost());
            }
            return self.accepted(&key, spec.versions.iter().rev());
        }
        self.accepted(&trigger.object.key, trigger.spec.webhook_secret.iter())
    }

    /// The values of the versions that count, of `versions`, the newest first.
    fn accepted<'v>(
        &self,
        key: &ObjectKey,
        versions: impl Iterator<Item = &'v SealedVersion>,
    ) -> Result<Vec<SecretText>, Error> {
        let now = u64::try_from(self.shared.env.clock.wall().0 / 1_000_000).unwrap_or(0);
        let (mut accepted, mut newer) = (Vec::new(), None);
        for version in versions {
            if newer.is_some_and(|replaced| superseded(replaced, now)) {
                break;
            }
            let keys = self.shared.vault.keys()?;
            match seal::unseal(keys, key, version) {
                Ok(value) => accepted.push(value),
                // An older one may be sealed with a key that this controller has no more.
                Err(_) if newer.is_some() => {}
                Err(error) => return Err(Error::internal("unseal the secret of a trigger", &error)),
            }
            newer = Some(version.created);
        }
        Ok(accepted)
    }
}

/// The object in the body of a call; an empty body is an empty object.
fn body_of(body: &Bytes) -> Result<Map<String, Value>, Error> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Error::Malformed("Webhook payload must be a JSON object".to_owned())),
        Err(_) => Err(Error::Malformed("Invalid JSON".to_owned())),
    }
}

/// What a repeat of a call is known by: what its sender calls it in the way of its scheme, its signed time stamp, or what a header
/// calls it. No signature covers that header, so it does not count where there is a time stamp.
fn known_by(trigger: &Trigger, call: &HookCall, body: &Map<String, Value>) -> Result<Option<(RequestId, u64)>, Error> {
    let (rules, signed) = (&trigger.definition.rules, call.call());
    let name = rules.scheme.delivery(&signed, body);
    let name = name.or_else(|| rules.scheme.stamped(&signed, rules.replay_window_seconds));
    let Some(name) = name.or_else(|| call.delivery.clone()) else { return Ok(None) };
    let text = format!("{}\0{name}", trigger.object.uid);
    let id = RequestId::new(&format!("hook-{}", digest_of(text.as_bytes()).hex()))?;
    Ok(Some((id, hash(&call.body))))
}

fn unknown() -> Error {
    Error::UnknownObject("Webhook not found".to_owned())
}
