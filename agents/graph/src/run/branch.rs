//! One node of a super-step: what is to be done for it, and what follows from the result.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::fault::{Fault, FaultKind};
use super::work::{Note, Question, Task};
use crate::LengthRule;
use crate::graph::{Graph, INITIAL_PROMPT, Kind, MapNode, Next, Node};
use crate::structured;
use crate::template::{self, Scope, TemplateError};
use crate::type_name;

/// What a branch sees: the state before the super-step, and what the branch has written since.
#[derive(Debug, Clone)]
pub(super) struct View<'a> {
    pub(super) state: &'a Map<String, Value>,
    pub(super) own: Map<String, Value>,
    pub(super) given: &'a Map<String, Value>,
}

/// What a node needs.
#[derive(Debug)]
pub(super) enum Begun {
    Task(Task),
    /// One run of another node for each of these items.
    Items(Vec<Value>),
    /// Nothing.
    Nothing,
}

/// A node that ended without a failure.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Done {
    /// The keys that it wrote.
    pub(super) writes: Map<String, Value>,
    /// The next nodes, as they are written.
    pub(super) to: Vec<String>,
    /// The output of an end node.
    pub(super) output: Option<String>,
    /// The node's own result, for a map.
    pub(super) result: Option<Value>,
    /// Why it continues at its fallback.
    pub(super) fell_back: Option<Fault>,
    pub(super) note: Option<Note>,
}

/// Renders the texts of a node.
pub(super) fn begin(graph: &Graph, node: &Node, view: &View<'_>) -> Result<Begun, Fault> {
    let strict =
        |field: &str, text: &str| template::strict(text, &view.scope(None)).map_err(|error| wrong(field, &error));
    Ok(Begun::Task(match &node.kind {
        Kind::Llm(llm) => {
            let mut instructions = llm.instructions.as_deref().map(|text| strict("instructions", text)).transpose()?;
            let mut prompt = strict("prompt", &llm.prompt)?;
            if let Some(schema) = &llm.output_schema {
                let hinted = instructions.as_mut().unwrap_or(&mut prompt);
                hinted.push_str(&structured::hint(schema));
            }
            Task::Llm { instructions, prompt }
        }
        Kind::Script(_) => {
            let mut state = view.state.clone();
            state.extend(view.own.clone());
            Task::Script { state: Arc::new(state) }
        }
        Kind::Agent(agent) => Task::Agent { prompt: strict("prompt", &agent.prompt)? },
        Kind::Rag(rag) => {
            let default = format!("{{{{{INITIAL_PROMPT}}}}}");
            Task::Rag { query: strict("query", rag.query.as_deref().unwrap_or(&default))? }
        }
        Kind::Approval(approval) => Task::Ask(Question {
            text: strict("question", &approval.question)?,
            options: Some(approval.options.clone()),
            default: None,
            rule: None,
        }),
        Kind::Input(input) => {
            let mut text = strict("question", &input.question)?;
            let default = input.default.as_deref().map(|text| template::lenient(text, &view.scope(None))).transpose();
            let default = default.map_err(|error| wrong("default", &error))?.filter(|text| !text.is_empty());
            if let Some(default) = &default {
                text.push_str(&format!(" [default: {default}]"));
            }
            let rule = input.validation.as_deref().map(LengthRule::parse).transpose();
            let rule = rule.map_err(|error| Fault::new(FaultKind::InputValidation, error.to_string()))?;
            Task::Ask(Question { text, options: None, default, rule })
        }
        Kind::Map(map) => return items(graph, node, map, view).map(Begun::Items),
        Kind::End { .. } => return Ok(Begun::Nothing),
    }))
}

fn items(graph: &Graph, node: &Node, map: &MapNode, view: &View<'_>) -> Result<Vec<Value>, Fault> {
    next(node)?;
    let missing = || Fault::new(FaultKind::UnknownNode, format!("the branch \"{}\" does not exist", map.branch));
    let branch = graph.node(&map.branch).ok_or_else(missing)?;
    if !matches!(branch.kind, Kind::Llm(_) | Kind::Script(_) | Kind::Agent(_) | Kind::Rag(_)) {
        let text = format!("the branch \"{}\" is of type {}, which a map cannot run", map.branch, branch.type_name());
        return Err(Fault::new(FaultKind::MapBranchType, text));
    }
    match template::typed(&map.over, &view.scope(None)).map_err(|error| wrong("over", &error))? {
        Value::Array(items) => Ok(items),
        other => {
            let text = format!("over must be an array, got {}", type_name(&other));
            Err(Fault::new(FaultKind::MapOver, text))
        }
    }
}

