//! One round of tools: which calls of an answer are made, and the result of each.

use atlas_model::{Answer, Part, ToolCall, ToolResult};
use serde_json::{Map, Value, json};

use crate::checks::told;
use crate::guard::Observed;
use crate::pages::{self, Pages};
use crate::permits::denied;
use crate::same_calls::SameCalls;
use crate::{Checks, Outcome, Planner, Settings, ToolAction, ToolReturn};

/// Characters of unreadable arguments that are repeated to the model.
const QUOTED_MAX: usize = 200;

/// The calls of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    calls: Vec<Planned>,
}

#[derive(Debug, Clone)]
struct Planned {
    /// As it is repeated to the model.
    call: ToolCall,
    /// The tool's own name.
    name: String,
    /// The outcome of a call that is not made: why it is refused, or what the loop itself answers.
    known: Option<Outcome>,
}

/// The results of a round.
pub(crate) struct Results {
    /// In the order of the calls.
    pub(crate) results: Vec<ToolResult>,
    /// For the loop guard.
    pub(crate) observed: Vec<Observed>,
}

impl Round {
    /// Decides about the calls of an answer.
    pub(crate) fn plan(
        answer: &Answer,
        settings: &Settings,
        checks: &dyn Checks,
        same: &SameCalls,
        plan: &mut Option<Planner>,
        pages: &Pages,
    ) -> Self {
        let count = answer.tool_calls().count();
        let most = settings.limits.calls;
        let mut calls: Vec<Planned> = Vec::with_capacity(count);
        for call in answer.tool_calls() {
            let id = unused(&call.id, &calls);
            let (arguments, unreadable) = readable(&call.arguments, settings.judged);
            let offered = settings.tools.iter().position(|offered| offered.tool.name == call.name);
            let name = offered.map_or(&call.name, |tool| &settings.tools[tool].name).clone();
            let call = ToolCall { id, arguments, ..call.clone() };
            let known = if count > most {
                let text = format!("{count} calls in one answer, at most {most} are allowed; none was made");
                Some(Outcome::error("TooManyCalls", text))
            } else if let Some(alert) = same.alert(&call) {
                Some(Outcome::Value(alert))
            } else if offered.is_some() && settings.action(&name) == ToolAction::Deny {
                Some(denied(&name))
            } else if let Some(tool) = offered {
                unreadable.or_else(|| invalid(&checks.arguments(tool, &call.arguments))).or_else(|| own(plan, &call))
            } else if call.name == pages::READ && pages.are_offered(settings) {
                Some(unreadable.unwrap_or_else(|| pages.read(&call.arguments, settings)))
            } else {
                Some(unknown(&call.name, settings))
            };
            calls.push(Planned { call, name, known });
        }
        Self { calls }
    }

    /// The parts of the answer as the next request repeats them: with ids that are unique and arguments that are objects.
    pub(crate) fn parts(&self, answer: Answer) -> Vec<Part> {
        let mut calls = self.calls.iter();
        let repeated = |part| match part {
            Part::ToolCall(call) => Part::ToolCall(calls.next().map_or(call, |planned| planned.call.clone())),
            part => part,
        };
        answer.parts.into_iter().map(repeated).collect()
    }

    /// The calls to make.
    pub(crate) fn allowed(&self) -> Vec<ToolCall> {
        let allowed = self.calls.iter().filter(|planned| planned.known.is_none());
        allowed.map(|planned| ToolCall { name: planned.name.clone(), ..planned.call.clone() }).collect()
    }

