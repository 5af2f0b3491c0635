//! What an API server of Kubernetes keeps: resources with versions, and what happened to them in order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// A kind's plural, a namespace and a name.
pub(super) type Key = (String, String, String);

#[derive(Default)]
pub(super) struct Store {
    version: u64,
    resources: BTreeMap<Key, Value>,
    /// The version, the type and the object of each event of a watch.
    log: Vec<(u64, &'static str, Key, Value)>,
    /// Events up to this version are forgotten.
    compacted: u64,
    /// Plurals that no definition of resources names.
    pub(super) undefined: BTreeSet<String>,
    /// Each event of Kubernetes: kind and name of its resource, and its reason.
    pub(super) events: Vec<String>,
    /// Each change that was asked for.
    pub(super) changes: Vec<String>,
    /// Each verb with its group and resource, as roles name them.
    pub(super) used: BTreeSet<String>,
    /// What no API server would have accepted.
    pub(super) complaints: Vec<String>,
}

/// Why a change was refused: a status code and a word.
pub(super) type Refusal = (u16, &'static str);

impl Store {
    pub(super) fn get(&self, key: &Key) -> Option<&Value> {
        self.resources.get(key)
    }

    /// The resources of a kind in a namespace, with the version of the list.
    pub(super) fn list(&self, plural: &str, namespace: &str) -> (Vec<Value>, u64) {
        let of = self.resources.iter().filter(|(key, _)| key.0 == plural && key.1 == namespace);
        (of.map(|(_, value)| value.clone()).collect(), self.version)
    }

    /// What happened after a version; none if that was forgotten.
    pub(super) fn after(&self, version: u64, plural: &str, namespace: &str) -> Option<(Vec<Value>, u64)> {
        if version < self.compacted {
            return None;
        }
        let of = self.log.iter().filter(|(at, _, key, _)| *at > version && key.0 == plural && key.1 == namespace);
        Some((of.map(|(_, kind, _, object)| json!({"type": kind, "object": object})).collect(), self.version))
    }

    /// Forgets what happened.
    pub(super) fn compact(&mut self) {
        self.version += 1;
        self.compacted = self.version;
        self.log.clear();
    }

    /// Makes or changes a resource as people do: status and finalizers stay, and a new spec is a new generation.
    pub(super) fn put(&mut self, key: &Key, kind: &str, spec: Value, annotations: Value) {
        let mut resource = self.resources.get(key).cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "atlas.dev/v1alpha1",
                "kind": kind,
                "metadata": {
                    "namespace": key.1, "name": key.2, "uid": format!("uid-{}", self.version), "generation": 0,
                },
            })
        });
        if resource["spec"] != spec {
            let generation = resource["metadata"]["generation"].as_i64().expect("a number");
            resource["metadata"]["generation"] = json!(generation + 1);
        }
        resource["metadata"]["annotations"] = annotations;
        resource["spec"] = spec;
        self.write(key, resource);
    }

    /// Deletes a resource as people do: it waits for its finalizers.
    pub(super) fn delete(&mut self, key: &Key) {
        let mut resource = self.resources.get(key).cloned().expect("a resource");
        resource["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let generation = resource["metadata"]["generation"].as_i64().expect("a number");
        resource["metadata"]["generation"] = json!(generation + 1);
        self.write(key, resource);
    }

    /// Writes a resource with the next version; one that is deleted and has no finalizers goes. The same again changes nothing.
    pub(super) fn write(&mut self, key: &Key, mut resource: Value) -> Value {
        let before = self.resources.get(key);
        if before == Some(&resource) {
            return resource;
        }
        self.version += 1;
        resource["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let metadata = &resource["metadata"];
        let is_held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        let kind = match before {
            _ if !metadata["deletionTimestamp"].is_null() && !is_held => "DELETED",
            None => "ADDED",
            Some(_) => "MODIFIED",
        };
        if kind == "DELETED" {
            self.resources.remove(key);
        } else {
            self.resources.insert(key.clone(), resource.clone());
        }
        self.log.push((self.version, kind, key.clone(), resource.clone()));
        resource
    }

    /// A JSON patch (RFC 6902) of metadata, as far as operators use it.
    pub(super) fn patch(&mut self, key: &Key, patch: &Value) -> Result<Value, Refusal> {
        let mut resource = self.resources.get(key).cloned().ok_or((404, "NotFound"))?;
        for step in patch.as_array().ok_or((400, "BadRequest"))? {
            let path = step["path"].as_str().ok_or((400, "BadRequest"))?;
            let parent = path.rsplit_once('/').ok_or((400, "BadRequest"))?;
            match step["op"].as_str() {
                Some("test") if resource.pointer(path).unwrap_or(&Value::Null) == &step["value"] => {}
                Some("test") => return Err((422, "Invalid")),
                Some("add") if parent.1 == "-" => {
                    let list = resource.pointer_mut(parent.0).and_then(Value::as_array_mut);
                    list.ok_or((422, "Invalid"))?.push(step["value"].clone());
                }
                Some("add") => {
                    let members = resource.pointer_mut(parent.0).and_then(Value::as_object_mut);
                    members.ok_or((422, "Invalid"))?.insert(parent.1.to_owned(), step["value"].clone());
                }
                Some("remove") => {
                    let list = resource.pointer_mut(parent.0).and_then(Value::as_array_mut);
                    let at = parent.1.parse().map_err(|_| (422, "Invalid"))?;
                    list.filter(|list| list.len() > at).ok_or((422, "Invalid"))?.remove(at);
                }
                _ => return Err((400, "BadRequest")),
            }
        }
        Ok(self.write(key, resource))
    }

    /// Applies a status. One manager owns all of it, so it replaces the status before.
    pub(super) fn apply_status(&mut self, key: &Key, patch: &Value) -> Result<Value, Refusal> {
        let mut resource = self.resources.get(key).cloned().ok_or((404, "NotFound"))?;
        let is_named = patch["metadata"]["name"] == resource["metadata"]["name"];
        if !is_named || patch["kind"] != resource["kind"] || patch["apiVersion"] != resource["apiVersion"] {
            return Err((400, "BadRequest"));
        }
        resource["status"] = patch["status"].clone();
        Ok(self.write(key, resource))
    }
}
