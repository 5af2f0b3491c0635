//! What the operator says about a resource.

use serde_json::{Value, json};

use crate::problem::Problem;
use crate::resource::Resource;

/// What the cluster has of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Synced {
    /// The namespace of the cluster.
    pub(crate) namespace: String,
    /// What it has, such as `chain/greet`.
    pub(crate) object: String,
    /// The revision of an object.
    pub(crate) revision: Option<u64>,
    /// The versions of an agent that the resource registered.
    pub(crate) versions: Vec<String>,
}

/// The status after an attempt; `now` is a time as Kubernetes writes it. It is the old status, if nothing changed.
pub(crate) fn status(resource: &Resource, attempt: Result<&Synced, &Problem>, now: &str) -> Value {
    let old = &resource.status;
    let (value, reason, message) = match attempt {
        Ok(_) => ("True", "Synced", ""),
        Err(problem) => {
            let value = if problem.reason.is_unknown() { "Unknown" } else { "False" };
            (value, problem.reason.as_str(), problem.message.as_str())
        }
    };
    let before = ready(old);
    let since =
        before.filter(|before| before["status"] == value).and_then(|before| before["lastTransitionTime"].as_str());
    let mut status = json!({
        "observedGeneration": resource.generation,
        "conditions": [{
            "type": "Ready",
            "status": value,
            "reason": reason,
            "message": message,
            "observedGeneration": resource.generation,
            "lastTransitionTime": since.unwrap_or(now),
        }],
    });
    match attempt {
        Ok(Synced { namespace, object, revision, versions }) => {
            status["namespace"] = json!(namespace);
            status["object"] = json!(object);
            if let Some(revision) = revision {
                status["revision"] = json!(revision);
            }
            if !versions.is_empty() {
                status["versions"] = json!(versions);
            }
        }
        // What the cluster had stays known: a deletion needs it.
        Err(_) => {
            for member in ["namespace", "object", "revision", "versions"] {
                if let Some(known) = old.get(member) {
                    status[member] = known.clone();
                }
            }
        }
    }
    status
}

/// Whether a problem is news: people are told once.
pub(crate) fn is_news(old: &Value, problem: &Problem) -> bool {
    ready(old).is_none_or(|before| before["reason"] != problem.reason.as_str() || before["message"] != problem.message)
}

/// The condition `Ready` of a status.
fn ready(status: &Value) -> Option<&Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use crate::problem::Reason;

    fn resource(generation: i64, status: &Value) -> Resource {
        let metadata = json!({"namespace": "atlas", "name": "a", "generation": generation});
        Resource::read(Kind::Chain, &json!({"metadata": metadata, "spec": {}, "status": status})).expect("a resource")
    }

    #[test]
    fn a_condition_keeps_its_time_while_it_holds() {
        let object = "chain/a".to_owned();
        let synced = Synced { namespace: "default".to_owned(), object, revision: Some(7), versions: Vec::new() };
        let first = status(&resource(1, &Value::Null), Ok(&synced), "t1");
        assert_eq!(first["conditions"][0]["lastTransitionTime"], "t1");
        assert_eq!(status(&resource(1, &first), Ok(&synced), "t2"), first);
        let next = status(&resource(2, &first), Ok(&synced), "t3");
        assert_eq!(
            (&next["observedGeneration"], &next["conditions"][0]["lastTransitionTime"]),
            (&json!(2), &json!("t1"))
        );
        let refused = Problem::new(Reason::Refused, "E1118: no");
        let failed = status(&resource(3, &next), Err(&refused), "t4");
        let condition = json!({
            "type": "Ready", "status": "False", "reason": "Refused", "message": "E1118: no", "observedGeneration": 3,
            "lastTransitionTime": "t4",
        });
        assert_eq!((&failed["conditions"][0], &failed["revision"]), (&condition, &json!(7)));
        assert!(is_news(&next, &refused) && !is_news(&failed, &refused));
        let unreachable = Problem::new(Reason::Unreachable, "no answer");
        assert_eq!(status(&resource(3, &failed), Err(&unreachable), "t5")["conditions"][0]["status"], "Unknown");
        assert!(is_news(&failed, &unreachable));
    }
}
