//! Objects: reading, writing and deleting them, for every kind alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_api::types;
use atlas_contract::Violation;
use atlas_contract::schema::Validator;
use atlas_desk::{
    ShownObject,
    gate::{may_read_objects, may_write_objects},
    requests, shown_object, with_revision,
};
use atlas_objects::{KINDS, Kind, Scope};
use atlas_platform::labels;
use atlas_types::{
    Command, DeleteObject, Expect, Namespace, Object, ObjectKey, ObjectKind, ObjectName, PutObject, SPEC_BYTES_MAX,
};
use serde_json::Value;

use crate::{Caller, Consistency, Error, Service};

/// The most objects in one page of a list.
const PAGE_MAX: usize = 1_000;

/// Which objects of a kind a list contains.
#[derive(Debug, Clone, Default)]
pub struct ObjectFilter {
    /// Those with this label, and with this value if there is one.
    pub label: Option<(String, Option<String>)>,
    /// Those after this name.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// A change of an object, as a client asks for it.
#[derive(Debug, Clone)]
pub struct ObjectChange {
    pub kind: String,
    pub name: String,
    /// The revision that the client expects.
    pub expect: Expect,
    /// Whether only the answer is wanted.
    pub dry_run: bool,
}

impl Service {
    /// The kinds of objects with their schemas.
    pub fn object_kinds(&self, _: &Caller) -> Vec<types::ObjectKind> {
        let shown = |kind: &dyn Kind| types::ObjectKind {
            kind: kind.name().to_owned(),
            description: kind.about().to_owned(),
            scope: kind.scope().as_str().to_owned(),
            right: kind.right().to_owned(),
            spec_version: kind.spec_version().into(),
            schema: kind.schema(),
        };
        KINDS.into_iter().map(shown).collect()
    }

    /// The objects of a kind by name, and the name after which the next page begins.
    pub async fn objects(
        &self,
        caller: &Caller,
        kind: &str,
        filter: &ObjectFilter,
        consistency: Consistency,
    ) -> Result<(Vec<types::Object>, Option<String>), Error> {
        let kind = known(kind)?;
        let caller = &placed(caller, kind);
        may_read_objects(caller, kind)?;
        let word = word(kind)?;
        let after = filter.after.as_deref().map(ObjectName::new).transpose()?;
        let state = self.state(consistency).await?;
        let limit = filter.limit.clamp(1, PAGE_MAX);
        let mut found = state.objects(&caller.namespace, &word, after.as_ref()).filter(|object| filter.admits(object));
        let page: Vec<_> = found.by_ref().take(limit).collect();
        let next = found.next().and(page.last()).map(|last| last.key.name.to_string());
        Ok((page.into_iter().map(|object| shown_object(object)).collect(), next))
    }

    /// One object.
    pub async fn object(
        &self,
        caller: &Caller,
        kind: &str,
        name: &str,
        consistency: Consistency,
    ) -> Result<ShownObject, Error> {
        let caller = &placed(caller, known(kind)?);
        let (kind, key) = key(caller, kind, name)?;
        may_read_objects(caller, kind)?;
        let state = self.state(consistency).await?;
        state.object(&key).map(with_revision).ok_or_else(|| unknown(&key))
    }

    /// Makes an object, or replaces its labels and its spec. The same document again changes nothing.
    pub async fn put_object(
        &self,
        caller: &Caller,
        change: &ObjectChange,
        labels: BTreeMap<String, String>,
        spec: &Value,
    ) -> Result<ShownObject, Error> {
        let (kind, key) = key(caller, &change.kind, &change.name)?;
        self.may_change(caller, kind, &key).await?;
        labels::check(&labels)?;
        let (kept, expect) = self.kept(kind, &key, change.expect).await?;
        let bytes: Arc<[u8]> = accepted(kind, &key, spec, kept)?.into();
        if kind.name() == "chain"
            && let Ok(chain) = atlas_runs::Chain::stored(key.name.as_str(), spec)
        {
            let state = self.state(Consistency::Linearizable).await?;
            self.check_cycle(&state, &key.namespace, key.name.as_str(), &chain).await?;
        }
        let command = Command::PutObject(PutObject {
            kind: key.kind.clone(),
            name: key.name.clone(),
            labels,
            spec: Arc::clone(&bytes),
            spec_version: kind.spec_version(),
            expect,
        });
        let state = match self.change_object(caller, command, change.dry_run).await {
            Err(refused @ Error::ObjectRefused { .. }) => {
                return Err(self.explained(refused, kind, &key, &bytes).await);
            }
            answer => answer?,
        };
        // Another client may have deleted it since.
        state.object(&key).map(with_revision).ok_or_else(|| unknown(&key))
    }

