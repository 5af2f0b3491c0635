//! What has to be sent so that an object of the cluster is as its resource says.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::problem::{Problem, Reason};
use crate::request::{Expect, Request};
use crate::resource::{ADOPT, OWNER, Resource};

/// Members of specs that the cluster alone writes, and shows.
const KEPT: [&str; 2] = ["rearmed", "webhook_secret"];

/// An object as its resource wants it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    kind: &'static str,
    namespace: String,
    name: String,
    labels: BTreeMap<String, String>,
    spec: Value,
    adopts: bool,
}

impl Object {
    /// The object of a resource; `home` is the operator's namespace.
    pub(crate) fn of(resource: &Resource, kind: &'static str, home: &str) -> Result<Self, Problem> {
        // Labels with a prefix belong to the tools of Kubernetes.
        let own = resource.labels.iter().filter(|(key, _)| !key.contains('/'));
        let mut labels: BTreeMap<String, String> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        labels.insert(OWNER.to_owned(), resource.owner());
        Ok(Self {
            kind,
            namespace: resource.place(home)?,
            name: resource.name.clone(),
            labels,
            spec: resource.spec.clone(),
            adopts: resource.adopts(),
        })
    }

    /// Its kind and name.
    pub(crate) fn shown(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }

    /// The namespace of the cluster that has it.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    fn request(&self, method: &'static str) -> Request {
        Request::new(method, &["api", "objects", self.kind, &self.name], &self.namespace)
    }

    /// Asks for the object.
    pub(crate) fn get(&self) -> Request {
        self.request("GET")
    }

    /// Makes the object, or changes what was `found`; nothing if it is right already.
    pub(crate) fn put(&self, found: Option<&Value>) -> Result<Option<Request>, Problem> {
        let expect = match found {
            None => Expect::Absent,
            Some(found) if !self.owns(found) && !self.adopts => return Err(self.conflict(found)),
            Some(found) if self.is(found) => return Ok(None),
            Some(found) => Expect::Revision(revision(found)),
        };
        let body = json!({"labels": self.labels, "spec": self.spec});
        Ok(Some(self.request("PUT").json(body).expecting(expect)))
    }

    /// Deletes the object that was `found`; nothing if it belongs to others.
    pub(crate) fn delete(&self, found: Option<&Value>) -> Option<Request> {
        let found = found.filter(|found| self.owns(found))?;
        Some(self.request("DELETE").expecting(Expect::Revision(revision(found))))
    }

    fn owns(&self, found: &Value) -> bool {
        found["metadata"]["labels"][OWNER].as_str() == self.labels.get(OWNER).map(String::as_str)
    }

    fn is(&self, found: &Value) -> bool {
        let mut spec = found["spec"].clone();
        if let Some(members) = spec.as_object_mut() {
            members.retain(|member, _| !KEPT.contains(&member.as_str()));
        }
        found["metadata"]["labels"] == json!(self.labels) && is_same(&self.spec, &spec)
    }

    fn conflict(&self, found: &Value) -> Problem {
        let by = match found["metadata"]["labels"][OWNER].as_str() {
            Some(owner) => format!("belongs to the resource {owner}"),
            None => "was not made by a resource".to_owned(),
        };
        let message = format!(
            "{} of the namespace {} {by}; the annotation {ADOPT}: \"true\" takes it over",
            self.shown(),
            self.namespace
        );
        Problem::new(Reason::Conflict, message)
    }
}

/// Whether the cluster has what is wanted. It keeps a fraction as its decimal text.
fn is_same(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Number(number), Value::String(text)) => number.is_f64() && number.to_string() == *text,
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(wanted, found)| is_same(wanted, found))
        }
        (Value::Object(wanted), Value::Object(found)) => {
            let is_there = |(name, wanted)| found.get(name).is_some_and(|found| is_same(wanted, found));
            wanted.len() == found.len() && wanted.iter().all(is_there)
        }
        _ => wanted == found,
    }
}

