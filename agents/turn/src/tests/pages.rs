//! Results that are too long for the model: it reads the rest with a tool of the loop.

use atlas_model::{Part, ToolResult};
use serde_json::{Value, json};

use super::check::*;
use crate::{Effect, Limits, Settings, Turn};

fn settings(tools: &[&str]) -> Settings {
    let limits = Limits { result_bytes: 400, requests: 100, ..Limits::default() };
    Settings { judged: true, utf8: true, mark_errors: true, limits, ..with_tools(tools) }
}

/// The last result that the model got.
fn last_result(turn: &Turn) -> ToolResult {
    let parts = &turn.messages().last().expect("a message").parts;
    let mut results = parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result.clone()),
        _ => None,
    });
    results.next_back().expect("a result")
}

fn offered(turn: &Turn) -> Vec<String> {
    turn.request().tools.into_iter().map(|tool| tool.name).collect()
}

/// A turn whose tool has returned this.
fn after(settings: Settings, result: &Value) -> Turn {
    let mut turn = Turn::new(settings);
    turn.step(start(json!({})), &Typed);
    turn.step(calls(&[("c", "a", json!({}))]), &Typed);
    turn.step(returned(&[("c", result.clone())]), &Typed);
    turn
}

#[test]
fn a_cut_result_is_read_to_its_end() {
    let whole: String = (0..600).map(|line| format!("{line} \"é\"\n")).collect();
    let mut turn = after(settings(&["a"]), &json!(whole));
    assert_eq!(offered(&turn), ["a", "read_result"]);
    let cut = last_result(&turn).content;
    let (begin, said) = cut.rsplit_once("\n[cut: ").expect("it says that it is cut");
    let arguments = said.rsplit_once(" reads on with ").and_then(|(_, text)| text.strip_suffix(']')).expect("how");
    let mut arguments: Value = serde_json::from_str(arguments).expect("arguments");
    let mut read = begin.to_owned();
    loop {
        // The loop answers: there is nothing to call.
        let effects = turn.step(calls(&[("c", "read_result", arguments.clone())]), &Typed);
        assert!(matches!(effects[..], [Effect::Call { .. }]), "{effects:?}");
        let result = last_result(&turn);
        assert!(!result.error && result.content.len() <= 400, "{}", result.content);
        let page: Value = serde_json::from_str(&result.content).expect("JSON");
        read.push_str(page["text"].as_str().expect("a text"));
        match page.get("next_offset") {
            Some(next) => arguments["offset"] = next.clone(),
            None => break,
        }
    }
    let read: Value = serde_json::from_str(&read).expect("the pages make the result");
    assert!(read == json!(whole), "the pages make the result");
    for (arguments, why) in [
        (json!({"result": 9, "offset": 0}), "those that were cut are: 1"),
        (json!({"result": 1, "offset": 1_000_000}), "ends before 1000000"),
        (json!({}), "there is no such result"),
    ] {
        turn.step(calls(&[("c", "read_result", arguments)]), &Typed);
        let result = last_result(&turn);
        assert!(result.error && result.content.contains(why), "{}", result.content);
    }
}

#[test]
fn the_tool_is_offered_and_named_only_where_it_reads_something() {
    let long = json!("x".repeat(1_000));
    assert_eq!(offered(&after(settings(&["a"]), &json!("short"))), ["a"]);
    let own = after(settings(&["a", "read_result"]), &long);
    assert_eq!(offered(&own), ["a", "read_result"]);
    let replayed = after(Settings { judged: false, ..settings(&["a"]) }, &long);
    assert_eq!(offered(&replayed), ["a"]);
    for turn in [own, replayed] {
        let text = last_result(&turn).content;
        assert!(text.ends_with("x\n[cut: these are the first 400 of 1002 bytes]"), "{text}");
    }
    let mut turn = after(settings(&["a"]), &json!("short"));
    turn.step(calls(&[("c", "read_result", json!({"result": 1}))]), &Typed);
    assert!(last_result(&turn).content.contains("there is no tool"), "{}", last_result(&turn).content);
}

#[test]
fn what_is_kept_is_bounded() {
    let mut turn = after(settings(&["a"]), &json!("1".repeat(1 << 20)));
    for _ in 0..6 {
        turn.step(calls(&[("c", "a", json!({}))]), &Typed);
        turn.step(returned(&[("c", json!("2".repeat(1 << 20)))]), &Typed);
    }
    turn.step(calls(&[("c", "read_result", json!({"result": 1, "offset": 0}))]), &Typed);
    let text = last_result(&turn).content;
    assert!(text.contains("those that were cut are: 5, 6, 7"), "{text}");
}