    /// The members of the stored spec that only the cluster writes, and the revision from which they are.
    async fn kept(
        &self,
        kind: &dyn Kind,
        key: &ObjectKey,
        expect: Expect,
    ) -> Result<(Vec<(String, Value)>, Expect), Error> {
        if kind.kept().is_empty() {
            return Ok((Vec::new(), expect));
        }
        let state = self.state(Consistency::Linearizable).await?;
        let Some(object) = state.object(key) else {
            return Ok((Vec::new(), if expect == Expect::Any { Expect::Absent } else { expect }));
        };
        let stored: Value = serde_json::from_slice(&object.spec).unwrap_or_default();
        let member = |name: &&str| Some(((*name).to_owned(), stored.get(*name)?.clone()));
        let expect = if expect == Expect::Any { Expect::Revision(object.revision) } else { expect };
        Ok((kind.kept().iter().filter_map(member).collect(), expect))
    }

    /// A refusal by the state, with its reason if that lies in other objects: the state itself only names the member.
    async fn explained(&self, refused: Error, kind: &dyn Kind, key: &ObjectKey, spec: &[u8]) -> Error {
        let Ok(state) = self.state(Consistency::Linearizable).await else { return refused };
        match atlas_objects::check_among(kind, &state, key, spec) {
            Err(refusal) => refused_at(key, refusal.field, refusal.to_string()),
            Ok(()) => refused,
        }
    }

    /// Deletes an object that nothing uses.
    pub async fn delete_object(&self, caller: &Caller, change: &ObjectChange) -> Result<(), Error> {
        let caller = &placed(caller, known(&change.kind)?);
        let (kind, key) = key(caller, &change.kind, &change.name)?;
        self.may_change(caller, kind, &key).await?;
        let command = Command::DeleteObject(DeleteObject {
            kind: key.kind.clone(),
            name: key.name.clone(),
            expect: change.expect,
        });
        self.change_object(caller, command, change.dry_run).await.map(|_| ()).map_err(|error| match error {
            Error::UnknownObject(_) => unknown(&key),
            other => other,
        })
    }

    /// Refuses a caller that may not write objects of a kind, or not this one: a conversation belongs to whoever began it.
    async fn may_change(&self, caller: &Caller, kind: &dyn Kind, key: &ObjectKey) -> Result<(), Error> {
        may_write_objects(caller, kind)?;
        if kind.name() != "conversation" {
            return Ok(());
        }
        let state = self.state(Consistency::Linearizable).await?;
        state.object(key).map_or(Ok(()), |object| atlas_conversations::may_control(caller, object))
    }

