//! The helpers of an agent, as its attempts know them. Each is a job that the agent's job spawned. What the tools answer is decided by
//! [`atlas_supervisor::Tree`]; a record of each call lets a later attempt decide the same and find the same jobs.

mod calls;
mod news;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use atlas_model::ToolCall as Asked;
use atlas_supervisor::{AgentId, Agents, Answer, Call, Effect, HelperOutcome, Settings, Stop, Tree, WaitCause};
use atlas_types::{JobId, SpawnStep, StepKey, Wait};
use futures::future::{FutureExt as _, Shared};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

pub(in crate::provider) use self::calls::{TeamCalls, word};
pub(in crate::provider) use self::news::News;
use self::news::{Ended, Question};
use crate::journal::{Begun, ChildCall, hashed};
use crate::mailbox::Answer as Told;

/// The variable with the folder of a project, which helpers share with their agent.
pub(in crate::provider) const PROJECT: &str = "project_dir";

/// The helpers of a job.
pub(in crate::provider) struct Team {
    tree: Tree,
    root: AgentId,
    job: JobId,
    /// Those that have not ended, as far as is known.
    helpers: BTreeMap<AgentId, Helper>,
    /// The member of an agent's input that takes the prompt.
    members: BTreeMap<String, String>,
    /// The folder of the project on which the agent works, if it is not in the folder of its attempt.
    project: Option<String>,
    /// The agents that can work on a project.
    for_projects: BTreeSet<String>,
    /// Jobs to cancel.
    cancelled: Vec<JobId>,
    /// The digits in the ids of the helpers that the last call started.
    started: Vec<String>,
}

struct Helper {
    step: SpawnStep,
    call: ChildCall,
    /// What to wait for, once this attempt has asked for its end.
    begun: Option<(Wait, HelperEnd)>,
}

/// Where the end of a helper arrives. Several can wait for it.
pub(in crate::provider) type HelperEnd = Shared<oneshot::Receiver<Told>>;

/// Which tool call starts helpers. The jobs of its helpers are found by it.
#[derive(Debug, Clone, Copy)]
pub(in crate::provider) enum CallPlace {
    /// The step of a journal that is the same in each attempt.
    Step(u64),
    /// A call with a key of its own, in a journal whose steps are made in any order.
    Key(StepKey),
}

impl CallPlace {
    /// The step of a helper. `made` counts the helpers of the team, and `here` those of the call.
    fn step(self, made: u64, here: usize) -> SpawnStep {
        match self {
            Self::Step(number) => SpawnStep { number, key: hashed(&("helper", made)) },
            Self::Key(key) => SpawnStep { number: 0, key: hashed(&("helper", key.0, here)) },
        }
    }
}

/// What the tree asks about other agents.
struct Known<'a> {
    found: Option<&'a (String, Result<String, String>)>,
    job: JobId,
    place: CallPlace,
    /// The digits that a record has for the helpers of the call.
    recorded: &'a [String],
    /// The steps of the helpers that the call starts, by the digits in their ids.
    steps: RefCell<Vec<(String, SpawnStep)>>,
}

impl Agents for Known<'_> {
    fn settings(&self, name: &str) -> Result<Settings, String> {
        match self.found {
            Some((found, Err(why))) if found == name => Err(why.clone()),
            // What it may do with helpers of its own is known where it runs.
            _ => Ok(Settings::default()),
        }
    }

    fn digits(&self, made: u64) -> Option<String> {
        let mut steps = self.steps.borrow_mut();
        let step = self.place.step(made, steps.len());
        let recorded = self.recorded.get(steps.len()).cloned();
        let digits = recorded.unwrap_or_else(|| step.child(self.job).short());
        steps.push((digits.clone(), step));
        Some(digits)
    }
}

impl Team {
    /// The team of a job at this depth below the first one.
    pub(in crate::provider) fn new(
        job: JobId,
        name: &str,
        depth: u32,
        settings: Settings,
        project: Option<String>,
    ) -> Self {
        let tree = Tree::below(0, name, depth as usize, settings);
        let root = tree.root().clone();
        Self {
            tree,
            root,
            job,
            helpers: BTreeMap::new(),
            members: BTreeMap::new(),
            project,
            for_projects: BTreeSet::new(),
            cancelled: Vec::new(),
            started: Vec::new(),
        }
    }

