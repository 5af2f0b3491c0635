//! What the controller answers about the team of a job.

use std::future::pending;

use atlas_types::{JobId, StepKey, TEAM};
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};

use super::{News, Question, Team};
use crate::journal::hashed;
use crate::mailbox::Answer as Told;
use crate::provider::platform::{Platform, Stopped};

/// Asks the controller about the team of one job.
#[derive(Clone)]
pub(in crate::provider) struct TeamCalls(pub(in crate::provider) Platform);

impl TeamCalls {
    async fn ask(&self, what: &str, arguments: &Value, key: StepKey) -> Result<Told, Stopped> {
        self.0.ask(&format!("{TEAM}{what}"), arguments, key).await
    }

    /// The result of a tool that the controller answers.
    pub(in crate::provider) async fn result(
        &self,
        what: &str,
        arguments: &Value,
        key: StepKey,
    ) -> Result<Value, Stopped> {
        Ok(match self.ask(what, arguments, key).await? {
            Told::Completed(result) => serde_json::from_slice(&result).unwrap_or_default(),
            Told::Failed(why) | Told::Refused(why) => {
                json!({"tool_call_error": format!("Supervisor tool failed: {why}")})
            }
        })
    }

    /// Notes what is known of the agent that a call wants to start.
    pub(in crate::provider) async fn find(
        &self,
        tool: &str,
        arguments: &Value,
        key: StepKey,
        news: &mut News,
    ) -> Result<(), Stopped> {
        let agent = arguments.get("agent").and_then(Value::as_str);
        let Some(agent) = agent.filter(|_| ["agent__spawn", "agent__task_create"].contains(&tool)) else {
            return Ok(());
        };
        let schema = match self.ask("find", &json!({"agent": agent}), key).await? {
            Told::Completed(found) => {
                Ok(serde_json::from_slice::<Value>(&found).unwrap_or_default()["input_schema"].take())
            }
            Told::Failed(why) | Told::Refused(why) => Err(why),
        };
        news.found(agent, schema);
        Ok(())
    }

    /// Learns which helpers have ended, and what the others ask.
    pub(in crate::provider) async fn look(
        &self,
        team: &mut Team,
        news: &mut News,
        key: StepKey,
    ) -> Result<(), Stopped> {
        team.poll(news);
        if team.working().is_empty() {
            news.set_questions(Vec::new());
            return Ok(());
        }
        let questions = match self.ask("questions", &json!({}), key).await? {
            Told::Completed(questions) => serde_json::from_slice::<Vec<Question>>(&questions).unwrap_or_default(),
            Told::Failed(_) | Told::Refused(_) => Vec::new(),
        };
        news.set_questions(questions);
        Ok(())
    }

    /// Is over when a helper has an open question.
    pub(in crate::provider) fn asked(&self, key: StepKey) -> BoxFuture<'static, ()> {
        let calls = self.clone();
        async move {
            match calls.ask("asked", &json!({}), key).await {
                Ok(Told::Completed(_)) => {}
                // Nobody tells: the caller looks from time to time.
                Ok(Told::Failed(_) | Told::Refused(_)) | Err(Stopped) => pending().await,
            }
        }
        .boxed()
    }

    /// Cancels jobs of helpers. One that cannot be cancelled has ended.
    pub(in crate::provider) async fn cancel(&self, jobs: Vec<JobId>) -> Result<(), Stopped> {
        for job in jobs {
            let job = job.to_string();
            let key = hashed(&("team cancel", &job));
            self.ask("cancel", &json!({"job": job}), key).await?;
        }
        Ok(())
    }
}

/// The word for a tool that the controller answers.
pub(in crate::provider) fn word(tool: &str) -> Option<&'static str> {
    match tool {
        "agent__send_message" => Some("send"),
        "agent__reply_escalation" => Some("reply"),
        _ => None,
    }
}