    /// All calls as the model made them, for the guard of equal calls.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (String, Value)> {
        self.calls.iter().map(|planned| (planned.call.name.clone(), planned.call.arguments.clone()))
    }

    /// The names of all its tools, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|planned| planned.name.as_str())
    }

    /// The result of each call.
    pub(crate) fn results(self, returned: Vec<ToolReturn>, settings: &Settings, pages: &mut Pages) -> Results {
        let mut returned: Vec<Option<ToolReturn>> = returned.into_iter().map(Some).collect();
        let mut results = Results { results: Vec::new(), observed: Vec::new() };
        for Planned { call, name, known } in self.calls {
            let own = |one: &&mut Option<ToolReturn>| one.as_ref().is_some_and(|one| one.call == call.id);
            let outcome = known
                .or_else(|| returned.iter_mut().find(own).and_then(Option::take).map(|one| one.outcome))
                .unwrap_or_else(|| Outcome::error("NoResult", "the tool returned nothing"));
            let failed = matches!(outcome, Outcome::Error { .. });
            let content = content(settings, outcome);
            // The whole result: two that differ after the cut are no repeat.
            results.observed.push(Observed::new(name, &call.arguments, &content, failed));
            let content = pages.bounded(content, settings);
            let error = failed && settings.mark_errors;
            results.results.push(ToolResult { call: call.id, name: call.name, content, error });
        }
        results
    }
}

/// An id that no earlier call of the answer has.
fn unused(id: &str, calls: &[Planned]) -> String {
    let is_used = |id: &str| calls.iter().any(|planned| planned.call.id == id);
    if !is_used(id) {
        return id.to_owned();
    }
    // There are fewer calls than candidates.
    (2..).map(|number| format!("{id}-{number}")).find(|id| !is_used(id)).unwrap_or_default()
}

/// The object in arguments that are a text: some models write them so, and some servers encode them a second time.
fn unpacked(arguments: &Value) -> Option<Value> {
    let text = arguments.as_str()?.trim();
    if text.is_empty() {
        return Some(Value::Object(Map::new()));
    }
    match serde_json::from_str(text).ok()? {
        Value::Null => Some(Value::Object(Map::new())),
        Value::String(inner) if inner.trim().is_empty() => Some(Value::Object(Map::new())),
        Value::String(inner) => serde_json::from_str(inner.trim()).ok().filter(Value::is_object),
        value => Some(value).filter(Value::is_object),
    }
}

/// Arguments as an object, and the refusal of those that are none.
fn readable(arguments: &Value, judged: bool) -> (Value, Option<Outcome>) {
    if judged && let Some(arguments) = unpacked(arguments) {
        return (arguments, None);
    }
    let text = match arguments {
        Value::Object(_) => return (arguments.clone(), None),
        Value::Null => return (Value::Object(Map::new()), None),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let why = match serde_json::from_str::<Value>(&text) {
        Err(error) if arguments.is_string() => format!("are not JSON ({error})"),
        _ => "are not a JSON object".to_owned(),
    };
    let shown: String = text.chars().take(QUOTED_MAX).collect();
    let refused = Outcome::error("JSONDecodeError", format!("the arguments {why}; they begin with: {shown}"));
    (Value::Object(Map::new()), Some(refused))
}

fn invalid(problems: &[crate::Problem]) -> Option<Outcome> {
    let some = !problems.is_empty();
    some.then(|| {
        Outcome::error("ValidationError", format!("the arguments do not match the tool's schema: {}", told(problems)))
    })
}

/// The outcome of a tool of the loop itself.
fn own(plan: &mut Option<Planner>, call: &ToolCall) -> Option<Outcome> {
    let answer = plan.as_mut()?.call(&call.name, &call.arguments)?;
    Some(answer.map_or_else(|error| Outcome::error("TodoError", error.to_string()), Outcome::Value))
}

fn unknown(name: &str, settings: &Settings) -> Outcome {
    if !settings.mark_errors {
        // The text of Atlas for Python.
        let text = format!("Skill '{name}' not available — declare it in requires.skills");
        return Outcome::error("SkillInvocationError", text);
    }
    let known: Vec<&str> = settings.tools.iter().map(|offered| offered.tool.name.as_str()).collect();
    Outcome::error("UnknownTool", format!("there is no tool \"{name}\"; the tools are: {}", known.join(", ")))
}

fn content(settings: &Settings, outcome: Outcome) -> String {
    match outcome {
        Outcome::Value(value) => settings.told(&value),
        Outcome::Error { kind, text } => settings.told(&json!({"error": format!("{kind}: {text}")})),
    }
}
