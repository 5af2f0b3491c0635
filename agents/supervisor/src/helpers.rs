//! Helpers: starting, checking, collecting and cancelling them.

use serde_json::{Value, json};

use crate::limits::AGENTS_MAX;
use crate::settings::Agents;
use crate::tree::{
    AgentId, Answer, Call, Effect, HelperOutcome, Member, Refused, Tree, WaitCause, error, refused, text,
};

/// A helper's output that is too long for the agent that collects it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The helper.
    pub id: AgentId,
    /// The name of its agent.
    pub agent: String,
    /// What has to be summarised.
    pub output: String,
}

/// What a model is told that summarises the output of a helper.
const INSTRUCTIONS: &str = "You shorten the output of an agent for the agent that asked for it. Begin with its answer or conclusion. Keep all \
    code, paths, error messages and concrete recommendations, word for word. Leave out repetitions, politeness and thoughts on the way. \
    Write a list if there are several findings. Use less than 30 % of the length.";

impl Summary {
    /// The instructions for the model that makes the summary.
    pub fn instructions(&self) -> &'static str {
        INSTRUCTIONS
    }

    /// The result of the call. Without a summary it has the whole output.
    pub fn result(self, summary: Option<String>) -> Value {
        completed(&self.id, &self.agent, &summary.unwrap_or(self.output))
    }
}

fn completed(id: &AgentId, agent: &str, output: &str) -> Value {
    json!({"status": "completed", "id": id.0, "agent": agent, "exit_status": "Completed", "output": output})
}

impl Tree {
    pub(crate) fn spawn(&mut self, call: Call<'_>, agents: &dyn Agents) -> Result<Value, Refused> {
        let (agent, prompt) = (text(call.arguments, "agent")?, text(call.arguments, "prompt")?);
        self.start(call.caller, agent, prompt, agents)
    }

    /// Starts a helper. At a limit, the result says so.
    pub(crate) fn start(
        &mut self,
        caller: &AgentId,
        agent: &str,
        prompt: &str,
        agents: &dyn Agents,
    ) -> Result<Value, Refused> {
        let member = self.member(caller)?;
        let (count, most, depth) = (member.helpers.len(), member.settings.concurrent, member.depth + 1);
        if count >= most {
            let ended =
                member.helpers.iter().filter(|id| self.members.get(id).is_some_and(|one| one.outcome.is_some()));
            let more = match ended.count() {
                0 => String::new(),
                ended => format!(" {ended} of them finished: they count until they are collected."),
            };
            return Ok(error(format!(
                "At capacity: {count}/{most} agents running. Wait for one to finish or cancel one.{more}"
            )));
        }
        if depth > member.settings.depth {
            return Ok(error(format!("Max agent depth exceeded ({depth}/{})", member.settings.depth)));
        }
        if self.members.len() >= AGENTS_MAX {
            return Ok(error(format!("The tree has {AGENTS_MAX} agents, which is the most. Collect or cancel some.")));
        }
        let settings = agents.settings(agent).map_err(Refused)?;
        let id = AgentId(format!("agent_{agent}_{}", self.helper_digits(agents)));
        if self.members.contains_key(&id) {
            return refused(format!("the id \"{id}\" exists already; call again"));
        }
        self.members.insert(id.clone(), Member::new(agent.to_owned(), Some(caller.clone()), depth, settings));
        self.member_mut(caller)?.helpers.push(id.clone());
        self.effects.push(Effect::Spawn { id: id.clone(), agent: agent.to_owned(), prompt: prompt.to_owned(), depth });
        let message = format!("Agent '{agent}' spawned as '{id}'. Use agent__check or agent__collect to get results.");
        Ok(json!({"status": "ok", "id": id.0, "agent": agent, "message": message}))
    }

    /// The helper of a caller that has this id.
    fn helper(&self, caller: &AgentId, id: &str) -> Option<(AgentId, &Member)> {
        let id = AgentId(id.to_owned());
        let is_own = self.members.get(caller)?.helpers.contains(&id);
        self.members.get(&id).filter(|_| is_own).map(|member| (id, member))
    }

