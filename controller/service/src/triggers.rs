//! Triggers: making and changing them, and what clients see of them (compatibility §14 and §15.3).

mod deliveries;
mod firing;
mod hook;
mod leader;
mod members;
mod preview;

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_desk::requests;
use atlas_objects::{SealedVersion, TriggerSpec, TriggerStatus};
use atlas_records::View;
use atlas_registry::unknown_agent;
use atlas_state::State;
use atlas_triggers::{Before, Definition, Kind, Rules, Target};
use atlas_types::{
    AgentName, Command, Expect, Namespace, Object, ObjectKey, ObjectKind, ObjectName, PutObject, RequestId,
    SPEC_BYTES_MAX, SecretText, Timestamp,
};
use atlas_vault::seal;
use serde_json::{Map, Value, json};

use crate::{Caller, Consistency, Error, Service};

pub use self::hook::{HOOK_HEADERS, HookAnswer, HookCall};
pub(crate) use self::leader::fire;
pub use self::preview::{Backfill, Backfilled, LocalTime};

/// What stands for a secret in what clients see and send.
const HIDDEN: &str = "***";
/// How often a change is made again after another client changed the trigger at the same time.
const TRIES_MAX: usize = 5;
/// The word of triggers among objects.
const KIND: &str = "trigger";

/// Which triggers a list has.
#[derive(Debug, Clone, Default)]
pub struct TriggerFilter {
    pub trigger_type: Option<String>,
    pub enabled: Option<bool>,
    /// None for all.
    pub limit: Option<usize>,
}

/// A trigger as the state has it.
pub(crate) struct Trigger {
    pub(crate) object: Arc<Object>,
    pub(crate) spec: TriggerSpec,
    pub(crate) status: TriggerStatus,
    pub(crate) definition: Definition,
}

impl Trigger {
    pub(crate) fn read(object: &Arc<Object>) -> Result<Self, Error> {
        let spec = TriggerSpec::read(&object.spec).map_err(|error| Error::internal("read a trigger", &error))?;
        let definition = definition(&object.spec)?;
        Ok(Self { object: Arc::clone(object), spec, status: TriggerStatus::of(object), definition })
    }

    fn id(&self) -> &str {
        self.object.key.name.as_str()
    }

    fn is_enabled(&self) -> bool {
        self.spec.is_armed(&self.status)
    }

    /// The status as the leader plans it, even before it has.
    pub(crate) fn planned(&self) -> TriggerStatus {
        let mut status = self.status.clone();
        if status.planned_revision == self.object.revision.0 {
            return status;
        }
        let armed = self.is_enabled();
        let before =
            Before { schedule: &status.schedule, armed: status.armed, next: seconds(Timestamp(status.next_fire)) };
        let spent = self.spec.trigger_type == "one_shot" && status.spent == self.spec.shot();
        let next = if spent { 0.0 } else { self.definition.replan(&before, armed, seconds(self.object.updated)) };
        status.armed = armed && next > 0.0;
        status.next_fire = timestamp(next).0;
        status.schedule = self.definition.schedule();
        status.planned_revision = self.object.revision.0;
        status.error.clear();
        status
    }

    /// What tells its delays from those of others.
    fn number(&self) -> u64 {
        self.object.uid.0
    }

    /// When it fires for a planned time, seconds since 1970.
    fn fires_at(&self, tick: f64) -> f64 {
        self.definition.fires_at(self.number(), tick)
    }

    /// The next time as clients see it: of one that is paused, the time at which it would have fired next.
    fn next_shown(&self, status: &TriggerStatus) -> f64 {
        let planned = seconds(Timestamp(status.next_fire));
        let is_timed = matches!(self.definition.kind, Kind::Cron { .. } | Kind::Interval { .. });
        match planned > 0.0 || !is_timed {
            true => self.fires_at(planned),
            false => self.definition.next_fire(0.0, seconds(self.object.updated)),
        }
    }

