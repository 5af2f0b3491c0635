//! The namespace of requests, and writes that name the revision they replace.

use reqwest::Method;
use serde_json::Value;

use super::Client;
use crate::failure::Failure;

impl Client {
    /// The same client in a namespace; without one it is the cluster's `default`.
    #[must_use]
    pub(crate) fn in_namespace(self, namespace: Option<String>) -> Self {
        Self { namespace, ..self }
    }

    /// The namespace that the user gave.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Puts a document in the place of one revision; refused if the object has another one.
    pub(crate) async fn put_revision(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: &Value,
        revision: u64,
    ) -> Result<Value, Failure> {
        let request = self.request(Method::PUT, path)?.query(query).header("If-Match", format!("\"{revision}\""));
        self.answer(request.json(body)).await
    }
}

/// Whether requests to a path are about things in a namespace. Other paths refuse the parameter.
pub(super) fn has_namespace(path: &[&str]) -> bool {
    matches!(
        path,
        [
            "api",
            "jobs"
                | "jobs:batch"
                | "agents"
                | "events"
                | "conversations"
                | "skills"
                | "chains"
                | "triggers"
                | "traces"
                | "questions"
                | "orchestrator",
            ..
        ] | ["api", "objects", _, ..]
            | ["api", "secrets", _]
            | ["api", "cluster", "events"]
    )
}

#[test]
fn a_namespace_is_sent_where_it_is_known() {
    for path in [
        &["api", "jobs"][..],
        &["api", "agents", "a", "versions"],
        &["api", "objects", "webhook"],
        &["api", "orchestrator"],
        &["api", "questions", "q", "answer"],
        &["api", "triggers"],
        &["api", "chains", "check"],
    ] {
        assert!(has_namespace(path), "{path:?}");
    }
    for path in [&["api", "nodes"][..], &["api", "objects"], &["api", "cluster"], &["metrics"]] {
        assert!(!has_namespace(path), "{path:?}");
    }
}
