//! An agent and its helpers on a clock that jumps.

use std::collections::BTreeMap;

use atlas_contract::yaml;
use atlas_loki_agent::Config;
use atlas_supervisor::{AgentId, Agents, Answer, Call, Effect, HelperOutcome, Settings, Summary, Tree, WaitCause};
use serde_json::Value;

use super::child::{Child, Step};
use crate::result::Stop;
use crate::row::{Row, items, members, text};

/// How long a scripted model takes, in milliseconds.
const LATENCY_MS: u64 = 20;
/// Most events of one row.
const EVENTS_MAX: usize = 10_000;

/// The configurations of a row.
struct Configs(BTreeMap<String, Config>);

impl Agents for Configs {
    fn settings(&self, name: &str) -> Result<Settings, String> {
        self.0.get(name).map(|config| config.helpers.clone()).ok_or_else(|| format!("there is no agent \"{name}\""))
    }
}

pub(super) struct Team {
    configs: Configs,
    tree: Tree,
    children: BTreeMap<AgentId, Child>,
    now_ms: u64,
    replies: std::vec::IntoIter<Value>,
}

impl Team {
    pub(super) fn new(row: &Row) -> Result<Self, Stop> {
        let mut configs = BTreeMap::new();
        for (path, source) in members(&row.input["agents"]) {
            let Some(name) = path.strip_suffix("/config.yaml") else {
                return Err(Stop::skip(format!("supervisor rows with the file \"{path}\"")));
            };
            let source = source.as_str().unwrap_or_default().as_bytes();
            let document =
                yaml::load(source, yaml::Budget::default()).map_err(|error| Stop::fail(error.to_string()))?;
            let config = Config::read(&document).map_err(|error| Stop::fail(error.to_string()))?;
            configs.insert(name.to_owned(), config);
        }
        let name = row.text("agent");
        let configs = Configs(configs);
        let settings = configs.settings(name).map_err(Stop::fail)?;
        let replies: Vec<Value> = items(&row.input, "replies").cloned().collect();
        let (tree, replies) = (Tree::new(1, name, settings), replies.into_iter());
        Ok(Self { configs, tree, children: BTreeMap::new(), now_ms: 1_700_000_000_000, replies })
    }

    pub(super) fn notification(&self) -> Option<(&'static str, Value)> {
        self.tree.notification()
    }

    /// Runs a tool of the first agent, until it has a result.
    pub(super) fn call(&mut self, name: &str, arguments: &Value) -> Result<Value, Stop> {
        let caller = self.tree.root().clone();
        let call = Call { caller: &caller, name, arguments, now_ms: self.now_ms };
        let answer = self.tree.call(call, &self.configs);
        let mut answer = answer.ok_or_else(|| Stop::skip(format!("the tool \"{name}\" in a supervisor row")))?;
        for _ in 0..EVENTS_MAX {
            self.perform()?;
            match answer {
                Answer::Now(value) => return Ok(value),
                Answer::Summarize(summary) => return Ok(self.summarize(summary)),
                Answer::Ask(_) => return Err(Stop::skip("a question to the user in a supervisor row")),
                Answer::Wait(waiting) => {
                    let Some(next) = self.next_ms() else {
                        return Err(Stop::fail(format!("\"{name}\" waits forever")));
                    };
                    self.now_ms = self.now_ms.max(next);
                    self.run()?;
                    answer = self.tree.resume(&caller, waiting, self.now_ms, &self.configs);
                }
            }
        }
        Err(Stop::fail(format!("\"{name}\" waits for too many events")))
    }

    pub(super) fn sleep(&mut self, ms: u64) -> Result<(), Stop> {
        let until = self.now_ms.saturating_add(ms);
        for _ in 0..EVENTS_MAX {
            match self.next_ms().filter(|next| *next <= until) {
                Some(next) => self.now_ms = self.now_ms.max(next),
                None => break,
            }
            self.run()?;
        }
        self.now_ms = until;
        Ok(())
    }