    pub(crate) fn check(&mut self, call: Call<'_>, agents: &dyn Agents) -> Result<Answer, Refused> {
        let id = text(call.arguments, "id")?;
        match self.helper(call.caller, id) {
            None => Ok(Answer::Now(error(format!("No agent found with id '{id}'")))),
            Some((_, Member { outcome: Some(_), .. })) => self.collect(call.caller, id, agents),
            Some(_) => {
                let mut result = json!({"status": "pending", "id": id, "message": "Agent is still running"});
                if let Some(pending) = self.escalations.pending() {
                    result["message"] = json!(
                        "Agent is still running. Child agents have pending escalations that need your reply via agent__reply_escalation."
                    );
                    result["pending_escalations"] = pending;
                }
                Ok(Answer::Now(result))
            }
        }
    }

    /// The result of a helper, which is gone afterwards. A question that waits for an answer comes before one.
    pub(crate) fn collect(&mut self, caller: &AgentId, id: &str, agents: &dyn Agents) -> Result<Answer, Refused> {
        let Some((id, Member { outcome, name, .. })) = self.helper(caller, id) else {
            return Ok(Answer::Now(error(format!(
                "Agent '{id}' not found. Use agent__check to verify it exists and is finished."
            ))));
        };
        let Some(outcome) = outcome.clone() else {
            return Ok(match self.escalations.pending() {
                None => Answer::Wait(WaitCause::Helper(id)),
                Some(pending) => Answer::Now(json!({
                    "status": "pending",
                    "id": id.0,
                    "message": format!(
                        "Agent '{id}' is still running, but child agents have pending escalations that need your reply. Reply via \
                         agent__reply_escalation, then call agent__collect again."
                    ),
                    "pending_escalations": pending,
                })),
            });
        };
        let agent = name.clone();
        self.release(caller, &id, agents)?;
        Ok(match outcome {
            HelperOutcome::Completed(output) if output.len() >= self.member(caller)?.settings.summarize_from => {
                Answer::Summarize(Summary { id, agent, output })
            }
            HelperOutcome::Completed(output) => Answer::Now(completed(&id, &agent, &output)),
            HelperOutcome::Failed(error) => Answer::Now(json!({
                "status": "failed", "id": id.0, "agent": agent, "exit_status": format!("Failed({error:?})"), "output": "", "error": error,
            })),
        })
    }

    /// Forgets a helper, and uses its place for a task that waits for one.
    fn release(&mut self, caller: &AgentId, id: &AgentId, agents: &dyn Agents) -> Result<(), Refused> {
        self.member_mut(caller)?.helpers.retain(|helper| helper != id);
        self.remove(id);
        self.dispatch(caller, agents).map(drop)
    }

    pub(crate) fn list(&self, caller: &AgentId) -> Result<Value, Refused> {
        let member = self.member(caller)?;
        let shown = |id: &AgentId| {
            let helper = self.members.get(id)?;
            let status = if helper.outcome.is_some() { "finished" } else { "running" };
            Some(json!({"id": id.0, "agent": helper.name, "status": status}))
        };
        let helpers: Vec<Value> = member.helpers.iter().filter_map(shown).collect();
        Ok(json!({"active_count": helpers.len(), "max_concurrent": member.settings.concurrent, "agents": helpers}))
    }

    pub(crate) fn cancel(&mut self, call: Call<'_>, agents: &dyn Agents) -> Result<Value, Refused> {
        let id = text(call.arguments, "id")?;
        let Some((id, member)) = self.helper(call.caller, id) else {
            return Ok(error(format!("No agent found with id '{id}'")));
        };
        let name = member.name.clone();
        self.release(call.caller, &id, agents)?;
        Ok(json!({"status": "ok", "message": format!("Cancelled agent '{name}'")}))
    }
}