/// Applies the result of a node. A branch of a map has no next node, and merges nothing.
pub(super) fn finish(node: &Node, view: View<'_>, reply: Result<Value, Fault>, is_item: bool) -> Result<Done, Fault> {
    match &node.kind {
        Kind::Llm(_) => {
            let (value, fault) = match reply {
                Ok(value) => (value, None),
                Err(fault) => (Value::from(failure_text(&fault)), Some(fault)),
            };
            let merged = if fault.is_none() && !is_item { merged(node, &value) } else { Map::new() };
            let mut done = updated(node, view, merged, Some(&value))?;
            done.result = Some(value);
            match (fault, node.fallback()) {
                (None, _) => route(node, done, is_item),
                (Some(fault), Some(fallback)) => {
                    Ok(Done { to: vec![fallback.to_owned()], fell_back: Some(fault), ..done })
                }
                (Some(fault), None) => {
                    let text = format!("{} (a fallback would let the run continue)", fault.text);
                    Err(Fault::new(fault.kind, text))
                }
            }
        }
        Kind::Script(_) => script(node, view, reply, is_item),
        Kind::Agent(_) | Kind::Rag(_) => {
            let value = reply?;
            let merged = if is_item { Map::new() } else { merged(node, &value) };
            let done = updated(node, view, merged, Some(&value))?;
            route(node, Done { result: Some(value), ..done }, is_item)
        }
        Kind::Approval(approval) => {
            let choice = match reply {
                Ok(choice) => choice,
                Err(fault) => match &approval.on_timeout {
                    Some(target) if fault.kind == FaultKind::NoAnswer => {
                        return Ok(Done { to: vec![target.clone()], fell_back: Some(fault), ..Done::default() });
                    }
                    _ => return Err(fault),
                },
            };
            let done = updated(node, view, Map::new(), Some(&choice))?;
            let label = choice.as_str().unwrap_or_default();
            let route = approval.routes.iter().find(|(option, _)| option == label);
            Ok(Done { to: vec![route.map_or(&approval.on_other, |(_, target)| target).clone()], ..done })
        }
        Kind::Input(_) => {
            let done = updated(node, view, Map::new(), Some(&reply?))?;
            let first = next(node)?.into_iter().take(1).collect();
            Ok(Done { to: first, ..done })
        }
        Kind::End { output } => {
            let mut view = view;
            let done = write(node, &mut view, Map::new(), None)?;
            let output = template::lenient(output, &view.scope(None)).map_err(|error| wrong("output", &error))?;
            Ok(Done { output: Some(output), ..done })
        }
        Kind::Map(map) => {
            let writes = Map::from_iter([(map.collect_into.clone(), reply?)]);
            Ok(Done { writes, to: next(node)?, ..Done::default() })
        }
    }
}

fn script(node: &Node, view: View<'_>, reply: Result<Value, Fault>, is_item: bool) -> Result<Done, Fault> {
    let mut printed = match reply {
        Ok(Value::Object(printed)) => printed,
        Ok(_) => return Err(Fault::new(FaultKind::ScriptObject, "the script printed no JSON object")),
        Err(fault) => {
            let Some(fallback) = node.fallback() else { return Err(fault) };
            return Ok(Done { to: vec![fallback.to_owned()], fell_back: Some(fault), ..Done::default() });
        }
    };
    let chosen = printed.shift_remove("_next");
    let mut done = updated(node, view, printed, None)?;
    match chosen {
        _ if is_item => Ok(done),
        Some(Value::String(chosen)) => Ok(Done { to: vec![chosen], ..done }),
        other => {
            done.note = other.map(|_| Note::NextIgnored { node: node.id.clone() });
            route(node, done, is_item)
        }
    }
}

/// The result of a map's item: what the branch wrote under this key, or else the result of its node.
pub(super) fn item_result(done: Done, key: &str) -> Result<Value, Fault> {
    let missing = || Fault::new(FaultKind::MapMissingKey, format!("the branch wrote no '{key}'"));
    let mut writes = done.writes;
    writes.shift_remove(key).or(done.result).ok_or_else(missing)
}

/// What a failed model node writes as its result.
fn failure_text(fault: &Fault) -> String {
    match fault.kind {
        FaultKind::Extraction => format!("LLM node structured-extraction failed: {}", fault.text),
        _ => format!("LLM node failed: {}", fault.text),
    }
}

/// The members of a result that become state keys: those of an object that was made for a schema.
fn merged(node: &Node, value: &Value) -> Map<String, Value> {
    let (Some(schema), Some(members)) = (node.output_schema(), value.as_object()) else { return Map::new() };
    let declared = schema.get("properties").and_then(Value::as_object);
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let is_merged = |name: &String| !is_closed || declared.is_some_and(|declared| declared.contains_key(name));
    members.iter().filter(|(name, _)| is_merged(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn updated(node: &Node, mut view: View<'_>, merged: Map<String, Value>, result: Option<&Value>) -> Result<Done, Fault> {
    write(node, &mut view, merged, result)
}

/// Writes members and then the node's `state_updates`, each of which sees the writes before it.
fn write(node: &Node, view: &mut View<'_>, merged: Map<String, Value>, result: Option<&Value>) -> Result<Done, Fault> {
    let mut writes = merged;
    view.own.extend(writes.clone());
    for (key, text) in node.updates.iter().flatten() {
        let scope = view.scope(node.result_name().zip(result));
        let value = template::lenient(text, &scope).map_err(|error| wrong("state_updates", &error))?;
        view.own.insert(key.clone(), Value::from(value.as_str()));
        writes.insert(key.clone(), Value::from(value));
    }
    Ok(Done { writes, ..Done::default() })
}

fn route(node: &Node, done: Done, is_item: bool) -> Result<Done, Fault> {
    if is_item { Ok(done) } else { Ok(Done { to: next(node)?, ..done }) }
}

/// The targets of `next`. An empty list is one; without any the node cannot continue.
fn next(node: &Node) -> Result<Vec<String>, Fault> {
    let missing = || Fault::new(FaultKind::NoNext, format!("{} node \"{}\" has no next", node.type_name(), node.id));
    node.next.as_ref().map(Next::targets).map(<[String]>::to_vec).ok_or_else(missing)
}

fn wrong(field: &str, error: &TemplateError) -> Fault {
    Fault::new(FaultKind::Template, format!("{field}: {error}"))
}

impl<'a> View<'a> {
    fn scope<'s>(&'s self, result: Option<(&'static str, &'s Value)>) -> Scope<'s>
    where
        'a: 's,
    {
        Scope { result, own: &self.own, state: self.state, given: self.given }
    }
}
