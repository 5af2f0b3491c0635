//! The helpers of an agent, as its attempts know them. Each is a job that the agent's job spawned. What the tools answer is decided by
//! [`atlas_supervisor::Tree`]; a record of each call lets a later attempt decide the same and find the same jobs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use atlas_model::ToolCall as Asked;
use atlas_supervisor::{AgentId, Agents, Answer, Call, Effect, Escalation, Outcome, Settings, Stop, Tree, Waiting};
use atlas_types::{JobId, SpawnStep, Wait};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::journal::{Begun, ChildCall, hashed};
use crate::mailbox::Answer as Told;

/// What came of helpers since the call before.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct News {
    /// In milliseconds since 1970.
    now_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<Ended>,
    /// Their questions that wait for an answer, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    questions: Vec<Question>,
    /// The agent that the call names: how it takes a prompt, or why it cannot be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<(String, Result<String, String>)>,
    /// Whether that agent has a variable for the folder of a project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    for_projects: bool,
}

/// The variable with the folder of a project, which helpers share with their agent.
pub(super) const PROJECT: &str = "project_dir";

/// A helper that ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Ended {
    id: String,
    /// Its text, or its error.
    outcome: Result<String, String>,
}

/// A question of a helper, as the controller tells of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Question {
    escalation_id: String,
    from_agent_id: Option<String>,
    from_agent_name: Option<String>,
    question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    options: Option<Vec<String>>,
}

/// The helpers of a job.
pub(super) struct Team {
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
}

struct Helper {
    step: SpawnStep,
    call: ChildCall,
    /// Where its end arrives, once this attempt has asked for it.
    begun: Option<Begun>,
}

/// What the tree asks about other agents.
struct Known<'a> {
    found: Option<&'a (String, Result<String, String>)>,
    job: JobId,
    /// The number of the step that makes the call.
    number: u64,
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
        let step = SpawnStep { number: self.number, key: hashed(&("helper", made)) };
        let digits = step.child(self.job).short();
        self.steps.borrow_mut().push((digits.clone(), step));
        Some(digits)
    }
}