    /// The state after a command. A dry run applies it to a copy of the state.
    async fn change_object(
        &self,
        caller: &Caller,
        command: Command,
        dry_run: bool,
    ) -> Result<atlas_state::State, Error> {
        if !dry_run {
            self.propose(requests::of(caller, command)).await?;
            return self.state(Consistency::Linearizable).await;
        }
        let mut state = self.state(Consistency::Linearizable).await?;
        let needed = command.level();
        if needed > state.level() {
            return Err(atlas_types::Rejection::LevelTooLow { needed }.into());
        }
        let (at, clock) = (state.at(), state.clock());
        let request = requests::of(&caller.clone().with_request_id(None), command);
        state.apply(&request, at, clock).0?;
        Ok(state)
    }
}

impl ObjectFilter {
    fn admits(&self, object: &Object) -> bool {
        self.label.as_ref().is_none_or(|(key, wanted)| {
            let found = object.labels.get(key);
            found.is_some_and(|found| wanted.as_ref().is_none_or(|wanted| wanted == found))
        })
    }
}

/// The canonical bytes of a spec that the schema and the rules of its kind accept.
///
/// `kept` are members that only the cluster writes; what the client sent in their place is ignored.
fn accepted(kind: &dyn Kind, key: &ObjectKey, spec: &Value, kept: Vec<(String, Value)>) -> Result<Vec<u8>, Error> {
    let mut spec = spec.clone();
    if let Some(members) = spec.as_object_mut() {
        members.retain(|name, _| !kind.kept().contains(&name.as_str()));
    }
    let validator = Validator::compile(&kind.schema()).map_err(|error| Error::internal("compile a schema", &error))?;
    let mut violations = validator.explain(&spec);
    if !violations.is_empty() {
        for violation in &mut violations {
            violation.pointer = format!("/spec{}", violation.pointer.trim_end_matches('/'));
        }
        return Err(refused(key, violations));
    }
    kind.normalise(&mut spec);
    let written = atlas_objects::canonical(&spec).map_err(|error| refused_at(key, "spec", error.to_string()))?;
    let written = kind.admit_written(&written);
    written.map_err(|refusal| refused_at(key, refusal.field, refusal.to_string()))?;
    if let Some(members) = spec.as_object_mut() {
        members.extend(kept);
    }
    let bytes = atlas_objects::canonical(&spec).map_err(|error| refused_at(key, "spec", error.to_string()))?;
    if bytes.len() > SPEC_BYTES_MAX {
        return Err(Error::TooLarge { what: "the spec of the object", limit: SPEC_BYTES_MAX as u64 });
    }
    atlas_objects::check(kind, key, &bytes).map_err(|refusal| refused_at(key, refusal.field, refusal.to_string()))?;
    if kind.name() == "trigger"
        && let Some(text) = crate::triggers::refusal_of(&bytes)
    {
        return Err(refused_at(key, "spec", text));
    }
    if kind.name() == "orchestrator"
        && let Some(text) = crate::wish::refusal_of(&bytes)
    {
        return Err(refused_at(key, "spec.rules", text));
    }
    if kind.name() == "policy"
        && let Some(text) = atlas_registry::refusal_of(&bytes)
    {
        return Err(refused_at(key, "spec.rules", text));
    }
    if kind.name() == "chain"
        && let Err(error) = atlas_runs::Chain::stored(key.name.as_str(), &spec)
    {
        return Err(refused_at(key, "spec.steps", error.to_string()));
    }
    Ok(bytes)
}

fn refused(key: &ObjectKey, violations: Vec<Violation>) -> Error {
    let told = |violation: &Violation| match violation.pointer.rsplit_once('/') {
        // The text of an unknown member does not name it: its place does.
        Some((_, member)) if violation.rule.ends_with("Properties") => format!("\"{member}\" is {}", violation.message),
        _ => violation.message.clone(),
    };
    let why = violations.iter().map(told).collect::<Vec<_>>().join("; ");
    let what = format!("the {} \"{}\" is refused: {why}", key.kind, key.name);
    Error::ObjectRefused { what, violations }
}

/// A refusal because of one member, such as `spec.url`.
fn refused_at(key: &ObjectKey, field: &str, message: String) -> Error {
    let pointer = format!("/{}", field.replace('.', "/"));
    refused(key, vec![Violation { pointer, rule: "object".to_owned(), message, suggestion: None }])
}

fn unknown(key: &ObjectKey) -> Error {
    Error::UnknownObject(format!("no such {}: \"{}\"", key.kind, key.name))
}

/// The caller where the objects of a kind are: those of the cluster have one place, whatever the namespace of a request.
fn placed(caller: &Caller, kind: &dyn Kind) -> Caller {
    match kind.scope() {
        Scope::Namespace => caller.clone(),
        Scope::Cluster => caller.clone().with_namespace(Namespace::default_namespace()),
    }
}

fn known(kind: &str) -> Result<&'static dyn Kind, Error> {
    let found = ObjectKind::new(kind).ok().and_then(|kind| atlas_objects::kind(&kind));
    found.ok_or_else(|| {
        let kinds: Vec<_> = KINDS.into_iter().map(Kind::name).collect();
        let short: String = kind.chars().take(63).collect();
        let others = ["job", "agent", "node", "controller"];
        let meant = match atlas_contract::nearest(&short, kinds.iter().copied().chain(others)) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("kinds are {}", kinds.join(", ")),
        };
        Error::UnknownObjectKind(format!("no such kind of object: \"{short}\"; {meant}"))
    })
}

fn word(kind: &dyn Kind) -> Result<ObjectKind, Error> {
    Ok(ObjectKind::new(kind.name())?)
}

fn key(caller: &Caller, kind: &str, name: &str) -> Result<(&'static dyn Kind, ObjectKey), Error> {
    let kind = known(kind)?;
    let key = ObjectKey { namespace: caller.namespace.clone(), kind: word(kind)?, name: ObjectName::new(name)? };
    Ok((kind, key))
}
