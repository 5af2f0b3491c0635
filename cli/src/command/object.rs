//! Objects of the kinds that the controllers know: `get`, `describe` and `delete` for each of them, without code for any of them.

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, Shown, column, members, wide, yaml};
use crate::words;

pub(crate) use crate::client::all_objects as all;

/// An object as a list shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    kind: String,
    metadata: ObjectMetadata,
    /// What the cluster says about it; null for most kinds.
    status: Option<Status>,
}

/// The members of a status that kinds with a status share.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    state: String,
    reason: String,
}

const COLUMNS: [Column<Object>; 7] = [
    column("NAME", "metadata", |object, _| object.metadata.name.clone()),
    column("NAMESPACE", "metadata", |object, _| object.metadata.namespace.clone()),
    column("REVISION", "metadata", |object, _| object.metadata.revision.to_string()),
    column("LABELS", "metadata", |object, _| words::labels(&object.metadata.labels)),
    column("STATE", "status", |object, _| object.status.as_ref().map_or(String::new(), |status| status.state.clone())),
    wide("REASON", "status", |object, _| object.status.as_ref().map_or(String::new(), |status| status.reason.clone())),
    wide("BY", "metadata", |object, _| object.metadata.updated_by.clone()),
];

/// Lists the objects of a kind in a namespace as the kind shows them. `none` says what to do if there are none.
pub(super) async fn list_as<T: DeserializeOwned>(
    context: &Context,
    kind: &str,
    options: &ListOptions,
    list: &List<'_, T>,
    none: &str,
) -> Result<Exit, Failure> {
    let objects = all(&context.client()?, kind).await?;
    if context.list(Value::Array(objects), options, list)? == 0 {
        context.note(none);
    }
    Ok(Exit::Done)
}

/// Lists the objects of a kind in a namespace.
pub(super) async fn list(context: &Context, kind: &str, options: &ListOptions) -> Result<Exit, Failure> {
    let objects = all(&context.client()?, kind).await?;
    let name = |object: &Object| format!("{}/{}", object.kind, object.metadata.name);
    context.list(Value::Array(objects), options, &List { columns: &COLUMNS, members: members::OBJECT, name })?;
    Ok(Exit::Done)
}

/// Shows one object, as `apply` reads it.
pub(super) async fn show(context: &Context, kind: &str, name: &str) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "objects", kind, bare(kind, name)], &[]).await?;
    let object: Object = answers::read(&value)?;
    let names = vec![format!("{}/{}", object.kind, object.metadata.name)];
    context.show(&Shown { text: yaml(&value), value, names })?;
    Ok(Exit::Done)
}

/// Deletes one object.
pub(super) async fn remove(context: &Context, kind: &str, name: &str) -> Result<Exit, Failure> {
    let name = bare(kind, name);
    let value = context.client()?.delete(&["api", "objects", kind, name]).await?;
    let name = format!("{kind}/{name}");
    context.show(&Shown { value, text: format!("{name}  deleted\n"), names: vec![name] })?;
    Ok(Exit::Done)
}

/// The revision of an object as the API shows it.
pub(in crate::command) fn revision(object: &Value) -> u64 {
    object["metadata"]["revision"].as_u64().unwrap_or_default()
}

/// Whether a write was refused because the object has another revision.
pub(in crate::command) fn is_conflict(failure: &Failure) -> bool {
    failure.code.as_deref() == Some("E1116")
}

/// A name without its kind.
fn bare<'a>(kind: &str, name: &'a str) -> &'a str {
    name.strip_prefix(kind).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name)
}

/// What a document wants of an object.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::command) struct Wanted {
    pub(in crate::command) kind: String,
    pub(in crate::command) name: String,
    /// None if the document does not say.
    pub(in crate::command) namespace: Option<String>,
    pub(in crate::command) labels: Value,
    pub(in crate::command) spec: Value,
}

impl Wanted {
    /// Reads `{kind, metadata: {name, labels}, spec}`. Status and what the cluster sets are ignored, so that `get -o yaml` can be applied.
    pub(in crate::command) fn read(document: &Value) -> Result<Self, String> {
        let text = |value: &Value, place: &str| match value {
            Value::String(text) if !text.is_empty() => Ok(text.clone()),
            _ => Err(format!("{place} is not a text")),
        };
        let metadata = &document["metadata"];
        let namespace = match &metadata["namespace"] {
            Value::Null => None,
            other => Some(text(other, "/metadata/namespace")?),
        };
        let labels = match &metadata["labels"] {
            Value::Null => json!({}),
            labels @ Value::Object(members) => match members.iter().find(|(_, value)| !value.is_string()) {
                Some((key, value)) => return Err(format!("/metadata/labels/{key} must be text: write '{value}'")),
                None => labels.clone(),
            },
            _ => return Err("/metadata/labels is not an object".to_owned()),
        };
        Ok(Self {
            kind: text(&document["kind"], "/kind")?,
            name: text(&metadata["name"], "/metadata/name")?,
            namespace,
            labels,
            spec: document["spec"].clone(),
        })
    }

    /// Refuses a document of another namespace than the one that the user gave.
    pub(in crate::command) fn is_in(&self, namespace: Option<&str>) -> Result<(), Failure> {
        match (namespace, &self.namespace) {
            (Some(given), Some(own)) if given != own => {
                let message =
                    format!("{}/{} cannot be applied: its namespace is {own}, not {given}", self.kind, self.name);
                Err(Failure::new("E0125", Exit::Invalid, message))
            }
            _ => Ok(()),
        }
    }

    /// The path of the object.
    pub(in crate::command) fn path(&self) -> [&str; 4] {
        ["api", "objects", &self.kind, &self.name]
    }

    /// The query of a request about it.
    pub(in crate::command) fn query(&self) -> Vec<(&str, &str)> {
        self.namespace.iter().map(|namespace| ("namespace", namespace.as_str())).collect()
    }

    /// The body of a request that makes it so.
    pub(in crate::command) fn body(&self) -> Value {
        json!({ "labels": self.labels, "spec": self.spec })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_as_they_are_printed() {
        let document =
            json!({"kind": "webhook", "metadata": {"name": "ci", "revision": 3}, "spec": {"a": 1}, "status": null});
        let wanted = Wanted::read(&document).expect("a document");
        assert_eq!(wanted.path(), ["api", "objects", "webhook", "ci"]);
        assert_eq!((wanted.query(), wanted.body()), (Vec::new(), json!({"labels": {}, "spec": {"a": 1}})));
        let labels = json!({"kind": "webhook", "metadata": {"name": "ci", "labels": {"a": 1}}, "spec": {}});
        assert_eq!(Wanted::read(&labels).expect_err("no text"), "/metadata/labels/a must be text: write '1'");
        assert!(Wanted::read(&json!({"kind": "webhook", "metadata": {}, "spec": {}})).is_err());
    }

    #[test]
    fn names_are_taken_with_or_without_their_kind() {
        assert_eq!(
            (bare("webhook", "webhook/ci"), bare("webhook", "ci"), bare("webhook", "webhooks/ci")),
            ("ci", "ci", "webhooks/ci")
        );
    }
}