impl Team {
    /// The team of a job at this depth below the first one.
    pub(super) fn new(job: JobId, name: &str, depth: u32, settings: Settings, project: Option<String>) -> Self {
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
        }
    }

    /// Whether helpers work, as far as is known.
    pub(super) fn works(&self) -> bool {
        self.tree.has_running_helpers(&self.root)
    }

    /// Takes a call with what is known before it.
    pub(super) fn call(&mut self, call: &Asked, number: u64, news: &News) -> Answer {
        self.learn(news);
        let known = self.known(number, news);
        let asked = Call { caller: &self.root, name: &call.name, arguments: &call.arguments, now_ms: news.now_ms };
        let answer = self.tree.call(asked, &known);
        let steps = known.steps.into_inner();
        self.perform(&steps);
        answer.unwrap_or_else(|| Answer::Now(json!({"tool_call_error": format!("there is no tool \"{}\"", call.name)})))
    }

    /// Asks again for the answer to a call that waits.
    pub(super) fn resume(&mut self, waiting: Waiting, number: u64, news: &News) -> Answer {
        self.learn(news);
        let known = self.known(number, news);
        let answer = self.tree.resume(&self.root, waiting, news.now_ms, &known);
        let steps = known.steps.into_inner();
        self.perform(&steps);
        answer
    }

    /// Whether the agent may stop: none if it may, or what it is told.
    pub(super) fn stopping(&mut self, news: &News) -> Option<String> {
        self.learn(news);
        let stop = self.tree.stopping(&self.root);
        self.perform(&[]);
        match stop {
            Stop::Accepted => None,
            Stop::Reminded(text) => Some(text),
        }
    }

    fn known<'a>(&self, number: u64, news: &'a News) -> Known<'a> {
        Known { found: news.found.as_ref(), job: self.job, number, steps: RefCell::new(Vec::new()) }
    }

    fn learn(&mut self, news: &News) {
        for Ended { id, outcome } in &news.ended {
            let id = AgentId(id.clone());
            self.helpers.remove(&id);
            let outcome = match outcome.clone() {
                Ok(text) => Outcome::Completed(text),
                Err(error) => Outcome::Failed(error),
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
    pub(super) fn unbegun(&self) -> Vec<(AgentId, SpawnStep, ChildCall)> {
        let unbegun = self.helpers.iter().filter(|(_, helper)| helper.begun.is_none());
        unbegun.map(|(id, helper)| (id.clone(), helper.step, helper.call.clone())).collect()
    }

    /// Notes that it has asked for it now.
    pub(super) fn began(&mut self, id: &AgentId, begun: Begun) {
        if let Some(helper) = self.helpers.get_mut(id) {
            helper.begun = Some(begun);
        }
    }

    /// What a helper waits for, and where its end arrives.
    pub(super) fn end_of(&mut self, id: &AgentId) -> Option<(Wait, &mut oneshot::Receiver<Told>)> {
        let begun = self.helpers.get_mut(id)?.begun.as_mut()?;
        Some((begun.wait, &mut begun.end))
    }

    /// The jobs that are to be cancelled.
    pub(super) fn take_cancelled(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.cancelled)
    }

    /// The jobs of all helpers that have not ended.
    pub(super) fn working(&self) -> Vec<JobId> {
        self.helpers.values().map(|helper| helper.step.child(self.job)).collect()
    }

    /// Adds the helpers whose ends have arrived.
    pub(super) fn poll(&mut self, news: &mut News) {
        for (id, helper) in &mut self.helpers {
            let Some(Ok(told)) = helper.begun.as_mut().map(|begun| begun.end.try_recv()) else { continue };
            news.end(id, told);
        }
        self.helpers.retain(|id, _| news.ended.iter().all(|ended| ended.id != id.0));
    }
}

impl News {
    /// What is known at a time, in milliseconds since 1970.
    pub(super) fn at(now_ms: u64) -> Self {
        Self { now_ms, ..Self::default() }
    }

    pub(super) fn end(&mut self, id: &AgentId, told: Told) {
        let outcome = match told {
            Told::Completed(output) => Ok(text(&output)),
            Told::Failed(error) | Told::Refused(error) => Err(error),
        };
        self.ended.push(Ended { id: id.0.clone(), outcome });
    }

    pub(super) fn set_questions(&mut self, questions: Vec<Question>) {
        self.questions = questions;
    }

    /// Notes what is known of an agent: its schema of inputs, or why it cannot be started.
    pub(super) fn found(&mut self, agent: &str, schema: Result<Value, String>) {
        let variable = |schema: &Value| {
            schema.pointer("/properties/variables/properties").and_then(|all| all.get(PROJECT)).is_some()
        };
        self.for_projects = schema.as_ref().is_ok_and(variable);
        let member = schema.and_then(|schema| member(agent, &schema));
        self.found = Some((agent.to_owned(), member));
    }
}

impl Question {
    fn escalation(self) -> Escalation {
        Escalation {
            id: self.escalation_id,
            from: AgentId(self.from_agent_id.unwrap_or_default()),
            agent: self.from_agent_name.unwrap_or_default(),
            question: self.question,
            options: self.options,
            // The controller closes those whose time is over.
            until_ms: u64::MAX,
        }
    }
}

/// The text of an output: that of its member `text` or `result`, or its JSON.
fn text(output: &[u8]) -> String {
    let value: Value = serde_json::from_slice(output).unwrap_or_default();
    let member = ["text", "result"].into_iter().find_map(|member| value.get(member).and_then(Value::as_str));
    member.or(value.as_str()).map_or_else(|| value.to_string(), str::to_owned)
}

/// The member of an input that takes a prompt: `message`, or the only required one, if it is a text.
fn member(agent: &str, schema: &Value) -> Result<String, String> {
    let takes = |member: &str| match schema.get("properties").and_then(|properties| properties.get(member)) {
        None => schema.get("properties").is_none(),
        Some(property) => property.get("type").is_none_or(|kind| kind == "string"),
    };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    match required[..] {
        [] | ["message"] if takes("message") => Ok("message".to_owned()),
        [one] if takes(one) => Ok(one.to_owned()),
        _ => Err(format!("the agent \"{agent}\" takes no prompt: its input needs {}", required.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value, expected: Result<&str, &str>) {
        let found = member("a", schema);
        assert_eq!(found.as_ref().map(String::as_str).map_err(String::as_str), expected, "{schema}");
    }

    #[test]
    fn a_prompt_is_the_message_or_the_only_required_text() {
        check(&json!({"type": "object"}), Ok("message"));
        check(
            &json!({"properties": {"message": {"type": "string"}, "variables": {}}, "required": ["message"]}),
            Ok("message"),
        );
        check(&json!({"properties": {"text": {"type": "string"}}, "required": ["text"]}), Ok("text"));
        check(
            &json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]}),
            Err("the agent \"a\" takes no prompt: its input needs n"),
        );
        check(
            &json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
            Err("the agent \"a\" takes no prompt: its input needs a, b"),
        );
    }

    #[test]
    fn outputs_are_texts() {
        for (output, expected) in [
            (r#"{"text": "t", "state": {}}"#, "t"),
            (r#"{"result": "r"}"#, "r"),
            (r#""s""#, "s"),
            (r#"{"n": 1}"#, r#"{"n":1}"#),
        ] {
            assert_eq!(text(output.as_bytes()), expected);
        }
    }

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
            let Answer::Now(spawned) = team.call(&spawn, 3, &news) else { panic!("an answer") };
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
        let Answer::Now(collected) = team.call(&call("agent__collect", json!({"id": id})), 4, &ended) else {
            panic!("an answer")
        };
        assert_eq!((collected["output"].as_str(), team.works()), (Some("done"), false));
        assert!(team.working().is_empty());
    }
}
