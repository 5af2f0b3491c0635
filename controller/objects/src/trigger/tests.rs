use expect_test::expect;
use serde_json::json;

use super::*;
use crate::tests::check;

#[test]
fn documents() {
    let with = |members: &str| format!(r#"{{{members}"trigger_type":"webhook"}}"#);
    let long = format!(r#""agent_name":"a","name":"{}","#, "x".repeat(TEXT_BYTES_MAX + 1));
    let cases = [
        with(r#""agent_name":"a","#),
        with(r#""agent_name":"a","later":1,"#),
        with(""),
        with(r#""agent_name":"a","chain_name":"c","#),
        with(r#""agent_name":"a","input_data":"[]","#),
        with(r#""agent_name":"a","metadata":"{","#),
        with(r#""agent_name":"a","overlap":"never","#),
        with(r#""agent_name":"a","map":{"a":1},"#),
        r#"{"agent_name":"a","trigger_type":"daily"}"#.to_owned(),
    ];
    check(
        "trigger",
        &cases.each_ref().map(String::as_str),
        &expect![[r#"
            ok {"agent_name":"a","trigger_type":"webhook"}
            ok {"agent_name":"a","later":1,"trigger_type":"webhook"}
            ! `spec.agent_name` or `spec.chain_name` names what is started, not both
            ! `spec.agent_name` or `spec.chain_name` names what is started, not both
            ! `spec.input_data` is not a JSON object
            ! `spec.metadata` is not a JSON object
            ! `spec.overlap` is one of allow, skip, queue, cancel
            ! `spec` cannot be read: invalid type: integer `1`, expected a string at line 1 column 30
            ! `spec.trigger_type` is one of cron, interval, one_shot, webhook
        "#]],
    );
    let spec = TriggerSpec::read(with(&long).as_bytes()).expect("a spec");
    assert_eq!(spec.check().map_err(|refusal| refusal.field), Err("spec.name"));
}

#[test]
fn inputs_keep_their_fractions_and_secrets_are_not_shown() {
    let mut spec = json!({"trigger_type": "webhook", "agent_name": "a", "input_data": {"x": 0.5}});
    TriggerKind.normalise(&mut spec);
    assert_eq!(spec["input_data"], json!(r#"{"x":0.5}"#));
    spec["webhook_secret"] = json!({"sealed": "…"});
    TriggerKind.shown(&mut spec);
    assert_eq!((&spec["input_data"], &spec["webhook_secret"]), (&json!({"x": 0.5}), &json!("***")));
}

#[test]
fn a_one_shot_fires_once_for_a_time() {
    let spec = |fire_at: u64, rearmed: u64| {
        let text = format!(r#"{{"agent_name":"a","fire_at":{fire_at},"rearmed":{rearmed},"trigger_type":"one_shot"}}"#);
        TriggerSpec::read(text.as_bytes()).expect("a spec")
    };
    let status = TriggerStatus { spent: spec(5, 0).shot(), ..TriggerStatus::default() };
    let armed = [spec(5, 0), spec(6, 0), spec(5, 1)].map(|spec| spec.is_armed(&status));
    assert_eq!(armed, [false, true, true]);
}

#[test]
fn the_golden_document_reads_as_ever() {
    let spec = TriggerSpec::read(include_bytes!("../../golden/trigger.json")).expect("a spec");
    assert_eq!((spec.trigger_type.as_str(), spec.chain_name.as_str(), spec.overlap.as_str()), ("webhook", "", "skip"));
    assert_eq!(spec.map.get("name").map(String::as_str), Some("body.actor"));
    assert_eq!(spec.webhook_secret.map(|sealed| sealed.version), Some(2));
}