/// The revision of an object as a controller shows it.
pub(crate) fn revision(object: &Value) -> u64 {
    object["metadata"]["revision"].as_u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::kind::Kind;

    fn chain(metadata: &Value) -> Object {
        let document = json!({"metadata": metadata, "spec": {"steps": [{"agent": "hello"}]}});
        Object::of(&Resource::read(Kind::Chain, &document).expect("a resource"), "chain", "atlas").expect("an object")
    }

    fn metadata() -> Value {
        let labels = json!({"team": "shop", "app.kubernetes.io/instance": "argo"});
        json!({"namespace": "atlas", "name": "greet", "labels": labels})
    }

    fn check(object: &Object, found: Option<&Value>, expected: &Expect) {
        let put = match object.put(found) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(request)) => request.to_string(),
            Err(problem) => format!("{}: {problem}", problem.reason.as_str()),
        };
        let delete = object.delete(found).map_or_else(|| "nothing".to_owned(), |request| request.to_string());
        expected.assert_eq(&format!("{}\n{put}\n{delete}\n", object.get()));
    }

    #[test]
    fn a_missing_object_is_made() {
        check(
            &chain(&metadata()),
            None,
            &expect![[r#"
                GET /api/objects/chain/greet?namespace=default
                PUT /api/objects/chain/greet?namespace=default If-None-Match: * {"labels":{"atlas.dev/resource":"atlas/greet","team":"shop"},"spec":{"steps":[{"agent":"hello"}]}}
                nothing
            "#]],
        );
    }

    #[test]
    fn an_object_that_drifted_is_repaired() {
        let found = json!({
            "metadata": {"revision": 7, "labels": {OWNER: "atlas/greet"}}, "spec": {"steps": [{"agent": "other"}]},
        });
        check(
            &chain(&metadata()),
            Some(&found),
            &expect![[r#"
                GET /api/objects/chain/greet?namespace=default
                PUT /api/objects/chain/greet?namespace=default If-Match: "7" {"labels":{"atlas.dev/resource":"atlas/greet","team":"shop"},"spec":{"steps":[{"agent":"hello"}]}}
                DELETE /api/objects/chain/greet?namespace=default If-Match: "7"
            "#]],
        );
    }

    #[test]
    fn an_object_that_is_right_is_left_alone() {
        let found = json!({
            "metadata": {"revision": 7, "labels": {OWNER: "atlas/greet", "team": "shop"}},
            "spec": {"rearmed": 1, "steps": [{"agent": "hello"}], "webhook_secret": "***"},
        });
        check(
            &chain(&metadata()),
            Some(&found),
            &expect![[r#"
                GET /api/objects/chain/greet?namespace=default
                nothing
                DELETE /api/objects/chain/greet?namespace=default If-Match: "7"
            "#]],
        );
    }

    #[test]
    fn a_fraction_is_the_text_that_the_cluster_keeps() {
        let spec = json!({"interval_seconds": 3600.5, "input_data": {"a": [2.5, 1]}});
        let document = json!({"metadata": {"namespace": "atlas", "name": "hourly"}, "spec": spec});
        let trigger = Resource::read(Kind::Trigger, &document).expect("a resource");
        let trigger = Object::of(&trigger, "trigger", "atlas").expect("an object");
        let found = |seconds: &str| {
            let spec = json!({"interval_seconds": seconds, "input_data": {"a": [2.5, 1]}});
            json!({"metadata": {"revision": 7, "labels": {OWNER: "atlas/hourly"}}, "spec": spec})
        };
        assert_eq!(trigger.put(Some(&found("3600.5"))), Ok(None));
        assert!(trigger.put(Some(&found("3600.6"))).expect("a change").is_some());
    }

    #[test]
    fn objects_of_others_are_taken_over_only_if_that_is_said() {
        let found = json!({"metadata": {"revision": 7, "labels": {}}, "spec": {}});
        check(
            &chain(&metadata()),
            Some(&found),
            &expect![[r#"
                GET /api/objects/chain/greet?namespace=default
                Conflict: chain/greet of the namespace default was not made by a resource; the annotation atlas.dev/adopt: "true" takes it over
                nothing
            "#]],
        );
        let mut metadata = metadata();
        metadata["annotations"] = json!({ADOPT: "true"});
        check(
            &chain(&metadata),
            Some(&found),
            &expect![[r#"
                GET /api/objects/chain/greet?namespace=default
                PUT /api/objects/chain/greet?namespace=default If-Match: "7" {"labels":{"atlas.dev/resource":"atlas/greet","team":"shop"},"spec":{"steps":[{"agent":"hello"}]}}
                nothing
            "#]],
        );
    }
}