    /// A summary that fails leaves the whole output.
    fn summarize(&mut self, summary: Summary) -> Value {
        let reply = self.replies.next().filter(|reply| reply.get("error").is_none());
        summary.result(reply.map(|reply| reply.as_str().unwrap_or(text(&reply, "text")).to_owned()))
    }

    /// When something happens next.
    fn next_ms(&self) -> Option<u64> {
        self.children.values().map(|child| child.next_ms()).min()
    }

    /// Lets the helpers go on whose time has come, in the order of these times.
    fn run(&mut self) -> Result<(), Stop> {
        for _ in 0..EVENTS_MAX {
            let due = self.children.iter().filter(|(_, child)| child.next_ms() <= self.now_ms);
            let Some(id) = due.min_by_key(|(_, child)| child.next_ms()).map(|(id, _)| id.clone()) else {
                return Ok(());
            };
            let Some(mut child) = self.children.remove(&id) else { return Ok(()) };
            let waited = child.take_waiting();
            let at_ms = child.next_ms();
            let mut step = match waited {
                Some(waiting) => {
                    self.settle(&id, &mut child, |tree, configs| tree.resume(&id, waiting, at_ms, configs))?
                }
                None => child.answered(),
            };
            let outcome = loop {
                step = match step {
                    Step::Ask => {
                        child.ask(self.replies.next().as_ref(), at_ms.saturating_add(LATENCY_MS));
                        break None;
                    }
                    Step::Wait => break None,
                    Step::Ended(outcome) => break Some(outcome),
                    Step::Call(name, arguments) => {
                        let call = Call { caller: &id, name: &name, arguments: &arguments, now_ms: at_ms };
                        self.settle(&id, &mut child, |tree, configs| {
                            tree.call(call, configs)
                                .unwrap_or(Answer::Now(serde_json::json!({"tool_call_error": "unknown"})))
                        })?
                    }
                };
            };
            match outcome {
                Some(outcome) => self.tree.finished(&id, outcome),
                None => drop(self.children.insert(id, child)),
            }
            self.perform()?;
            self.wake();
        }
        Err(Stop::fail("the helpers do not come to an end"))
    }

    /// Gives a helper the answer to its call, or lets it wait.
    fn settle(
        &mut self,
        id: &AgentId,
        child: &mut Child,
        ask: impl FnOnce(&mut Tree, &Configs) -> Answer,
    ) -> Result<Step, Stop> {
        match ask(&mut self.tree, &self.configs) {
            Answer::Now(value) => Ok(child.returned(value)),
            Answer::Summarize(summary) => {
                let value = self.summarize(summary);
                Ok(child.returned(value))
            }
            Answer::Wait(waiting) => {
                let until = if let WaitCause::Reply(question) = &waiting { question.until_ms } else { u64::MAX };
                child.wait(waiting, until);
                Ok(Step::Wait)
            }
            Answer::Ask(_) => Err(Stop::fail(format!("the helper \"{id}\" asks a person"))),
        }
    }

    /// What a helper waits for may have happened.
    fn wake(&mut self) {
        self.children.values_mut().for_each(|child| child.wake(&self.tree, self.now_ms));
    }

    fn perform(&mut self) -> Result<(), Stop> {
        for effect in self.tree.take_effects() {
            match effect {
                Effect::Cancel(id) => drop(self.children.remove(&id)),
                Effect::Spawn { id, agent, prompt, .. } => {
                    let Some(config) = self.configs.0.get(&agent) else {
                        return Err(Stop::fail(format!("the agent \"{agent}\" was started and does not exist")));
                    };
                    let mut child = Child::new(config);
                    match child.start(prompt) {
                        Step::Ask => child.ask(self.replies.next().as_ref(), self.now_ms.saturating_add(LATENCY_MS)),
                        _ => self.tree.finished(&id, HelperOutcome::Failed("it did not start".to_owned())),
                    }
                    self.children.insert(id, child);
                }
            }
        }
        self.wake();
        Ok(())
    }
}
