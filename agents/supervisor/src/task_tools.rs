//! The tools of the task queue, and the start of agents for tasks.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::limits::TASKS_MAX;
use crate::settings::Agents;
use crate::tasks::{Status, Task};
use crate::tree::{AgentId, Call, Refused, Tree, error, refused, text};

impl Tree {
    pub(crate) fn task_create(&mut self, call: Call<'_>, agents: &dyn Agents) -> Result<Value, Refused> {
        let subject = text(call.arguments, "subject")?.to_owned();
        let optional = |name: &str| match call.arguments.get(name).and_then(Value::as_str) {
            Some(_) => text(call.arguments, name).map(|text| Some(text.to_owned())),
            None => Ok(None),
        };
        let (description, agent, prompt) = (optional("description")?, optional("agent")?, optional("prompt")?);
        if agent.is_some() && prompt.is_none() {
            return refused("'prompt' is required when 'agent' is set");
        }
        let blocked_by = call.arguments.get("blocked_by").and_then(Value::as_array);
        let blocked_by: Vec<String> = blocked_by.into_iter().flatten().filter_map(number).collect();
        let tasks = &mut self.member_mut(call.caller)?.tasks;
        if tasks.len() >= TASKS_MAX {
            return Ok(error(format!("The queue has {TASKS_MAX} tasks, which is the most.")));
        }
        let dispatch = agent.is_some();
        let task = Task {
            number: 0,
            subject,
            description: description.unwrap_or_default(),
            status: Status::Pending,
            owner: None,
            blocked_by: BTreeSet::new(),
            blocks: BTreeSet::new(),
            agent,
            prompt,
        };
        let (number, warnings) = tasks.create(task, &blocked_by);
        let mut result = json!({"status": "ok", "task_id": number.to_string()});
        if dispatch {
            result["auto_dispatch"] = json!(true);
        }
        if !warnings.is_empty() {
            result["warnings"] = json!(warnings);
        }
        add_dispatched(&mut result, self.dispatch(call.caller, agents)?);
        Ok(result)
    }

    pub(crate) fn task_complete(&mut self, call: Call<'_>, agents: &dyn Agents) -> Result<Value, Refused> {
        let id = task_id(call.arguments)?;
        let tasks = &mut self.member_mut(call.caller)?.tasks;
        let runnable = id.parse().map(|number| tasks.complete(number)).unwrap_or_default();
        let shown = |number: u64| {
            let task = tasks.get(number)?;
            Some(json!({
                "id": number.to_string(), "subject": task.subject, "description": task.description, "agent": task.agent,
            }))
        };
        let runnable: Vec<Value> = runnable.into_iter().filter_map(shown).collect();
        let mut result = json!({"status": "ok", "task_id": id, "newly_runnable": runnable});
        add_dispatched(&mut result, self.dispatch(call.caller, agents)?);
        Ok(result)
    }

    pub(crate) fn task_fail(&mut self, call: Call<'_>) -> Result<Value, Refused> {
        let id = task_id(call.arguments)?;
        let tasks = &mut self.member_mut(call.caller)?.tasks;
        let Some(blocked) = id.parse().ok().and_then(|number| tasks.fail(number)) else {
            return Ok(error(format!("Task '{id}' not found")));
        };
        let count = blocked.len();
        let blocked: Vec<String> = blocked.iter().map(u64::to_string).collect();
        let message = format!("Task '{id}' marked as failed. {count} dependent task(s) will remain blocked.");
        Ok(json!({"status": "ok", "task_id": id, "blocked_dependents": blocked, "message": message}))
    }

    /// Starts agents for the tasks that are runnable and have one, in their order. A task whose agent cannot start now stays pending,
    /// and is tried again when a helper is collected or cancelled.
    pub(crate) fn dispatch(&mut self, caller: &AgentId, agents: &dyn Agents) -> Result<Vec<Value>, Refused> {
        let (mut results, mut after) = (Vec::new(), 0);
        while let Some((number, agent, prompt)) = self.member(caller)?.tasks.dispatchable(after) {
            after = number;
            let result = self.start(caller, &agent, &prompt, agents).unwrap_or_else(|Refused(why)| {
                json!({"status": "error", "agent": agent, "message": format!("Auto-dispatch failed: {why}")})
            });
            if result["status"] == json!("ok") {
                self.member_mut(caller)?.tasks.claim(number, format!("auto:{agent}"));
            }
            results.push(result);
        }
        Ok(results)
    }
}

fn add_dispatched(result: &mut Value, dispatched: Vec<Value>) {
    if !dispatched.is_empty() {
        result["auto_dispatched"] = Value::Array(dispatched);
    }
}

/// A number of a task. Models write it as a text or as a number.
fn number(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}

fn task_id(arguments: &Value) -> Result<String, Refused> {
    arguments.get("task_id").and_then(number).map_or_else(|| refused("'task_id' is required"), Ok)
}
