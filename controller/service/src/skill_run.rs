//! Runs of skills: each is a job of an agent that is made of the skill's package, in a namespace of its own.

use atlas_api::Skills;
use atlas_contract::RequiredSkill;
use atlas_contract::schema::Validator;
use atlas_env::chain;
use atlas_jobs::relations;
use atlas_objects::SkillSpec;
use atlas_registry::KnownContract;
use atlas_state::State;
use atlas_types::{AgentName, Digest, Job, Namespace, ObjectKey, ObjectKind, ObjectName, Version};
use bytes::Bytes;
use serde_json::Value;

use crate::{Caller, Consistency, Error, Service, Submission, Unwanted};

/// How a call of a skill ended.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillEnd {
    Done(Value),
    /// What the skill raised, or why it could not run.
    Failed(String),
    /// The input does not fit the schema: the text of the violation that Python's `jsonschema` names as the best match.
    Unfit(String),
}

impl Service {
    /// Calls a skill of the caller's namespace; none if there is none of that name.
    pub async fn run_skill(
        &self,
        caller: &Caller,
        name: &str,
        input: &Value,
        unwanted: Unwanted,
    ) -> Result<Option<SkillEnd>, Error> {
        caller.may(Skills::TestSkill.id())?;
        let state = self.state(Consistency::Linearizable).await?;
        let Some(spec) = skill(&state, &caller.namespace, name)? else { return Ok(None) };
        if let Err(unfit) = fits(&spec, input) {
            return Ok(Some(SkillEnd::Unfit(unfit)));
        }
        let calls = caller.namespace.clone();
        let caller = caller.clone().with_namespace(Namespace::of_skills());
        let (agent, version) = self.skill_agent(&caller, &spec).await?;
        let submission =
            Submission { version: Some(version.to_string()), ..Submission::new(agent, Bytes::from(input.to_string())) };
        let submission = relations::called_from(submission, calls);
        let ended = self.run_to_end(&caller, submission, unwanted).await?;
        Ok(Some(ended.map_or_else(SkillEnd::Failed, SkillEnd::Done)))
    }

    /// The agent that runs a skill that the contract of a job's agent requires, in the namespace of `caller`. The inner error is told
    /// to the job.
    pub(crate) async fn required_skill(
        &self,
        caller: &Caller,
        job: &Job,
        name: &str,
    ) -> Result<Result<(AgentName, Version), String>, Error> {
        let state = self.shared.current().await?;
        let version = job.pin.as_ref().and_then(|pin| state.agent(&job.namespace, &job.agent, pin.version));
        let Some(version) = version else {
            return Ok(Err("the version of the calling agent is not registered".to_owned()));
        };
        let contract = self.shared.registry.contract(version).await?;
        let Some(required) = required_by(&contract, name) else { return Ok(Err(undeclared(name))) };
        match find(&state, &job.namespace, required)? {
            Ok(spec) => self.skill_agent(caller, &spec).await.map(Ok),
            Err(why) => Ok(Err(why)),
        }
    }

    /// The agent that runs a skill, which is registered when it is first needed.
    async fn skill_agent(&self, caller: &Caller, spec: &SkillSpec) -> Result<(AgentName, Version), Error> {
        let digest: Digest = spec.package.parse().map_err(|_| Error::Internal)?;
        let name = AgentName::new(&atlas_package::skill_agent_name(digest))?;
        let version: Version = spec.version.parse().map_err(|_| Error::Internal)?;
        let state = self.state(Consistency::Stale).await?;
        if state.agent(&caller.namespace, &name, version).is_some_and(|known| !known.retired) {
            return Ok((name, version));
        }
        let package = self.artifact(digest).await?;
        let made = self.shared.env.spawn_blocking("make-skill-agent", move || atlas_package::skill_agent(&package));
        let made = made.join().await.map_err(|_| Error::Internal)?;
        let made = made.map_err(|error| Error::PackageRefused(chain(&error)))?;
        let registered = self.register_made(&caller.clone().with_request_id(None), made.bytes.into()).await?;
        Ok((registered.name, registered.version))
    }
}

/// The error for a call of a skill that the agent's contract does not require.
pub(crate) fn undeclared(name: &str) -> String {
    format!("Skill '{name}' not available \u{2014} declare it in requires.skills")
}

/// A skill of a namespace.
pub(crate) fn skill(state: &State, namespace: &Namespace, name: &str) -> Result<Option<SkillSpec>, Error> {
    let Ok(name) = ObjectName::new(name) else { return Ok(None) };
    let key = ObjectKey { namespace: namespace.clone(), kind: ObjectKind::new("skill")?, name };
    Ok(state.object(&key).and_then(|object| SkillSpec::read(&object.spec).ok()))
}

/// The skill for an entry of `requires.skills`, or why there is none.
pub(crate) fn find(
    state: &State,
    namespace: &Namespace,
    required: RequiredSkill<'_>,
) -> Result<Result<SkillSpec, String>, Error> {
    let name = required.name;
    let Some(spec) = skill(state, namespace, name)? else {
        return Ok(Err(format!("Skill '{name}' not found in registry")));
    };
    let version: Version = spec.version.parse().map_err(|_| Error::Internal)?;
    if required.matches(version) {
        return Ok(Ok(spec));
    }
    Ok(Err(format!("Skill '{name}' has version {version}, and '{required}' is required")))
}

/// The entry of `requires.skills` for a skill.
pub(crate) fn required_by<'c>(contract: &'c KnownContract, name: &str) -> Option<RequiredSkill<'c>> {
    let entries = contract.value.pointer("/requires/skills").and_then(Value::as_array)?;
    entries.iter().filter_map(Value::as_str).map(RequiredSkill::of).find(|required| required.name == name)
}

fn fits(spec: &SkillSpec, input: &Value) -> Result<(), String> {
    let schema: Value = serde_json::from_str(&spec.input_schema).unwrap_or_default();
    // Schemas are checked when a skill is deployed.
    let Ok(validator) = Validator::compile(&schema) else { return Ok(()) };
    let violations = validator.validate(input).err().unwrap_or_default();
    // The best match is the one that is the least deep.
    let depth = |pointer: &str| pointer.split('/').filter(|part| !part.is_empty()).count();
    let best = violations.into_iter().min_by_key(|violation| depth(&violation.pointer));
    best.map_or(Ok(()), |violation| Err(violation.message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_violation_nearest_to_the_root_is_told() {
        let schema = json!({
            "type": "object", "required": ["text"],
            "properties": { "deep": { "type": "object", "properties": { "n": { "type": "integer" } } } }
        });
        let spec = SkillSpec {
            version: "1.0.0".to_owned(),
            description: String::new(),
            input_schema: schema.to_string(),
            output_schema: "{}".to_owned(),
            runtime: atlas_objects::SkillProgram::Python,
            package: String::new(),
            package_bytes: 0,
        };
        let told = fits(&spec, &json!({ "deep": { "n": "x" } })).expect_err("unfit");
        assert_eq!(told, "'text' is a required property");
        assert_eq!(fits(&spec, &json!({ "text": "x" })), Ok(()));
    }
}