    /// Whether helpers work, as far as is known.
    pub(in crate::provider) fn works(&self) -> bool {
        self.tree.has_running_helpers(&self.root)
    }

    /// Takes a call with what is known before it.
    pub(in crate::provider) fn call(&mut self, call: &Asked, place: CallPlace, news: &News) -> Answer {
        self.take(call, (place, &[]), news)
    }

    /// Takes a call of an earlier attempt, perhaps of the job from which this one was forked: its helpers keep their ids.
    pub(in crate::provider) fn replay(&mut self, call: &Asked, place: CallPlace, news: &News, started: &[String]) {
        self.take(call, (place, started), news);
    }

    fn take(&mut self, call: &Asked, (place, recorded): (CallPlace, &[String]), news: &News) -> Answer {
        self.learn(news);
        let known = Known { recorded, ..self.known(place, news) };
        let asked = Call { caller: &self.root, name: &call.name, arguments: &call.arguments, now_ms: news.now_ms };
        let answer = self.tree.call(asked, &known);
        let steps = known.steps.into_inner();
        self.perform(&steps);
        self.started = steps.into_iter().map(|(digits, _)| digits).collect();
        answer.unwrap_or_else(|| Answer::Now(json!({"tool_call_error": format!("there is no tool \"{}\"", call.name)})))
    }

    /// The digits in the ids of the helpers that the last call started.
    pub(in crate::provider) fn take_started(&mut self) -> Vec<String> {
        std::mem::take(&mut self.started)
    }

    /// Asks again for the answer to a call that waits.
    pub(in crate::provider) fn resume(&mut self, waiting: WaitCause, place: CallPlace, news: &News) -> Answer {
        self.learn(news);
        let known = self.known(place, news);
        let answer = self.tree.resume(&self.root, waiting, news.now_ms, &known);
        let steps = known.steps.into_inner();
        self.perform(&steps);
        answer
    }

    /// Whether the agent may stop: none if it may, or what it is told.
    pub(in crate::provider) fn stopping(&mut self, news: &News) -> Option<String> {
        self.learn(news);
        let stop = self.tree.stopping(&self.root);
        self.perform(&[]);
        match stop {
            Stop::Accepted => None,
            Stop::Reminded(text) => Some(text),
        }
    }

