//! Storms of calls.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Known, boss};
use crate::limits::{MESSAGES_MAX, TASKS_MAX, TEXT_BYTES_MAX};
use crate::{AgentId, Answer, Call, Effect, HelperOutcome, Settings, Tree};

fn call(tree: &mut Tree, caller: &AgentId, name: &str, arguments: &Value) -> Value {
    match tree.call(Call { caller, name, arguments, now_ms: 0 }, &Known) {
        Some(Answer::Now(value)) => value,
        other => json!(format!("{other:?}")),
    }
}

#[test]
fn nothing_grows_without_limit() {
    let mut tree = Tree::new(1, "boss", Settings { concurrent: usize::MAX, depth: usize::MAX, ..boss() });
    let boss = tree.root().clone();
    for _ in 0..MESSAGES_MAX {
        tree.deliver(
            &boss,
            crate::Envelope { from: "x".into(), payload: crate::Payload::ShutdownApproved, sent_ms: 0 },
        );
    }
    let envelope = crate::Envelope { from: "x".into(), payload: crate::Payload::ShutdownApproved, sent_ms: 0 };
    assert!(!tree.deliver(&boss, envelope));
    for _ in 0..TASKS_MAX {
        assert_eq!(call(&mut tree, &boss, "agent__task_create", &json!({"subject": "s"}))["status"], json!("ok"));
    }
    assert_eq!(call(&mut tree, &boss, "agent__task_create", &json!({"subject": "s"}))["status"], json!("error"));
    let long = json!({"subject": "s".repeat(TEXT_BYTES_MAX + 1)});
    assert!(call(&mut tree, &boss, "agent__task_create", &long)["tool_call_error"].is_string());
    let mut refused = 0;
    for _ in 0..2 * crate::limits::AGENTS_MAX {
        let answer = call(&mut tree, &boss, "agent__spawn", &json!({"agent": "kid", "prompt": "p"}));
        refused += usize::from(answer["status"] == json!("error"));
    }
    assert_eq!(refused, crate::limits::AGENTS_MAX + 1);
    assert_eq!(tree.take_effects().len(), crate::limits::AGENTS_MAX - 1);
}

#[test]
fn what_is_not_here_is_refused() {
    let mut tree = Tree::new(1, "boss", Settings::default());
    let boss = tree.root().clone();
    assert_eq!(tree.call(Call { caller: &boss, name: "todo__list", arguments: &json!({}), now_ms: 0 }, &Known), None);
    for name in ["agent__spawn", "agent__other", "agent__task_list", "user__other"] {
        assert!(call(&mut tree, &boss, name, &json!({}))["tool_call_error"].is_string(), "{name}");
    }
    let nobody = AgentId("nobody".into());
    assert!(call(&mut tree, &nobody, "agent__check_inbox", &json!({}))["tool_call_error"].is_string());
    tree.finished(&nobody, HelperOutcome::Completed(String::new()));
}

proptest! {
    /// Every agent that was started ends once: it is reported as finished, or cancelled, but never both.
    #[test]
    fn every_helper_ends_once(steps in proptest::collection::vec((0_usize..6, 0_usize..8), 0..120)) {
        let mut tree = Tree::new(7, "boss", Settings { concurrent: 3, ..boss() });
        let mut agents = vec![tree.root().clone()];
        let mut ended: Vec<AgentId> = Vec::new();
        for (action, of) in steps {
            let who = agents[of % agents.len()].clone();
            let helper = agents[(of * 5 + 3) % agents.len()].clone();
            let own = json!({"id": helper.0});
            match action {
                0 | 1 => drop(call(&mut tree, &who, "agent__spawn", &json!({"agent": "lead", "prompt": "p"}))),
                2 => drop(call(&mut tree, &who, "agent__cancel", &own)),
                3 => drop(call(&mut tree, &who, "agent__collect", &own)),
                4 => drop(tree.stopping(&who)),
                _ if who != *tree.root() && !ended.contains(&who) => {
                    ended.push(who.clone());
                    tree.finished(&who, HelperOutcome::Completed("o".into()));
                }
                _ => {}
            }
            for effect in tree.take_effects() {
                match effect {
                    Effect::Spawn { id, depth, .. } => {
                        prop_assert!(depth <= 3 && !agents.contains(&id));
                        agents.push(id);
                    }
                    Effect::Cancel(id) => {
                        prop_assert!(agents.contains(&id) && !ended.contains(&id), "{id}");
                        ended.push(id);
                    }
                }
            }
        }
    }
}
