//! A run of a graph: [`Run::step`] takes an event and returns effects.
//!
//! The frontier is the set of nodes of the next super-step. All its nodes run at the same time on the same state; at the end their writes
//! are merged in the order of their ids, and the union of their targets is the next frontier. The result does not depend on the order in
//! which they end. A driver does the work of nodes and reports the results. If it records them under the ids of the work, it can repeat
//! the run from the records, because the same graph and results give the same effects.

mod branch;
mod fault;
mod map;
mod merge;
#[cfg(test)]
mod tests;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::branch::{Begun, Done, View, begin, finish};
pub use self::fault::{Fault, FaultKind, RunError};
use self::map::Items;
pub use self::work::{BranchEnd, Change, Effect, Note, Question, StepRecord, Task, Work, WorkId};
use crate::graph::{Graph, INITIAL_PROMPT, Kind, Node};

/// Most visits of one node, whatever the graph sets.
const VISITS_MAX: u64 = 1_000_000;

/// What a run begins with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Begin {
    /// The user's prompt.
    pub prompt: String,
    /// Names that templates can read and that are not state: `vars` and the special variables.
    pub given: Map<String, Value>,
    /// How often a question is asked again after an answer that its rule refuses.
    pub asks_again: u32,
    /// Values that a person sets in the state before a super-step of this number. Reducers do not apply to them.
    pub set: BTreeMap<u64, Map<String, Value>>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Begins the run, or continues it after a checkpoint.
    Begin,
    /// The result of a piece of work.
    Finished { work: WorkId, result: Result<Value, Fault> },
    /// The run is to end. Scripts that run are waited for; what they write is lost.
    Abort,
    /// The time limit of the run is over. Nothing is waited for.
    TimedOut,
}

/// All that a run needs to continue after a super-step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The number of the next super-step.
    pub step: u64,
    pub frontier: BTreeSet<String>,
    pub visits: BTreeMap<String, u64>,
    pub state: Map<String, Value>,
}

/// A run.
#[derive(Debug)]
pub struct Run {
    graph: Arc<Graph>,
    begin: Begin,
    next: Checkpoint,
    open: Option<Open>,
    aborted: bool,
    ended: bool,
}

/// A super-step under way.
#[derive(Debug)]
struct Open {
    number: u64,
    /// The visits of all nodes, with those of this super-step.
    visits: BTreeMap<String, u64>,
    branches: BTreeMap<String, Branch>,
    /// The nodes that have not begun.
    waiting: VecDeque<String>,
    running: usize,
}

/// A node of a super-step.
#[derive(Debug)]
enum Branch {
    Waiting,
    /// One piece of work is under way.
    Single(WorkId),
    Items(Items),
    Over(Result<Box<Done>, Fault>),
}

impl Run {
    pub fn new(graph: Arc<Graph>, begin: Begin) -> Self {
        let mut state = graph.initial_state.clone();
        state.insert(INITIAL_PROMPT.to_owned(), Value::from(begin.prompt.as_str()));
        let frontier = BTreeSet::from([graph.start.clone()]);
        Self::continued(graph, begin, Checkpoint { step: 0, frontier, visits: BTreeMap::new(), state })
    }

    /// A run that continues after a super-step. Its graph can be another one, if it has the nodes of the frontier.
    pub fn continued(graph: Arc<Graph>, begin: Begin, checkpoint: Checkpoint) -> Self {
        Self { graph, begin, next: checkpoint, open: None, aborted: false, ended: false }
    }