    fn show(&self, view: View) -> Value {
        let status = self.planned();
        let mut shown = self.definition.to_json();
        let Some(members) = shown.as_object_mut() else { return shown };
        let secret = if self.spec.webhook_secret.is_some() { HIDDEN } else { "" };
        let more = json!({
            "id": self.id(),
            "enabled": self.is_enabled(),
            "webhook_secret": secret,
            "last_fired": seconds(Timestamp(status.last_fired)),
            "next_fire": self.next_shown(&status),
            "fire_count": status.fire_count,
            "last_job_id": status.last_job_id,
            "created_at": seconds(self.object.created),
        });
        members.extend(more.as_object().cloned().unwrap_or_default());
        if view == View::Full {
            let firing = |firing: &atlas_objects::Firing| {
                json!({
                    "fired_at": seconds(Timestamp(firing.at)), "tick": seconds(Timestamp(firing.tick)), "by": firing.by,
                    "job_id": firing.job,
                })
            };
            let Rules { time_zone, overlap, catch_up, jitter_seconds, hmac, scheme, replay_window_seconds, map } =
                &self.definition.rules;
            let more = json!({
                "namespace": self.object.key.namespace.as_str(),
                "revision": self.object.revision.0,
                "time_zone": time_zone.as_ref().map_or("UTC", atlas_triggers::Zone::name),
                "overlap": overlap.as_str(),
                "catch_up": catch_up,
                "jitter_seconds": jitter_seconds,
                "hmac": hmac.as_ref().map(|name| format!("secret://{name}")),
                "scheme": scheme.as_str(),
                "replay_window_seconds": replay_window_seconds,
                "map": map,
                "missed": status.missed,
                "error": status.error,
                "warnings": self.definition.remarks(),
                "firings": status.firings.iter().map(firing).collect::<Vec<_>>(),
            });
            members.extend(more.as_object().cloned().unwrap_or_default());
        }
        shown
    }
}

