//! The task queue of an agent: tasks that wait for others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its number, from 1.
    pub number: u64,
    /// What it is about.
    pub subject: String,
    /// In detail; can be empty.
    pub description: String,
    /// How far it is.
    pub status: Status,
    /// Who works on it.
    pub owner: Option<String>,
    /// Tasks that have to be completed before.
    pub blocked_by: BTreeSet<u64>,
    /// Tasks that wait for this one.
    pub blocks: BTreeSet<u64>,
    /// The agent that is started for it once it is runnable.
    pub agent: Option<String>,
    /// The input of that agent.
    pub prompt: Option<String>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It can be done.
    Pending,
    /// Another task comes first.
    Blocked,
    /// Somebody works on it.
    InProgress,
    /// It is done.
    Completed,
    /// It cannot be done.
    Failed,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Blocked => "blocked",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// The tasks of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TaskQueue {
    tasks: BTreeMap<u64, Task>,
}

impl TaskQueue {
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Task> {
        self.tasks.get(&number)
    }

    /// Adds a task. Dependencies that cannot be are left out, and named in the warnings.
    pub(crate) fn create(&mut self, mut task: Task, blocked_by: &[String]) -> (u64, Vec<String>) {
        let number = self.tasks.keys().next_back().map_or(1, |last| last + 1);
        task.number = number;
        let mut warnings = Vec::new();
        for text in blocked_by {
            match text.parse().ok().filter(|before: &u64| before.to_string() == *text) {
                Some(before) if before == number => warnings.push("A task cannot depend on itself".to_owned()),
                Some(before) => match self.tasks.get_mut(&before) {
                    // What is done already blocks nothing.
                    Some(Task { status: Status::Completed, .. }) => {}
                    Some(other) => {
                        other.blocks.insert(number);
                        task.blocked_by.insert(before);
                    }
                    None => warnings.push(format!("Dependency task '{text}' does not exist")),
                },
                None => warnings.push(format!("Dependency task '{text}' does not exist")),
            }
        }
        if !task.blocked_by.is_empty() {
            task.status = Status::Blocked;
        }
        self.tasks.insert(number, task);
        (number, warnings)
    }

    /// Marks a task as completed. The tasks that waited for it alone can be done now.
    pub(crate) fn complete(&mut self, number: u64) -> Vec<u64> {
        let Some(task) = self.tasks.get_mut(&number) else { return Vec::new() };
        task.status = Status::Completed;
        let mut runnable = Vec::new();
        for next in task.blocks.clone() {
            let Some(next) = self.tasks.get_mut(&next) else { continue };
            next.blocked_by.remove(&number);
            if next.blocked_by.is_empty() && next.status == Status::Blocked {
                next.status = Status::Pending;
                runnable.push(next.number);
            }
        }
        runnable
    }

    pub(crate) fn fail(&mut self, number: u64) -> Option<Vec<u64>> {
        let task = self.tasks.get_mut(&number)?;
        task.status = Status::Failed;
        Some(task.blocks.iter().copied().collect())
    }

    /// The first task that an agent can be started for, with the agent and its input.
    pub(crate) fn dispatchable(&self, after: u64) -> Option<(u64, String, String)> {
        self.tasks.range(after + 1..).find_map(|(number, task)| {
            let is_free = task.status == Status::Pending && task.owner.is_none();
            let (agent, prompt) = task.agent.clone().zip(task.prompt.clone()).filter(|_| is_free)?;
            Some((*number, agent, prompt))
        })
    }

    pub(crate) fn claim(&mut self, number: u64, owner: String) {
        if let Some(task) = self.tasks.get_mut(&number) {
            (task.owner, task.status) = (Some(owner), Status::InProgress);
        }
    }

    pub(crate) fn shown(&self) -> Value {
        let texts = |numbers: &BTreeSet<u64>| numbers.iter().map(u64::to_string).collect::<Vec<_>>();
        let shown = |task: &Task| {
            json!({
                "id": task.number.to_string(), "subject": task.subject, "status": task.status.word(), "owner": task.owner,
                "blocked_by": texts(&task.blocked_by), "blocks": texts(&task.blocks), "agent": task.agent, "prompt": task.prompt,
            })
        };
        json!({"tasks": self.tasks.values().map(shown).collect::<Vec<_>>()})
    }
}