    /// The state after the last super-step that was merged, and what follows.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.next
    }

    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Takes an event, and returns what is to be done. After the run has ended there is nothing more.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.ended {
            return effects;
        }
        match event {
            Event::Begin => self.go_on(&mut effects),
            Event::Finished { work, result } => {
                self.finished(&work, result, &mut effects);
                self.go_on_open(&mut effects);
            }
            Event::Abort => {
                self.aborted = true;
                self.cancel(|kind| !matches!(kind, Some(Kind::Script(_))), &mut effects);
                self.go_on_open(&mut effects);
            }
            Event::TimedOut => {
                self.cancel(|_| true, &mut effects);
                self.open = None;
                let seconds = self.graph.settings.timeout.unwrap_or_default();
                let text = format!("timed out after {seconds} s, at {}", self.frontier_text());
                self.fail(FaultKind::TimedOut, text, &mut effects);
            }
        }
        effects
    }

    /// Begins the super-step of the frontier.
    fn begin_step(&mut self, effects: &mut Vec<Effect>) {
        let frontier: Vec<String> = self.next.frontier.iter().cloned().collect();
        if frontier.is_empty() {
            return self.fail(FaultKind::EmptyFrontier, "emptied without reaching an end node".to_owned(), effects);
        }
        if self.aborted {
            let text = format!("aborted at {}", self.frontier_text());
            return self.fail(FaultKind::Aborted, text, effects);
        }
        let limit = self.graph.settings.max_loop_iterations.min(VISITS_MAX);
        let mut visits = self.next.visits.clone();
        for id in &frontier {
            let visits = visits.entry(id.clone()).or_default();
            *visits += 1;
            if *visits > limit {
                let text =
                    format!("node \"{id}\" was entered {visits} times, more than {limit}: a loop that does not end?");
                return self.fail(FaultKind::VisitCap, text, effects);
            }
        }
        if let Some(id) = frontier.iter().find(|id| self.graph.node(id).is_none()) {
            let text = format!("node \"{id}\" does not exist");
            return self.fail(FaultKind::UnknownNode, text, effects);
        }
        if let Some(values) = self.begin.set.get(&self.next.step) {
            self.next.state.extend(values.clone());
        }
        let branches = frontier.iter().map(|id| (id.clone(), Branch::Waiting)).collect();
        self.open = Some(Open { number: self.next.step, visits, branches, waiting: frontier.into(), running: 0 });
    }

    /// Goes on if a super-step is under way.
    fn go_on_open(&mut self, effects: &mut Vec<Effect>) {
        if self.open.is_some() {
            self.go_on(effects);
        }
    }

    /// Begins nodes as long as there is room, and the next super-step when all are over.
    fn go_on(&mut self, effects: &mut Vec<Effect>) {
        let limit = self.graph.settings.max_concurrency.max(1);
        while !self.ended {
            let Some(open) = &mut self.open else {
                self.begin_step(effects);
                continue;
            };
            let failed = open.branches.values().any(|branch| matches!(branch, Branch::Over(Err(_))));
            if failed && self.graph.settings.fail_fast || self.aborted {
                open.waiting.clear();
            }
            if open.running < limit
                && let Some(id) = open.waiting.pop_front()
            {
                open.running += 1;
                self.begin_node(&id, effects);
                continue;
            }
            if failed && self.graph.settings.fail_fast && open.running > 0 {
                self.cancel(|_| true, effects);
                continue;
            }
            if open.running > 0 || !open.waiting.is_empty() {
                return;
            }
            self.end_step(effects);
        }
    }

    fn begin_node(&mut self, id: &str, effects: &mut Vec<Effect>) {
        let graph = Arc::clone(&self.graph);
        let Some(node) = graph.node(id) else { return };
        let work = WorkId { step: self.next.step, node: id.to_owned(), item: None, asked: 0 };
        match begin(&graph, node, &self.view()) {
            Ok(Begun::Task(task)) => self.start(work, node, task, effects),
            Ok(Begun::Items(items)) => {
                let Kind::Map(map) = &node.kind else { return };
                let limit = map.max_concurrency.unwrap_or(graph.settings.max_concurrency).max(1);
                self.put(id, Branch::Items(Items::new(items, limit)));
                self.go_on_items(id, effects);
            }
            Ok(Begun::Nothing) => {
                let done = finish(node, self.view(), Ok(Value::Null), false);
                self.over(id, done, effects);
            }
            Err(fault) => {
                // A model node can fall back from a prompt that cannot be rendered; a map and a question cannot.
                let done = finish(node, self.view(), Err(fault), false);
                self.over(id, done, effects);
            }
        }
    }

    fn start(&mut self, id: WorkId, node: &Node, task: Task, effects: &mut Vec<Effect>) {
        let visits = self.open.as_ref().and_then(|open| open.visits.get(&id.node));
        let visit = visits.copied().unwrap_or_default();
        if id.item.is_none() {
            self.put(&id.node, Branch::Single(id.clone()));
        }
        effects.push(Effect::Run(Box::new(Work { id, node: node.id.clone(), visit, task })));
    }

    fn finished(&mut self, work: &WorkId, result: Result<Value, Fault>, effects: &mut Vec<Effect>) {
        let graph = Arc::clone(&self.graph);
        let Some(branch) = self.open.as_mut().and_then(|open| open.branches.get_mut(&work.node)) else { return };
        match branch {
            Branch::Single(expected) if expected == work => {
                let Some(node) = graph.node(&work.node) else { return };
                let answer = self.answer(work, node, result, effects);
                let Some(result) = answer else { return };
                let done = finish(node, self.view(), result, false);
                self.over(&work.node, done, effects);
            }
            Branch::Items(_) => {
                self.finished_item(work, result, effects);
                self.go_on_items(&work.node, effects);
            }
            Branch::Single(_) | Branch::Waiting | Branch::Over(_) => {}
        }
    }

    /// Checks the answer to an input node. None if the question is asked again.
    fn answer(
        &mut self,
        work: &WorkId,
        node: &Node,
        result: Result<Value, Fault>,
        effects: &mut Vec<Effect>,
    ) -> Option<Result<Value, Fault>> {
        let (Kind::Input(_), Ok(answer)) = (&node.kind, &result) else { return Some(result) };
        // The question was rendered from the same state before.
        let Ok(Begun::Task(Task::Ask(question))) = begin(&self.graph, node, &self.view()) else { return Some(result) };
        let mut text = answer.as_str().unwrap_or_default();
        if text.is_empty() {
            text = question.default.as_deref().unwrap_or_default();
        }
        if question.rule.is_none_or(|rule| rule.holds(text)) {
            return Some(Ok(Value::from(text)));
        }
        if work.asked < self.begin.asks_again {
            effects.push(Effect::Note(Note::AskedAgain { node: node.id.clone() }));
            let again = WorkId { asked: work.asked + 1, ..work.clone() };
            self.start(again, node, Task::Ask(question), effects);
            return None;
        }
        let rule = match &node.kind {
            Kind::Input(input) => input.validation.as_deref().unwrap_or_default(),
            _ => "",
        };
        let text = format!("the answer has {} characters, and must satisfy {rule}", text.chars().count());
        Some(Err(Fault::new(FaultKind::InputValidation, text)))
    }

    /// Ends a node.
    fn over(&mut self, id: &str, done: Result<Done, Fault>, effects: &mut Vec<Effect>) {
        if let Ok(done) = &done {
            let fell_back = done.fell_back.clone();
            let note = fell_back.map(|fault| Note::FellBack { node: id.to_owned(), item: None, fault });
            effects.extend(note.into_iter().chain(done.note.clone()).map(Effect::Note));
        }
        self.put(id, Branch::Over(done.map(Box::new)));
        if let Some(open) = &mut self.open {
            open.running = open.running.saturating_sub(1);
        }
    }

    fn put(&mut self, id: &str, branch: Branch) {
        if let Some(open) = &mut self.open {
            open.branches.insert(id.to_owned(), branch);
        }
    }

    /// Ends the super-step: merges, and ends the run if it failed or reached an end.
    fn end_step(&mut self, effects: &mut Vec<Effect>) {
        let Some(open) = self.open.take() else { return };
        let mut record = StepRecord { number: open.number, branches: Vec::new(), changed: None };
        let (mut faults, mut ends, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (id, branch) in open.branches {
            let (end, fault) = match branch {
                Branch::Over(Ok(done)) if done.output.is_some() => {
                    ends.push((id.clone(), *done));
                    (BranchEnd::End, None)
                }
                Branch::Over(Ok(done)) => {
                    let end = BranchEnd::To(done.to.clone());
                    others.push(*done);
                    (end, None)
                }
                Branch::Over(Err(fault)) => (BranchEnd::Failed(fault.clone()), Some(fault)),
                // Only a run that is aborted leaves nodes that have not begun or have not ended.
                Branch::Waiting | Branch::Single(_) | Branch::Items(_) => continue,
            };
            faults.extend(fault.map(|fault| (id.clone(), fault)));
            record.branches.push((id, end));
        }
        if let Some(kind) = faults.first().map(|(_, fault)| fault.kind) {
            effects.push(Effect::Stepped(record));
            return self.end(
                Err(RunError { kind, graph: self.graph.name.clone(), nodes: faults, text: String::new() }),
                effects,
            );
        }
        if self.aborted {
            let text = format!("aborted at {}", self.frontier_text());
            effects.push(Effect::Stepped(record));
            return self.fail(FaultKind::Aborted, text, effects);
        }
        if ends.len() > 1 {
            let ids: Vec<&str> = ends.iter().map(|(id, _)| id.as_str()).collect();
            let text =
                format!("several end nodes in one super-step: {}; let them meet in a node before", ids.join(", "));
            effects.push(Effect::Stepped(record));
            return self.fail(FaultKind::SeveralEnds, text, effects);
        }
        let end = ends.pop().map(|(_, done)| done);
        match self.merge(&others, end.as_ref()) {
            Ok(keys) => {
                let change = |key: String| {
                    let value = self.next.state.get(&key);
                    Change::new(key.clone(), value)
                };
                record.changed = Some(keys.into_iter().map(change).collect());
            }
            Err((kind, text)) => {
                effects.push(Effect::Stepped(record));
                return self.fail(kind, text, effects);
            }
        }
        self.next.step += 1;
        self.next.visits = open.visits;
        self.next.frontier = others.into_iter().flat_map(|done| done.to).collect();
        effects.push(Effect::Stepped(record));
        if let Some(output) = end.and_then(|done| done.output) {
            self.end(Ok(output), effects);
        }
    }

    /// Merges the writes of the nodes, and after them those of the end node.
    fn merge(&mut self, others: &[Done], end: Option<&Done>) -> Result<Vec<String>, (FaultKind, String)> {
        let before = &self.next.state;
        let mut state = before.clone();
        let reducers = &self.graph.reducers;
        let writes: Vec<_> = others.iter().map(|done| &done.writes).collect();
        let mut changed = merge::merge(&mut state, before, &writes, reducers)?;
        if let Some(end) = end {
            changed.extend(merge::merge(&mut state, before, &[&end.writes], reducers)?);
        }
        self.next.state = state;
        Ok(changed)
    }

    /// Cancels the work of nodes whose kind is `chosen`; none for the kind if the node is unknown.
    fn cancel(&mut self, chosen: impl Fn(Option<&Kind>) -> bool, effects: &mut Vec<Effect>) {
        let graph = Arc::clone(&self.graph);
        let Some(open) = &mut self.open else { return };
        for (id, branch) in &mut open.branches {
            let node = graph.node(id);
            let worker = node.and_then(Node::branch).and_then(|branch| graph.node(branch)).or(node);
            if !chosen(worker.map(|node| &node.kind)) {
                if let Branch::Items(items) = branch {
                    items.stop();
                }
                continue;
            }
            match branch {
                Branch::Single(work) => effects.push(Effect::Cancel(work.clone())),
                Branch::Items(items) => {
                    let step = open.number;
                    let work = |item| WorkId { step, node: id.clone(), item: Some(item), asked: 0 };
                    effects.extend(items.running().map(|item| Effect::Cancel(work(item))));
                }
                Branch::Waiting | Branch::Over(_) => continue,
            }
            *branch = Branch::Waiting;
            open.running = open.running.saturating_sub(1);
        }
        open.waiting.clear();
    }

    fn view(&self) -> View<'_> {
        View { state: &self.next.state, own: Map::new(), given: &self.begin.given }
    }

    fn frontier_text(&self) -> String {
        let ids: Vec<String> = self.next.frontier.iter().map(|id| format!("\"{id}\"")).collect();
        ids.join(", ")
    }

    fn fail(&mut self, kind: FaultKind, text: String, effects: &mut Vec<Effect>) {
        let graph = self.graph.name.clone();
        self.end(Err(RunError { kind, graph, nodes: Vec::new(), text }), effects);
    }

    fn end(&mut self, result: Result<String, RunError>, effects: &mut Vec<Effect>) {
        self.ended = true;
        effects.push(Effect::Ended(result));
    }
}