impl Service {
    /// Makes a trigger, or replaces the one of the same id unless the caller expects a `new` one. A `strict` caller wants a refusal
    /// where Atlas for Python drops parts of an expression, ignores a member, or names an agent or a chain that is not there.
    pub async fn create_trigger(
        &self,
        caller: &Caller,
        document: &Value,
        new: bool,
        strict: bool,
    ) -> Result<Value, Error> {
        let members = document.get("trigger").unwrap_or(document);
        let id = match members.get("id") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(id)) => id.clone(),
            Some(_) => return Err(Error::Malformed("Trigger member 'id' must be a text".to_owned())),
        };
        // A repeat under one idempotency key makes the same trigger again.
        let drawn = |key: &RequestId| atlas_artifacts::hash(key.as_str().as_bytes());
        let drawn = || caller.request_id.as_ref().map_or_else(|| self.shared.env.entropy.u64(), drawn);
        let id = if id.is_empty() { format!("trigger-{:016x}", drawn()) } else { id };
        if let Some(members) = members.as_object() {
            members::refuse_unknown(members, strict)?;
        }
        let definition = parsed(document)?;
        refuse_odd(&definition, strict)?;
        let key = trigger_key(&caller.namespace, &id)?;
        for tried in 1.. {
            let state = self.state(Consistency::Linearizable).await?;
            if strict {
                refuse_missing(&definition.target, caller, &state)?;
            }
            let old = state.object(&key).filter(|_| !new);
            let expect = old.map_or(Expect::Absent, |old| Expect::Revision(old.revision));
            let before = old.and_then(|old| TriggerSpec::read(&old.spec).ok());
            let sealed = before.as_ref().and_then(|before| before.webhook_secret.as_ref());
            let secret = self.sealed(&key, &definition.fields.webhook_secret, sealed)?;
            let labels = old.map(|old| (*old.labels).clone()).unwrap_or_default();
            let rearmed = before.as_ref().map_or(0, |before| before.rearmed);
            match self.store_trigger(caller, &key, &definition, secret, rearmed, labels, expect).await {
                Err(Error::ObjectChanged { .. }) if tried < TRIES_MAX && !new => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        self.trigger(caller, &id, View::Plain, Consistency::Linearizable).await
    }

    /// The triggers, the newest first.
    pub async fn triggers(
        &self,
        caller: &Caller,
        filter: &TriggerFilter,
        view: View,
        consistency: Consistency,
    ) -> Result<Vec<Value>, Error> {
        let state = self.state(consistency).await?;
        let kind = ObjectKind::new(KIND)?;
        let mut found: Vec<&Arc<Object>> = state.objects(&caller.namespace, &kind, None).collect();
        found.sort_by_key(|object| std::cmp::Reverse(object.uid));
        // One that a newer program wrote, or that cannot fire, is shown by the objects of its kind.
        let triggers = found.into_iter().filter_map(|object| Trigger::read(object).ok());
        let wanted = |trigger: &Trigger| {
            filter.trigger_type.as_ref().is_none_or(|wanted| *wanted == trigger.spec.trigger_type)
                && filter.enabled.is_none_or(|wanted| wanted == trigger.is_enabled())
        };
        let limit = filter.limit.unwrap_or(usize::MAX);
        Ok(triggers.filter(wanted).take(limit).map(|trigger| trigger.show(view)).collect())
    }

    /// One trigger.
    pub async fn trigger(
        &self,
        caller: &Caller,
        id: &str,
        view: View,
        consistency: Consistency,
    ) -> Result<Value, Error> {
        let state = self.state(consistency).await?;
        let found = trigger_key(&caller.namespace, id).ok().and_then(|key| state.object(&key));
        Ok(Trigger::read(found.ok_or_else(not_found)?)?.show(view))
    }

    /// What is odd about the expression of a trigger that [`Service::create_trigger`] or [`Service::change_trigger`] has returned.
    pub fn trigger_warnings(shown: &Value) -> Vec<String> {
        Definition::parse(shown).map(|definition| definition.remarks()).unwrap_or_default()
    }

    /// Changes members of a trigger; what else the document has is ignored. `strict` as in [`Service::create_trigger`].
    pub async fn change_trigger(
        &self,
        caller: &Caller,
        id: &str,
        document: &Value,
        strict: bool,
    ) -> Result<Value, Error> {
        let Some(changes) = document.get("trigger").unwrap_or(document).as_object() else {
            return Err(Error::Malformed("the body must be a JSON object".to_owned()));
        };
        members::refuse_unknown(changes, strict)?;
        let key = trigger_key(&caller.namespace, id).map_err(|_| not_found())?;
        for tried in 1.. {
            let state = self.state(Consistency::Linearizable).await?;
            let old = Trigger::read(state.object(&key).ok_or_else(not_found)?)?;
            let definition = changed(&old, changes)?;
            refuse_odd(
                &definition,
                strict && ["cron_expr", "interval_seconds"].iter().any(|time| changes.contains_key(*time)),
            )?;
            let rearmed = old.spec.rearmed + u64::from(rearms(&old, changes));
            let secret = self.sealed(&key, &definition.fields.webhook_secret, old.spec.webhook_secret.as_ref())?;
            let (labels, expect) = ((*old.object.labels).clone(), Expect::Revision(old.object.revision));
            match self.store_trigger(caller, &key, &definition, secret, rearmed, labels, expect).await {
                Err(Error::ObjectChanged { .. }) if tried < TRIES_MAX => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        self.trigger(caller, id, View::Plain, Consistency::Linearizable).await
    }

    /// Deletes a trigger.
    pub async fn delete_trigger(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let key = trigger_key(&caller.namespace, id).map_err(|_| not_found())?;
        let command = atlas_types::DeleteObject { kind: key.kind, name: key.name, expect: Expect::Any };
        match self.propose(requests::of(caller, Command::DeleteObject(command))).await {
            Err(Error::UnknownObject(_)) => Err(not_found()),
            other => other.map(drop),
        }
    }

    /// The secret of a trigger, sealed. `***` keeps the one that it has.
    fn sealed(
        &self,
        key: &ObjectKey,
        secret: &str,
        old: Option<&SealedVersion>,
    ) -> Result<Option<SealedVersion>, Error> {
        match secret {
            "" => Ok(None),
            HIDDEN => Ok(old.cloned()),
            secret => {
                let keys = self.shared.vault.keys()?;
                if secret.len() > atlas_types::SECRET_BYTES_MAX {
                    let limit = atlas_types::SECRET_BYTES_MAX as u64;
                    return Err(Error::TooLarge { what: "the secret of a trigger", limit });
                }
                // The same secret again changes nothing.
                let is_same =
                    |old: &&SealedVersion| seal::unseal(keys, key, old).is_ok_and(|old| old.expose() == secret);
                if let Some(old) = old.filter(is_same) {
                    return Ok(Some(old.clone()));
                }
                let version = old.map_or(1, |old| old.version.saturating_add(1));
                let created = u64::try_from(self.shared.env.clock.wall().0 / 1_000_000).unwrap_or(0);
                let sealed = seal::seal(keys, key, version, &SecretText::new(secret), self.shared.nonce(), created);
                sealed.ok_or(Error::Internal).map(Some)
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "each is a part of one object")]
    async fn store_trigger(
        &self,
        caller: &Caller,
        key: &ObjectKey,
        definition: &Definition,
        secret: Option<SealedVersion>,
        rearmed: u64,
        labels: BTreeMap<String, String>,
        expect: Expect,
    ) -> Result<(), Error> {
        let mut document = definition.to_document();
        let Some(members) = document.as_object_mut() else { return Err(Error::Internal) };
        if let Some(secret) = secret {
            let secret = serde_json::to_value(secret).map_err(|error| Error::internal("write a trigger", &error))?;
            members.insert("webhook_secret".to_owned(), secret);
        }
        if rearmed > 0 {
            members.insert("rearmed".to_owned(), json!(rearmed));
        }
        if let Some(kind) = atlas_objects::kind(&key.kind) {
            kind.normalise(&mut document);
        }
        let spec = atlas_objects::canonical(&document).map_err(|error| Error::Malformed(error.to_string()))?;
        if spec.len() > SPEC_BYTES_MAX {
            return Err(Error::TooLarge { what: "the trigger", limit: SPEC_BYTES_MAX as u64 });
        }
        let (kind, name) = (key.kind.clone(), key.name.clone());
        let command = PutObject { kind, name, labels, spec: spec.into(), spec_version: 1, expect };
        self.propose(requests::of(&caller.clone().with_request_id(None), Command::PutObject(command))).await.map(drop)
    }
}

/// The definition in a stored spec.
fn definition(spec: &[u8]) -> Result<Definition, Error> {
    let mut document: Value = serde_json::from_slice(spec).unwrap_or_default();
    let kind = ObjectKind::new(KIND)?;
    if let Some(kind) = atlas_objects::kind(&kind) {
        kind.shown(&mut document);
    }
    Definition::parse(&document).map_err(|error| Error::Malformed(error.to_string()))
}

/// Why the spec of a trigger cannot fire, or not as it says, in words. The state accepts what only a newer program understands.
pub(crate) fn refusal_of(spec: &[u8]) -> Option<String> {
    let refused = definition(spec).and_then(|definition| {
        refuse_far(&definition)?;
        refuse_odd(&definition, true)
    });
    refused.err().map(|error| error.to_string())
}

/// Refuses an expression of which parts never match, or match more than they seem to, and an interval that cannot be kept, if the
/// caller is `strict`.
fn refuse_odd(definition: &Definition, strict: bool) -> Result<(), Error> {
    let remarks = definition.remarks();
    if !strict || remarks.is_empty() {
        return Ok(());
    }
    let remarks = remarks.join("; ");
    Err(Error::Malformed(match definition.kind {
        Kind::Cron { .. } => format!("cron expression '{}': {remarks}", definition.fields.cron_expr),
        _ => remarks,
    }))
}

/// Refuses a time that never comes. One that an earlier program accepted stays readable.
fn refuse_far(definition: &Definition) -> Result<(), Error> {
    definition.out_of_range().map_or(Ok(()), |why| Err(Error::Malformed(why)))
}

/// Refuses a trigger of an agent or a chain that is not there. Only a `strict` caller asks for it: a file may name what is deployed
/// after it.
fn refuse_missing(target: &Target, caller: &Caller, state: &State) -> Result<(), Error> {
    match target {
        Target::Chain(name) => firing::chain(caller, name, state).map(drop),
        Target::Agent(name) => {
            let agent = AgentName::new(name)?;
            // A stored chain is called like an agent.
            let is_there = state.agent_latest(&caller.namespace, &agent).is_some();
            match is_there || firing::chain(caller, name, state).is_ok() {
                true => Ok(()),
                false => Err(unknown_agent(state, caller, name, None)),
            }
        }
    }
}

fn parsed(document: &Value) -> Result<Definition, Error> {
    let definition = Definition::parse(document).map_err(|error| Error::Malformed(error.to_string()))?;
    refuse_far(&definition)?;
    if let Target::Agent(name) = &definition.target {
        AgentName::new(name)?;
    }
    Ok(definition)
}

/// The definition of a trigger after a change.
fn changed(old: &Trigger, changes: &Map<String, Value>) -> Result<Definition, Error> {
    let mut document = old.definition.to_document();
    if let Some(members) = document.as_object_mut() {
        let secret = if old.spec.webhook_secret.is_some() { HIDDEN } else { "" };
        members.insert("webhook_secret".to_owned(), json!(secret));
        // One that has fired for the only time counts as disabled from then on.
        members.insert("enabled".to_owned(), json!(old.is_enabled()));
        let may_change = |name: &&String| members::may_change(name);
        let changes = changes.iter().filter(|(name, _)| may_change(name));
        members.extend(changes.map(|(name, value)| (name.clone(), value.clone())));
    }
    parsed(&document)
}

/// Whether a change enables a one-shot trigger again that has fired.
fn rearms(old: &Trigger, changes: &Map<String, Value>) -> bool {
    let enables = changes.get("enabled").is_some_and(|enabled| !atlas_contract::python::is_false(enabled));
    enables && old.spec.trigger_type == "one_shot" && old.status.spent == old.spec.shot()
}

fn trigger_key(namespace: &Namespace, id: &str) -> Result<ObjectKey, Error> {
    Ok(ObjectKey { namespace: namespace.clone(), kind: ObjectKind::new(KIND)?, name: ObjectName::new(id)? })
}

fn not_found() -> Error {
    Error::UnknownObject("Trigger not found".to_owned())
}

#[expect(clippy::cast_precision_loss, reason = "the times of the next centuries are below 2^53 microseconds")]
pub(crate) fn seconds(time: Timestamp) -> f64 {
    time.0 as f64 / 1e6
}

#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub(crate) fn timestamp(seconds: f64) -> Timestamp {
    Timestamp((seconds * 1e6).round() as i64)
}
