//! Todo lists: their settings and tools, and the continuations of an agent with a scripted model.

use std::collections::BTreeMap;

use atlas_contract::yaml;
use atlas_model::{Answer, CallError, CallErrorKind, Message, Part, ToolCall, Usage};
use atlas_turn::{
    AutoContinue, AutoContinueLayer, Effect, Event, Limits, NoChecks, OfferedTool, Plan, Planner, Settings, TodoList,
    Turn, todo,
};
use serde_json::{Map, Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text, unknown};

/// Equal calls in a row that Loki makes for an agent that a person started.
const SAME_CALLS: u32 = 2;

pub(super) fn judge(row: &Row) -> Judged {
    let known = ["app", "role", "session", "agent", "agents", "ops", "asks", "set", "replies"];
    if let Some(member) = unknown(&row.input, &known) {
        return Err(Stop::skip(format!("todo rows with \"{member}\"")));
    }
    let mut app = row.input["app"].clone();
    for setting in items(&row.input, "set").filter_map(Value::as_str) {
        let (name, value) = setting.split_once(' ').unwrap_or((setting, ""));
        app[name] = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
    }
    let tools = app["function_calling_support"] != json!(false);
    let settings = settings(row, &app)?;
    let mut answer = Map::new();
    answer.insert("config".to_owned(), config(&settings));
    let mut list = TodoList::default();
    if row.input.get("ops").is_some() {
        let mut planner = Planner::new(settings.clone(), tools, list);
        let results = items(&row.input, "ops").map(|operation| perform(&mut planner, &settings, tools, operation));
        answer.insert("results".to_owned(), results.collect::<Result<_, _>>()?);
        list = planner.list().clone();
    }
    if row.input.get("asks").is_some() {
        list = converse(row, &settings, list, &mut answer)?;
    }
    answer.insert("todo".to_owned(), json!(list));
    let mut expected = row.expect.clone();
    ours(row, &mut expected, &answer);
    compare(&expected, &Value::Object(answer), &Captures::new())
}

/// The texts of alerts are our own.
fn ours(row: &Row, expected: &mut Value, answer: &Map<String, Value>) {
    let is_alert = |message: &Value| message.to_string().contains("tool_call_loop_alert");
    let own = answer.get("last_messages").and_then(Value::as_array);
    let messages = expected.get_mut("last_messages").and_then(Value::as_array_mut);
    for (expected, own) in messages.into_iter().flatten().zip(own.into_iter().flatten()) {
        if is_alert(expected) && is_alert(own) {
            expected.clone_from(own);
        }
    }
    // An agent that repeats itself is not asked again, so what follows differs.
    let stops = row.differs.iter().any(|ours| ours.contains("identical"));
    let fewer = answer.get("model_calls").and_then(Value::as_u64) < expected["model_calls"].as_u64();
    if stops && fewer {
        *expected = Value::Object(answer.clone());
    }
}

fn settings(row: &Row, app: &Value) -> Result<AutoContinue, Stop> {
    let agent = row.text("agent");
    if agent.is_empty() {
        let layers = [layer(&row.input["session"])?, layer(&row.input["role"])?, layer(app)?];
        return Ok(AutoContinue::resolve(&layers.each_ref()));
    }
    let source = text(&row.input["agents"], &format!("{agent}/config.yaml"));
    let config = yaml::load(source.as_bytes(), yaml::Budget::default());
    let config = config.map_err(|error| Stop::fail(format!("the agent's configuration: {error}")))?;
    Ok(AutoContinue::resolve(&[&layer(&config)?]))
}

/// The settings in a document, which has others as well.
fn layer(document: &Value) -> Result<AutoContinueLayer, Stop> {
    let document = if document.is_null() { json!({}) } else { document.clone() };
    serde_json::from_value(document).map_err(|error| Stop::fail(format!("the settings: {error}")))
}

fn config(settings: &AutoContinue) -> Value {
    let AutoContinue { enabled, max, inject, prompt } = settings;
    json!({"enabled": enabled, "max": max, "inject": inject, "prompt": prompt})
}

