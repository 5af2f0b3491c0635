//! What policies leave the jobs of agents and of skills.

use atlas_types::{Expect, Job, JobId, Namespace};
use serde_json::json;

use super::{Node, inline};
use crate::testing::Net;

#[tokio::test]
async fn a_run_of_a_skill_has_the_bounds_of_the_namespace_that_called_it() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    node.put("policy", "a", Expect::Any, json!({ "namespaces": ["a"], "network": [] })).await.expect("made");
    node.put("policy", "b", Expect::Any, json!({ "namespaces": ["b"], "max_memory_mb": 64 })).await.expect("made");
    let skills = json!({ "namespaces": ["atlas-skills"], "max_cpu_seconds": 5 });
    node.put("policy", "skills", Expect::Any, skills).await.expect("made");
    node.job(1, inline()).await;
    let state = node.service.handle().applied();
    let job = state.job(JobId(1)).expect("it is there");
    let left = |namespace: &str, metadata: &str| {
        let namespace: Namespace = namespace.parse().expect("a namespace");
        let job = Job { namespace, metadata: metadata.as_bytes().into(), ..(**job).clone() };
        let bounds = node.service.shared.registry.bounds_of(&state, &job).unwrap_or_default();
        (bounds.network.is_some(), bounds.memory_mb, bounds.cpu_seconds)
    };
    assert_eq!(left("a", "{}"), (true, None, None));
    assert_eq!(left("c", "{}"), (false, None, None));
    assert_eq!(left("c", r#"{"_called_from":"a"}"#), (false, None, None));
    assert_eq!(left("atlas-skills", r#"{"_called_from":"a"}"#), (true, None, Some(5)));
    assert_eq!(left("atlas-skills", r#"{"_called_from":"c"}"#), (false, None, Some(5)));
    // Nobody knows who called it, or whoever wrote a trigger says so.
    let all = (true, Some(64), Some(5));
    for metadata in ["", "{}", r#"{"_called_from":7}"#, r#"{"_called_from":"c","_trigger_id":"t"}"#] {
        assert_eq!(left("atlas-skills", metadata), all, "{metadata}");
    }
}
