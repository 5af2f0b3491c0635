//! What a caller may name as a model, and the jobs of model calls.

use std::collections::BTreeMap;

use atlas_model::CALL_AGENT;
use atlas_package::{PackFile, pack_files};
use atlas_types::{Expect, RequestId};
use expect_test::expect;
use serde_json::json;

use super::{Node, caller};
use crate::testing::Net;
use crate::{Error, ModelCall, UsableForm, UsableModel};

const TALKER: &str = "agent:\n  name: NAME\n  version: VERSION\n  provider: { type: exec, command: [cat] }\n  \
                      input: { schema: { type: object, properties: { messages: { type: array } } } }\n";
const ADDER: &str = "agent:\n  name: adder\n  version: 1.0.0\n  provider: { type: exec, command: [cat] }\n  \
                     input: { schema: { type: object, properties: { a: { type: number } }, required: [a] } }\n";

impl Node {
    async fn agent(&self, contract: &str) {
        let file = PackFile { path: "agent.yaml".to_owned(), bytes: contract.into(), executable: false };
        let package = pack_files(vec![file]).expect("a package").bytes;
        self.service.register(&caller(), package.into(), false).await.expect("registered");
    }

    async fn names(&self) -> String {
        let all = self.service.usable_models(&caller()).await.expect("a list");
        all.iter().map(shown).collect()
    }

    async fn named(&self, name: &str) -> Option<String> {
        self.service.usable_model(&caller(), name).await.expect("an answer").as_ref().map(shown)
    }
}

fn shown(model: &UsableModel) -> String {
    let form = match &model.form {
        UsableForm::Model { name, .. } => format!("model {name}"),
        UsableForm::Agent { agent, mapping, .. } => {
            format!("agent {} {} {}", agent.agent.name, agent.agent.version, mapping.is_ok())
        }
        UsableForm::Chain => "chain".to_owned(),
    };
    format!("{}: {form}\n", model.id)
}

fn talker(name: &str, version: &str) -> String {
    TALKER.replace("NAME", name).replace("VERSION", version)
}

#[tokio::test]
async fn models_agents_and_chains_are_found_by_their_names() {
    let node = Node::has_models(&Net::new(1)).await;
    node.agent(&talker("talker", "1.0.0")).await;
    node.agent(&talker("talker", "1.1.0")).await;
    node.agent(&talker("chat", "2.0.0")).await;
    node.agent(ADDER).await;
    node.put("chain", "digest", Expect::Any, json!({"steps": [{"agent": "talker"}]})).await.expect("made");
    expect![[r#"
        chat: model chat
        embedding: model embedding
        agent/chat: agent chat 2.0.0 true
        talker: agent talker 1.1.0 true
        digest: chain
    "#]]
    .assert_eq(&node.names().await);
    let mut found = String::new();
    for name in ["chat", "model/chat", "agent/chat", "talker", "talker@1.0.0", "agent/talker@^1.0.0", "adder"] {
        found += &format!("{name} -> {}", node.named(name).await.unwrap_or_else(|| "nothing\n".to_owned()));
    }
    expect![[r#"
        chat -> chat: model chat
        model/chat -> chat: model chat
        agent/chat -> agent/chat: agent chat 2.0.0 true
        talker -> talker: agent talker 1.1.0 true
        talker@1.0.0 -> talker@1.0.0: agent talker 1.0.0 true
        agent/talker@^1.0.0 -> agent/talker@^1.0.0: agent talker 1.1.0 true
        adder -> adder: agent adder 1.0.0 false
    "#]]
    .assert_eq(&found);
    for name in
        ["talker@^2", "chain/talker", "model/talker", "agent/digest", "reranker", CALL_AGENT, "", "a/b/c", "nobody"]
    {
        assert_eq!(node.named(name).await, None, "{name}");
    }
}

#[tokio::test]
async fn what_a_policy_denies_is_not_there() {
    let node = Node::has_models(&Net::new(1)).await;
    node.agent(&talker("talker", "1.0.0")).await;
    let when = "agent.name == 'talker' || agent.name == 'model-call' && input.model == 'chat'";
    let rule = json!({"name": "r", "on": ["submit"], "when": when, "effect": "deny"});
    node.put("policy", "p", Expect::Any, json!({"rules": [rule]})).await.expect("made");
    assert_eq!(node.names().await, "embedding: model embedding\n");
    for name in ["chat", "model/chat", "talker", "agent/talker"] {
        assert_eq!(node.named(name).await, None, "{name}");
    }
    let denied = node.service.call_model(&caller(), call("chat", None)).await.err();
    assert!(matches!(denied, Some(Error::PolicyDenied { .. })), "{denied:?}");
    node.service.call_model(&caller(), call("embedding", None)).await.expect("allowed");
}

fn call(model: &str, key: Option<&str>) -> ModelCall {
    let request = json!({"messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]});
    ModelCall {
        input: json!({"model": model, "request": request}),
        labels: BTreeMap::from([("openai".to_owned(), "chat".to_owned())]),
        request_id: key.map(|key| RequestId::new(key).expect("a key")),
    }
}

#[tokio::test]
async fn a_call_is_a_job_of_the_own_agent_and_a_repeat_finds_it() {
    let node = Node::has_models(&Net::new(1)).await;
    let first = node.service.call_model(&caller(), call("chat", Some("k"))).await.expect("submitted");
    let again = node.service.call_model(&caller(), call("chat", Some("k"))).await.expect("submitted");
    assert_eq!(first.id, again.id);
    let other = node.service.call_model(&caller(), call("embedding", Some("k"))).await.err();
    assert!(matches!(other, Some(Error::RequestConflict)), "{other:?}");
    let [job] = &node.jobs()[..] else { panic!("one job") };
    assert!(node.service.is_model_call(job) && job.labels["openai"] == "chat");
    node.service.forget_job(&caller(), job.id).await.expect("forgotten");
    let state = node.service.handle().applied();
    assert!(state.job(job.id).is_none_or(|job| job.status.is_terminal() && job.labels.contains_key("atlas.erased")));
}
