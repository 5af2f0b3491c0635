//! The namespace of requests, and writes that name the revision they replace.

use http::Method;
use http::header::IF_MATCH;
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

    /// Puts a document instead of one revision; refused if the object has another one.
    pub(crate) async fn put_revision(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: &Value,
        revision: u64,
    ) -> Result<Value, Failure> {
        let request = self.request(Method::PUT, path)?.query(query).header_of(IF_MATCH, &format!("\"{revision}\""))?;
        self.answer(request.json(body)).await
    }
}

/// Whether requests to a path are about things in a namespace. Other paths refuse the parameter.
pub(super) fn has_namespace(path: &[&str]) -> bool {
    matches!(
        path,
        ["mcp"]
            | ["v1", ..]
            | [
                "api",
                "jobs"
                    | "jobs:batch"
                    | "jobs:erase"
                    | "agents"
                    | "events"
                    | "conversations"
                    | "memory"
                    | "knowledge"
                    | "bases"
                    | "skills"
                    | "chains"
                    | "triggers"
                    | "traces"
                    | "questions"
                    | "orchestrator"
                    | "policies"
                    | "models"
                    | "mcp-servers"
                    | "hooks",
                ..
            ]
            | ["api", "objects", _, ..]
            | ["api", "secrets", _]
            | ["api", "cluster", "events"]
    )
}

/// The reference of the interface is generated from the operations of the controller.
#[test]
fn a_namespace_is_sent_where_the_controller_takes_one() {
    let page = include_str!("../../../docs/reference/api.md");
    let mut wrong = Vec::new();
    let mut with = 0;
    for section in page.split("\n## ").skip(1) {
        let Some((_, path)) = section.lines().next().and_then(|head| head.split_once(" /")) else { continue };
        // What programs other than this one use, and the audit, which belongs to the cluster and has a condition of that name.
        if ["ws", ".well-known/", "api/audit"].iter().any(|begin| path.starts_with(begin)) {
            continue;
        }
        let takes = section.contains("* `namespace`, in the query");
        with += usize::from(takes);
        if has_namespace(&path.split('/').collect::<Vec<_>>()) != takes {
            wrong.push(format!("/{path} {} a namespace", if takes { "takes" } else { "does not take" }));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(with > 50 && has_namespace(&["mcp"]), "{with}");
}
