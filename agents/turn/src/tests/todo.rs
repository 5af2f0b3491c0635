//! Todo lists, continuation, and the guard of equal calls.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check::*;
use crate::{
    AutoContinue, AutoContinueLayer, Effect, Event, Limits, OfferedTool, Plan, Planner, Settings, TodoList, Turn, todo,
};

fn settings(max: u32) -> Settings {
    let continuation = AutoContinue { enabled: true, max, prompt: Some("GO ON".to_owned()), ..AutoContinue::default() };
    let tools = todo::tools().into_iter().map(|tool| OfferedTool { name: tool.name.clone(), tool }).collect();
    let limits = Limits { requests: 20, ..Limits::default() };
    Settings { tools, limits, plan: Some(Plan { continuation, list: TodoList::default() }), ..with_tools(&[]) }
}

#[test]
fn an_agent_with_open_items_goes_on_until_the_cap() {
    let add = |id: &str, task: &str| (id.to_owned(), "todo__add", json!({ "task": task }));
    let [(a, name, one), (b, _, two)] = [add("1", "x"), add("2", "y")];
    let events = vec![
        start(json!("work")),
        calls(&[("0", "todo__init", json!({"goal": "G"})), (&a, name, one), (&b, name, two)]),
        says("first"),
        calls(&[("3", "todo__done", json!({"id": "1"}))]),
        says("second"),
        says("third"),
    ];
    check(
        settings(2),
        events,
        &expect![[r#"
            call
              user: "work"
            call
              assistant: 0 todo__init{"goal":"G"} | 1 todo__add{"task":"x"} | 2 todo__add{"task":"y"}
              user: 0 = {"status": "ok", "message": "Initialized new todo list"} | 1 = {"status": "ok", "id": 1} | 2 = {"status": "ok", "id": 2}
            call
              assistant: first
              user: GO ON

            Goal: G
            Progress: 0/2 completed
              ○ 1. x
              ○ 2. y
            call
              assistant: 3 todo__done{"id":"1"}
              user: 3 = {"status": "ok", "message": "Marked todo 1 as done"}
            call
              assistant: second
              user: GO ON

            Goal: G
            Progress: 1/2 completed
              ✓ 1. x
              ○ 2. y
            finish (Answer): {"result":"third"}
        "#]],
    );
}

#[test]
fn an_agent_that_repeats_itself_stops() {
    let mut turn = Turn::new(settings(10));
    turn.step(start(json!("work")), &Typed);
    turn.step(calls(&[("1", "todo__add", json!({"task": "x"}))]), &Typed);
    assert!(matches!(turn.step(says("waiting"), &Typed)[..], [Effect::Call { .. }]));
    assert!(matches!(turn.step(says("waiting"), &Typed)[..], [Effect::Finish { .. }]));
    assert_eq!(turn.totals().continuations, 1);
}

#[test]
fn an_agent_whose_helpers_work_is_reminded_of_them_before_its_open_items() {
    let mut turn = Turn::new(settings(10));
    turn.step(start(json!("work")), &Typed);
    turn.step(calls(&[("1", "todo__add", json!({"task": "x"}))]), &Typed);
    turn.set_helpers(true);
    assert!(matches!(turn.step(says("done"), &Typed)[..], [Effect::Stop { .. }]));
    let effects = turn.step(Event::Stopping(Some("collect them".to_owned())), &Typed);
    assert!(matches!(effects[..], [Effect::Call { .. }]));
    assert_eq!(turn.messages().last().map(atlas_model::Message::text), Some("collect them".to_owned()));
    assert!(matches!(turn.step(says("done"), &Typed)[..], [Effect::Stop { .. }]));
    // It may stop as far as its helpers go; the list has an open item.
    assert!(matches!(turn.step(Event::Stopping(None), &Typed)[..], [Effect::Call { .. }]));
    assert_eq!(turn.totals().continuations, 1);
    assert!(matches!(turn.step(says("done"), &Typed)[..], [Effect::Finish { .. }]));
}

#[test]
fn an_equal_call_in_a_row_is_not_made() {
    let limits = Limits { same_calls: 2, requests: 20, ..Limits::default() };
    let mut turn = Turn::new(Settings { limits, ..with_tools(&["a"]) });
    turn.step(start(json!("work")), &Typed);
    let mut made = 0;
    let mut ask = |turn: &mut Turn, query: Value| {
        let effects = turn.step(calls(&[("1", "a", query)]), &Typed);
        if matches!(effects[..], [Effect::Tools { .. }]) {
            made += 1;
            turn.step(returned(&[("1", json!("r"))]), &Typed);
        }
        made
    };
    let counts =
        [json!({}), json!({}), json!({}), json!({}), json!({"q": 1}), json!({})].map(|query| ask(&mut turn, query));
    assert_eq!(counts, [1, 2, 2, 2, 3, 4]);
    let alert = turn.messages().iter().map(|message| format!("{message:?}")).filter(|text| text.contains("loop_alert"));
    assert_eq!(alert.count(), 2);
    // Equal calls of one answer are made.
    let effects = turn.step(calls(&[("1", "a", json!(1)), ("2", "a", json!(1)), ("3", "a", json!(1))]), &Typed);
    assert!(!matches!(effects[..], [Effect::Finish { .. }]), "{effects:?}");
}

#[track_caller]
fn call(list: &mut TodoList, name: &str, arguments: &Value) -> String {
    list.call(&format!("todo__{name}"), arguments).map_or_else(|| "none".to_owned(), |answer| answer.to_string())
}

#[test]
fn tools_of_the_list() {
    let mut list = TodoList::default();
    let mut answers = String::new();
    for (name, arguments) in [
        ("add", json!({"task": ""})),
        ("add", json!({"task": 5})),
        ("add", json!({"task": "a"})),
        ("done", json!({"id": 2})),
        ("done", json!({"id": " 1 "})),
        ("done", json!({"id": -1})),
        ("done", json!({"id": 1.0})),
        ("done", json!({"id": "1"})),
        ("add", json!({"task": "b"})),
        ("list", json!(null)),
        ("init", json!({"goal": "G"})),
        ("list", json!({})),
        ("clear", json!({})),
        ("other", json!({})),
        ("add", json!({"task": "x".repeat(todo::TEXT_BYTES_MAX + 1)})),
    ] {
        answers.push_str(&call(&mut list, name, &arguments));
        answers.push('\n');
    }
    expect![[r#"
        {"error":"task description is required"}
        {"error":"task description is required"}
        {"status":"ok","id":1}
        {"error":"Todo 2 not found"}
        {"error":"id is required and must be a number"}
        {"error":"id is required and must be a number"}
        {"error":"id is required and must be a number"}
        {"status":"ok","message":"Marked todo 1 as done"}
        {"status":"ok","id":2}
        {"goal":"","todos":[{"id":1,"desc":"a","done":true},{"id":2,"desc":"b","done":false}]}
        {"status":"ok","message":"Initialized new todo list"}
        {"goal":"","todos":[]}
        {"status":"ok","message":"Todo list cleared"}
        none
        {"error":"the task is longer than 16384 bytes"}
    "#]]
    .assert_eq(&answers);
}

#[test]
fn settings_come_from_the_first_layer_that_has_them() {
    let layer = |text: &str| serde_json::from_str::<AutoContinueLayer>(text).expect("a layer");
    let (session, program) =
        (layer(r#"{"max_auto_continues": 3}"#), layer(r#"{"auto_continue": true, "max_auto_continues": 5}"#));
    let expected = AutoContinue { enabled: true, max: 3, ..AutoContinue::default() };
    assert_eq!(AutoContinue::resolve(&[&session, &AutoContinueLayer::default(), &program]), expected);
    assert_eq!(AutoContinue::resolve(&[]), AutoContinue::default());
}

proptest! {
    #[test]
    fn a_prompt_has_at_most_as_many_continuations_as_allowed(max in 0_u32..5, answers in proptest::collection::vec("[ab]", 0..30)) {
        let settings = AutoContinue { enabled: true, max, ..AutoContinue::default() };
        let mut planner = Planner::new(settings, true, TodoList::default());
        planner.call("todo__add", &json!({"task": "x"}));
        let mut in_a_row = 0;
        for answer in answers {
            match planner.stopped(&answer) {
                Some(next) => {
                    in_a_row += 1;
                    prop_assert_eq!(next.count, in_a_row);
                }
                None => in_a_row = 0,
            }
            prop_assert!(in_a_row <= max && planner.count() == in_a_row);
        }
    }
}