    fn known<'a>(&self, place: CallPlace, news: &'a News) -> Known<'a> {
        Known { found: news.found.as_ref(), job: self.job, place, recorded: &[], steps: RefCell::new(Vec::new()) }
    }

    fn learn(&mut self, news: &News) {
        for Ended { id, outcome } in &news.ended {
            let id = AgentId(id.clone());
            self.helpers.remove(&id);
            let outcome = match outcome.clone() {
                Ok(text) => HelperOutcome::Completed(text),
                Err(error) => HelperOutcome::Failed(error),
            };
            self.tree.finished(&id, outcome);
        }
        self.tree.set_questions(news.questions.iter().cloned().map(Question::escalation).collect());
        if let Some((agent, Ok(member))) = &news.found {
            self.members.insert(agent.clone(), member.clone());
            if news.for_projects {
                self.for_projects.insert(agent.clone());
            }
        }
    }

    fn perform(&mut self, steps: &[(String, SpawnStep)]) {
        for effect in self.tree.take_effects() {
            match effect {
                Effect::Spawn { id, agent, prompt, .. } => {
                    let step = steps.iter().rev().find(|(digits, _)| id.0.ends_with(digits.as_str()));
                    let Some((_, step)) = step else { continue };
                    let member = self.members.get(&agent).map_or("message", String::as_str);
                    let mut input = json!({ member: prompt });
                    if let Some(project) = self.project.as_ref().filter(|_| self.for_projects.contains(&agent)) {
                        input["variables"] = json!({ PROJECT: project });
                    }
                    let input = RawValue::from_string(input.to_string());
                    let input = input.unwrap_or_else(|_| RawValue::NULL.to_owned());
                    let call = ChildCall { agent, input, priority: 0, skill: false };
                    self.helpers.insert(id, Helper { step: *step, call, begun: None });
                }
                Effect::Cancel(id) => {
                    let helper = self.helpers.remove(&id);
                    self.cancelled.extend(helper.map(|helper| helper.step.child(self.job)));
                }
            }
        }
    }

    /// The helpers of which this attempt has not asked for the end.
    pub(in crate::provider) fn unbegun(&self) -> Vec<(AgentId, SpawnStep, ChildCall)> {
        let unbegun = self.helpers.iter().filter(|(_, helper)| helper.begun.is_none());
        unbegun.map(|(id, helper)| (id.clone(), helper.step, helper.call.clone())).collect()
    }

    /// Notes that it has asked for it now.
    pub(in crate::provider) fn began(&mut self, id: &AgentId, begun: Begun) {
        if let Some(helper) = self.helpers.get_mut(id) {
            let Begun { wait, end } = begun;
            helper.begun = Some((wait, end.shared()));
        }
    }

    /// What a helper waits for, and where its end arrives.
    pub(in crate::provider) fn end_of(&self, id: &AgentId) -> Option<(Wait, HelperEnd)> {
        self.helpers.get(id)?.begun.clone()
    }

    /// The jobs that are to be cancelled.
    pub(in crate::provider) fn take_cancelled(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.cancelled)
    }

    /// The jobs of all helpers that have not ended.
    pub(in crate::provider) fn working(&self) -> Vec<JobId> {
        self.helpers.values().map(|helper| helper.step.child(self.job)).collect()
    }

    /// Adds the helpers whose ends have arrived.
    pub(in crate::provider) fn poll(&mut self, news: &mut News) {
        for (id, helper) in &self.helpers {
            let end = helper.begun.as_ref().and_then(|(_, end)| end.clone().now_or_never());
            let Some(Ok(told)) = end else { continue };
            news.end(id, told);
        }
        self.helpers.retain(|id, _| news.ended.iter().all(|ended| ended.id != id.0));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// What a later attempt does with the records of an earlier one.
    #[test]
    fn the_records_of_calls_give_the_same_helpers() {
        let settings = Settings { spawns: true, ..Settings::default() };
        let call = |name: &str, arguments: Value| Asked {
            id: "1".to_owned(),
            name: name.to_owned(),
            arguments,
            opaque: Value::Null,
        };
        let mut news = News::at(5);
        let variables = json!({"properties": {"project_dir": {"type": "string"}}});
        let properties = json!({"text": {"type": "string"}, "variables": variables});
        news.found("kid", Ok(json!({"properties": properties, "required": ["text"]})));
        let spawn = call("agent__spawn", json!({"agent": "kid", "prompt": "go"}));
        let play = || {
            let mut team = Team::new(JobId(7), "boss", 0, settings.clone(), Some("/p".to_owned()));
            let Answer::Now(spawned) = team.call(&spawn, CallPlace::Step(3), &news) else { panic!("an answer") };
            (team, spawned)
        };
        let ((mut team, spawned), (again, same)) = (play(), play());
        assert_eq!(spawned, same);
        let jobs: Vec<_> = team.unbegun().into_iter().map(|(_, step, call)| (step, call.input.to_string())).collect();
        let found: Vec<_> = again.unbegun().into_iter().map(|(_, step, call)| (step, call.input.to_string())).collect();
        assert_eq!((&jobs, jobs[0].1.as_str()), (&found, r#"{"text":"go","variables":{"project_dir":"/p"}}"#));
        // The id of a helper has the digits of its job.
        let id = spawned["id"].as_str().expect("an id");
        assert_eq!(id, format!("agent_kid_{}", jobs[0].0.child(JobId(7)).short()));

        let mut ended = News::at(6);
        ended.end(&AgentId(id.to_owned()), Told::Completed(br#"{"text": "done"}"#.as_slice().into()));
        assert!(team.works());
        let Answer::Now(collected) = team.call(&call("agent__collect", json!({"id": id})), CallPlace::Step(4), &ended)
        else {
            panic!("an answer")
        };
        assert_eq!((collected["output"].as_str(), team.works()), (Some("done"), false));
        assert!(team.working().is_empty());
    }
}