fn perform(planner: &mut Planner, settings: &AutoContinue, tools: bool, operation: &Value) -> Result<Value, Stop> {
    Ok(match text(operation, "op") {
        "tool" => match planner.call(text(operation, "name"), &operation["args"]) {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => json!({"tool_error": [error.to_string()]}),
            None => json!({"tool_error": [format!("there is no tool \"{}\"", text(operation, "name"))]}),
        },
        "render" => json!(planner.list().to_string()),
        "should_continue" => json!(planner.is_due()),
        "increment" => json!(planner.increment()),
        "count" => json!(planner.count()),
        "tools_declared" if settings.enabled && tools => json!(todo::NAMES),
        "tools_declared" => json!([]),
        other => return Err(Stop::skip(format!("the operation \"{other}\" on todo lists"))),
    })
}

/// What prompts lead to. The todo list lasts from one to the next.
fn converse(
    row: &Row,
    settings: &AutoContinue,
    mut list: TodoList,
    answer: &mut Map<String, Value>,
) -> Result<TodoList, Stop> {
    let (mut asks, mut messages) = (Vec::new(), Vec::new());
    let mut replies = items(&row.input, "replies");
    for prompt in items(&row.input, "asks") {
        let mut turn = Turn::new(fixed(settings.clone(), list));
        let said = vec![Message::user(prompt.as_str().unwrap_or_default())];
        let mut effects = turn.step(Event::Started { input: json!({}), images: Vec::new(), said }, &NoChecks);
        let result = loop {
            match &effects[..] {
                [Effect::Call { .. }] => messages.push(turn.messages().last().map_or(Value::Null, shown)),
                [Effect::Finish { .. }] => break "ok",
                [Effect::Fail(_)] => break "error",
                other => return Err(Stop::skip(format!("a conversation that leads to {other:?}"))),
            }
            effects = turn.step(reply(replies.next()), &NoChecks);
        };
        list = turn.todo().cloned().unwrap_or_default();
        // The count of a prompt ends with it.
        asks.push(json!({"result": result, "count": 0, "todo": list}));
    }
    answer.insert("asks".to_owned(), json!(asks));
    answer.insert("model_calls".to_owned(), json!(messages.len()));
    answer.insert("last_messages".to_owned(), json!(messages));
    let enabled = row.input["app"]["enabled_tools"].as_str();
    answer.insert("tools_offered".to_owned(), json!([atlas_tools::offered(&todo::NAMES, enabled, &BTreeMap::new())]));
    Ok(list)
}

fn fixed(continuation: AutoContinue, list: TodoList) -> Settings {
    let tools = todo::tools().into_iter().map(|tool| OfferedTool { name: tool.name.clone(), tool });
    Settings {
        tools: tools.collect(),
        limits: Limits { requests: 1000, same_calls: SAME_CALLS, ..Limits::default() },
        plan: Some(Plan { continuation, list }),
        ..Settings::default()
    }
}

/// A scripted reply. Without one, the call fails.
pub(super) fn reply(reply: Option<&Value>) -> Event {
    let Some(reply) = reply.filter(|reply| reply.get("error").is_none()) else {
        let (kind, message) = (CallErrorKind::Provider, "the script has no more replies".to_owned());
        return Event::Failed(CallError { kind, status: Some(500), message, retry_after: None });
    };
    let said = reply.as_str().unwrap_or(text(reply, "text"));
    let mut parts = vec![Part::Text { text: said.to_owned() }];
    parts.extend(items(reply, "calls").enumerate().map(|(place, call)| {
        let (id, name) = (format!("call-{place}"), text(call, "name").to_owned());
        Part::ToolCall(ToolCall { id, name, arguments: call["args"].clone(), opaque: Value::Null })
    }));
    let (usage, model) = (Usage::default(), "scripted".to_owned());
    Event::Answered(Box::new(Answer { parts, stop: atlas_model::Stop::End, usage, model, id: None, raw: Map::new() }))
}

fn shown(message: &Message) -> Value {
    match message.parts.last() {
        Some(Part::ToolResult(result)) => {
            let content = serde_json::from_str(&result.content).unwrap_or_else(|_| json!(result.content));
            json!({"role": "tool", "result": content})
        }
        _ => json!({"role": "user", "text": message.text()}),
    }
}
