//! Calls of the addresses of webhooks: `POST /api/hooks/{id}` (compatibility §14.5).

use atlas_objects::{SecretProvider, SecretSpec};
use atlas_state::State;
use atlas_triggers::{Kind, verify};
use atlas_types::{FiredBy, ObjectKey, ObjectKind, ObjectName, RequestId, SecretText};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::firing::Wanted;
use super::{Trigger, trigger_key};
use crate::artifacts::digest_of;
use crate::service::hash;
use crate::{Caller, Error, Service};

/// A call of a webhook, before anything about it is known to be right.
#[derive(Debug, Default)]
pub struct HookCall {
    pub body: Bytes,
    /// `X-Atlas-Signature`; empty if it is missing or not text.
    pub signature: String,
    /// `X-Atlas-Timestamp`.
    pub timestamp: Option<String>,
    /// What the sender calls this delivery; a repeat gets the first answer.
    pub delivery: Option<String>,
}

impl Service {
    /// Refuses the call of a webhook that does not exist, before its body is read.
    pub async fn check_hook(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let state = self.shared.current().await?;
        let found = trigger_key(&caller.namespace, id).ok().and_then(|key| state.object(&key).cloned());
        found.map(drop).ok_or_else(unknown)
    }

    /// Fires a webhook for a call. Returns the id of its job or run.
    pub async fn call_hook(&self, caller: &Caller, id: &str, call: &HookCall) -> Result<String, Error> {
        let answer = self.called(caller, id, call).await;
        if let Err(error) = &answer {
            self.shared.metrics.trigger_calls_refused.inc();
            tracing::debug!(trigger = id, error = error as &dyn std::error::Error, "a call of a webhook was refused");
        }
        answer
    }

    async fn called(&self, caller: &Caller, id: &str, call: &HookCall) -> Result<String, Error> {
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
        let input = trigger.definition.rules.input_of(&body);
        let input = input.map_err(|path| Error::Malformed(format!("the call has no '{path}'")))?;
        let known_by = known_by(&trigger, call)?;
        let wanted = Wanted { by: FiredBy::Webhook, tick: None, input: &input, known_by };
        // Anybody may call it. The job is that of whoever changed the trigger last, as if the time had fired it: nobody approves a job of his
        // own by calling without a token.
        let caller = Caller { principal: trigger.object.by.clone(), ..caller.clone() };
        self.fire_wanted(&caller, id, &wanted, accepts, unknown).await
    }

    /// The signature is checked before anything else of the call is looked at.
    fn check_signature(&self, state: &State, trigger: &Trigger, call: &HookCall) -> Result<(), Error> {
        let Some(secret) = self.hook_secret(state, trigger)? else { return Ok(()) };
        let refused = || Err(Error::BadSignature);
        let window = i64::from(trigger.definition.rules.replay_window_seconds);
        if window == 0 {
            return if verify(secret.expose(), &call.body, &call.signature) { Ok(()) } else { refused() };
        }
        let Some(stamp) = &call.timestamp else { return refused() };
        let signed = [stamp.as_bytes(), b".", &call.body].concat();
        let now = self.shared.env.clock.wall().0 / 1_000_000;
        let is_fresh = |stamp: i64| now.saturating_sub(stamp).saturating_abs() <= window;
        if stamp.parse().is_ok_and(is_fresh) && verify(secret.expose(), &signed, &call.signature) {
            Ok(())
        } else {
            refused()
        }
    }

    /// The secret that signs calls; none if calls need no signature.
    fn hook_secret(&self, state: &State, trigger: &Trigger) -> Result<Option<SecretText>, Error> {
        let keys = || self.shared.keys.as_ref().ok_or(Error::NoSecretsKey);
        let unsealed = |error| Error::internal("unseal the secret of a trigger", &error);
        if let Some(name) = &trigger.definition.rules.hmac {
            let lost = || Error::UnknownObject(format!("no such secret: \"{name}\""));
            let namespace = trigger.object.key.namespace.clone();
            let key = ObjectKey { namespace, kind: ObjectKind::new("secret")?, name: ObjectName::new(name)? };
            let object = state.object(&key).ok_or_else(lost)?;
            let spec = SecretSpec::read(&object.spec).map_err(|error| Error::internal("read a secret", &error))?;
            let sealed = spec.versions.last().filter(|_| spec.provider == SecretProvider::Store).ok_or_else(lost)?;
            return Ok(Some(keys()?.unseal(&key, sealed).map_err(unsealed)?));
        }
        let sealed = trigger.spec.webhook_secret.as_ref();
        sealed.map(|sealed| keys()?.unseal(&trigger.object.key, sealed).map_err(unsealed)).transpose()
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

/// What a repeat of a call is known by: what its sender calls it, or its signed time stamp.
fn known_by(trigger: &Trigger, call: &HookCall) -> Result<Option<(RequestId, u64)>, Error> {
    let stamped = trigger.definition.rules.replay_window_seconds > 0;
    let stamp = call.timestamp.as_deref().filter(|_| stamped);
    let Some(name) = call.delivery.as_deref().or(stamp) else { return Ok(None) };
    let text = format!("{}\0{name}\0{}", trigger.object.uid, if stamped { &call.signature } else { "" });
    let id = RequestId::new(&format!("hook-{}", digest_of(text.as_bytes()).hex()))?;
    Ok(Some((id, hash(&call.body))))
}

fn unknown() -> Error {
    Error::UnknownObject("Webhook not found".to_owned())
}
