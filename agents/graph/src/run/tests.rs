//! Tests of the engine: a graph, what its nodes answer, and how the run goes.

mod interpreter;
mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Begin, BranchEnd, Effect, Event, Fault, FaultKind, Note, Run, Task, Work};
use crate::load::{Source, load};
use crate::{Graph, Lines};

fn graph(document: &Value) -> Arc<Graph> {
    let nearest = |_: &str, _: &[&str]| None;
    Arc::new(load(Source { value: document, lines: &Lines::new(), nearest }).expect("a graph").graph)
}

/// A graph `g` that begins at `a`.
#[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
fn nodes(nodes: Value, state: Value) -> Value {
    json!({"name": "g", "start": "a", "initial_state": state, "nodes": nodes})
}

fn script(next: &str) -> Value {
    json!({"type": "script", "script": "s.sh", "next": next})
}

fn fan(next: &[&str]) -> Value {
    json!({"type": "script", "script": "s.sh", "next": next})
}

fn end(output: &str) -> Value {
    json!({"type": "end", "output": output})
}

/// What happened in a run.
#[derive(Debug, Clone, PartialEq, Default)]
struct Played {
    /// A line a super-step: `a>b,c d:fault e.`
    steps: Vec<String>,
    output: Option<String>,
    error: Option<(FaultKind, String)>,
    state: Map<String, Value>,
    notes: Vec<Note>,
    /// The most pieces of work at the same time.
    parallel: usize,
}

/// Plays a run. `answer` does the work; `pick` chooses which piece of the work under way ends next.
fn play(mut run: Run, answer: &dyn Fn(&Work) -> Result<Value, Fault>, pick: &mut dyn FnMut(usize) -> usize) -> Played {
    let mut played = Played::default();
    let mut open: Vec<Box<Work>> = Vec::new();
    let mut effects = run.step(Event::Begin);
    loop {
        for effect in effects {
            match effect {
                Effect::Run(work) => open.push(work),
                Effect::Cancel(id) => open.retain(|work| work.id != id),
                Effect::Note(note) => played.notes.push(note),
                Effect::Stepped(record) => played.steps.push(line(&record.branches)),
                Effect::Ended(Ok(output)) => played.output = Some(output),
                Effect::Ended(Err(error)) => played.error = Some((error.kind, error.to_string())),
            }
        }
        played.parallel = played.parallel.max(open.len());
        if open.is_empty() {
            played.state = run.checkpoint().state.clone();
            assert!(played.output.is_some() != played.error.is_some(), "{played:?}");
            return played;
        }
        let work = open.remove(pick(open.len()) % open.len());
        effects = run.step(Event::Finished { result: answer(&work), work: work.id });
    }
}

fn line(branches: &[(String, BranchEnd)]) -> String {
    let shown = branches.iter().map(|(id, end)| match end {
        BranchEnd::To(to) => format!("{id}>{}", to.join(",")),
        BranchEnd::End => format!("{id}."),
        BranchEnd::Failed(fault) => format!("{id}:{}", fault.kind.code()),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Plays a graph in which the work of each node, or of each item as `NODE.PLACE`, has a fixed result. A text that begins with `!` is a
/// failure. Work without a result prints `{}`.
#[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
fn fixed(document: Value, results: Value) -> Played {
    let begin = Begin { prompt: "go".to_owned(), asks_again: 1, ..Begin::default() };
    let answer = |work: &Work| {
        let item = work.id.item.map(|item| format!(".{item}")).unwrap_or_default();
        let asked = if work.id.asked > 0 { format!("#{}", work.id.asked) } else { String::new() };
        let result = results.get(format!("{}{item}{asked}", work.id.node));
        let result = result.or_else(|| results.get(&work.node)).cloned();
        match result {
            Some(Value::String(text)) if text.starts_with('!') => Err(Fault::new(kind_of(&work.task), &text[1..])),
            Some(value) => Ok(value),
            None => Ok(json!({})),
        }
    };
    play(Run::new(graph(&document), begin), &answer, &mut |_| 0)
}

fn kind_of(task: &Task) -> FaultKind {
    match task {
        Task::Llm { .. } => FaultKind::Llm,
        Task::Script { .. } => FaultKind::ScriptExit,
        Task::Agent { .. } => FaultKind::Agent,
        Task::Rag { .. } => FaultKind::Rag,
        Task::Ask(_) => FaultKind::NoAnswer,
    }
}

#[track_caller]
fn check(document: Value, results: Value, steps: &[&str], end: &str) {
    let played = fixed(document, results);
    let shown = match (&played.output, &played.error) {
        (Some(output), _) => output.clone(),
        (None, Some((kind, _))) => format!("! {}", kind.code()),
        (None, None) => String::new(),
    };
    assert_eq!(
        (&played.steps[..], shown.as_str()),
        (&steps.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>()[..], end)
    );
}

/// Counts by name.
type Counts = BTreeMap<String, u64>;
