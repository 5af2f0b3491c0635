//! The tools: skills, those of the platform and, if asked for, agents (compatibility §18.3 and §19.2).

use atlas_api::types::Skill;
use atlas_api::{Agents, Jobs};
use atlas_contract::platform;
use atlas_service::{AgentQuery, Caller, Consistency, Error, OutsideCall, SkillEnd, Submission, Unwanted, Versions};
use atlas_types::AgentName;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::Compatible;
use super::calls::Running;
use super::message::{self, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};
use crate::body;
use crate::context;
use crate::schema::{INPUT, Offered};
use crate::texts;
use crate::view::plain_error_text as error_text;

impl Compatible {
    /// The answer to a request of a session, which is noted as running.
    pub(super) async fn answer_to(
        &self,
        caller: &Caller,
        (id, running): (&Value, Running),
        method: &str,
        params: &Map<String, Value>,
    ) -> Value {
        let trace = params.get("_meta").and_then(|meta| meta.get("traceparent")).and_then(Value::as_str);
        let caller = context::traced(caller.clone(), trace);
        match self.result(&caller, method, params, running.unwanted()).await {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => error.answer(Some(id)),
        }
    }

    async fn result(
        &self,
        caller: &Caller,
        method: &str,
        params: &Map<String, Value>,
        unwanted: Unwanted,
    ) -> Result<Value, RpcError> {
        match method {
            "initialize" => message::initialized(params),
            "ping" => Ok(json!({})),
            "tools/list" => {
                let tools = self.tools(caller).await;
                Ok(json!({ "tools": tools.map_err(|error| RpcError::new(INTERNAL_ERROR, error_text(&error)))? }))
            }
            "tools/call" => {
                let invalid = || RpcError::new(INVALID_PARAMS, "Invalid request parameters");
                let name = params.get("name").and_then(Value::as_str).ok_or_else(invalid)?;
                let arguments = match params.get("arguments") {
                    None | Some(Value::Null) => Map::new(),
                    Some(Value::Object(arguments)) => arguments.clone(),
                    // Models send them as text now and then.
                    Some(Value::String(text)) => match body::object_of(text) {
                        Some(Value::Object(arguments)) => arguments,
                        _ => return Err(invalid()),
                    },
                    Some(_) => return Err(invalid()),
                };
                let called = self.call(caller, name, arguments, unwanted).await;
                Ok(shown(called.unwrap_or_else(|error| Err(error_text(&error)))))
            }
            _ => Err(RpcError::new(METHOD_NOT_FOUND, "Method not found")),
        }
    }

    /// How many tools there are, not counting agents.
    pub(super) async fn tools_count(&self, caller: &Caller) -> Result<usize, Error> {
        Ok(self.service.skills(caller, Consistency::Stale).await?.len() + platform::TOOLS.len())
    }

    async fn tools(&self, caller: &Caller) -> Result<Vec<Value>, Error> {
        caller.may(Agents::ListAgents.id())?;
        let skills = self.service.skills(caller, Consistency::Linearizable).await?;
        let mut tools: Vec<Value> = skills.iter().map(tool).collect();
        tools.extend(platform::TOOLS.iter().map(|known| {
            json!({ "name": known.name, "description": known.description, "inputSchema": known.input_schema() })
        }));
        if self.options.all_agents {
            let query = AgentQuery { versions: Versions::Latest, ..AgentQuery::default() };
            let agents = self.service.agents(caller, &query, Consistency::Linearizable).await?;
            tools.extend(agents.iter().map(|agent| {
                let schema = Offered::new(agent.contract.value.get("input_schema")).schema;
                json!({
                    "name": agent.agent.name.as_str(),
                    "description": agent.contract.text("/description"),
                    "inputSchema": schema,
                })
            }));
        }
        Ok(tools)
    }

    /// Calls a tool: its result, or a text for the client.
    async fn call(
        &self,
        caller: &Caller,
        name: &str,
        mut arguments: Map<String, Value>,
        unwanted: Unwanted,
    ) -> Result<Result<Value, String>, Error> {
        if let Some(known) = platform::find(name) {
            if let Value::Object(schema) = known.input_schema() {
                texts::read(&mut arguments, &schema);
            }
            let call = OutsideCall { tool: name.to_owned(), arguments, pool: self.options.pool, unwanted };
            return self.service.platform_tool(caller, call).await;
        }
        // Skills and agents run code.
        self.service.admit(caller, Jobs::SubmitJob.id(), &format!("mcp/{name}")).await?;
        let mut input = Value::Object(arguments);
        // The input of a skill may be a member, if it is no object.
        if input.as_object().is_some_and(|input| input.len() == 1 && input.contains_key(INPUT)) {
            let skills = self.service.skills(caller, Consistency::Stale).await?;
            let skill = skills.iter().find(|skill| skill.name == name);
            if let (Some(skill), Value::Object(arguments)) = (skill, &input) {
                input = offered(skill).input(arguments.clone());
            }
        }
        match self.service.run_skill(caller, name, &input, unwanted.clone()).await? {
            Some(SkillEnd::Done(output)) => return Ok(Ok(output)),
            Some(SkillEnd::Failed(error)) => return Ok(Err(error)),
            Some(SkillEnd::Unfit(violation)) => return Ok(Err(format!("Input validation error: {violation}"))),
            None => {}
        }
        let unknown = || Ok(Err(format!("Unknown tool: {name}")));
        let Some(agent) = AgentName::new(name).ok().filter(|_| self.options.all_agents) else { return unknown() };
        let offered = match self.service.agent(caller, name, None, Consistency::Linearizable).await {
            Ok(shown) => Offered::new(shown.contract.value.get("input_schema")),
            Err(Error::UnknownAgent { .. }) => return unknown(),
            Err(error) => return Err(error),
        };
        let Value::Object(mut arguments) = input else { return unknown() };
        texts::read(&mut arguments, &offered.schema);
        let submission = Submission::new(agent, Bytes::from(offered.input(arguments).to_string()));
        self.service.run_to_end(caller, submission, unwanted).await
    }
}

/// The input schema of a skill as it is offered.
fn offered(skill: &Skill) -> Offered {
    Offered::new(Some(&skill.input_schema))
}

fn tool(skill: &Skill) -> Value {
    let described = Some(&skill.description).filter(|text| !text.is_empty()).cloned();
    let description = described.unwrap_or_else(|| format!("Skill: {}", skill.name));
    json!({ "name": skill.name, "description": description, "inputSchema": offered(skill).schema })
}

/// A result, as one text: the JSON of what was returned, or what went wrong.
fn shown(ended: Result<Value, String>) -> Value {
    let (text, is_error) = match ended {
        Ok(value) => (value.to_string(), false),
        Err(text) => (text, true),
    };
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_without_a_description_is_named() {
        let known = tool(&Skill { name: "reverse".to_owned(), input_schema: Skill::any_object(), ..Skill::default() });
        assert_eq!(known["description"], "Skill: reverse");
    }

    #[test]
    fn results_are_one_text() {
        let result = shown(Ok(json!({ "text": "cba" })));
        assert_eq!(result, json!({ "content": [{ "type": "text", "text": "{\"text\":\"cba\"}" }], "isError": false }));
        assert_eq!(shown(Err("Unknown tool: x".to_owned()))["isError"], true);
    }
}
