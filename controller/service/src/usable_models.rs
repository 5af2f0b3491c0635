//! What a caller may name as a model at OpenAI's interface: models of the namespace, agents that take messages, and stored chains
//! ([ADR 89](../../../docs/adr/0089-openai-door.md)). What a policy keeps from the caller is not among them.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use atlas_conversations::Mapping;
use atlas_identity::is_named_so;
use atlas_model::{CALL_CONTRACT, ModelSpec, Purpose};
use atlas_registry::{Operation, PolicyOperation, find_version};
use atlas_state::State;
use atlas_types::{AgentKind, AgentName, Namespace, Object, ObjectKey, ObjectKind, ObjectName, Timestamp};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::runs::is_made;
use crate::{AgentQuery, Caller, Consistency, Error, Service, ShownAgent, Versions};

/// What begins a long name, and says what it is of.
const MODEL: &str = "model/";
const AGENT: &str = "agent/";
const CHAIN: &str = "chain/";
/// Longest name that is looked up, in bytes.
const NAME_BYTES_MAX: usize = 600;

/// The contract of the agent that calls models, for policies.
static CALL: LazyLock<Value> = LazyLock::new(|| {
    atlas_contract::parse(CALL_CONTRACT.as_bytes()).map_or(Value::Null, |contract| contract.to_json())
});

/// Something that may be named as a model.
#[derive(Debug, Clone)]
pub struct UsableModel {
    /// The shortest name by which it is found.
    pub id: String,
    /// Since when it is there.
    pub created: Timestamp,
    /// What it is.
    pub form: UsableForm,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum UsableForm {
    /// A model of the namespace.
    Model {
        /// The name of its object.
        name: String,
        /// What it is.
        spec: Box<ModelSpec>,
    },
    /// An agent, or a chain that is called like one.
    Agent {
        /// The version, and its contract.
        agent: Box<ShownAgent>,
        /// The requirement on the version that the name has.
        version: Option<String>,
        /// How messages become its input. The error says why it takes none.
        mapping: Result<Mapping, String>,
    },
    /// A stored chain in a list; it becomes an agent when it is called.
    Chain,
}

/// A name, as a request has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Named<'a> {
    /// What it must be of; none for the first that has the name.
    form: Option<&'static str>,
    name: &'a str,
    version: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// The readings of a text, in the order in which they are tried: names of models may have an `@`.
    fn read(text: &'a str) -> Vec<Self> {
        let forms = [MODEL, AGENT, CHAIN];
        let form = forms.into_iter().find(|form| text.starts_with(form));
        let name = form.map_or(text, |form| &text[form.len()..]);
        let whole = Named { form, name, version: None };
        let split = name.rsplit_once('@').filter(|(name, version)| !name.is_empty() && !version.is_empty());
        let versioned = split.map(|(name, version)| Named { name, version: Some(version), ..whole });
        [Some(whole), versioned].into_iter().flatten().collect()
    }

    fn may_be(&self, form: &'static str) -> bool {
        self.form.is_none_or(|wanted| wanted == form) && (self.version.is_none() || form == AGENT)
    }
}

impl Service {
    /// All that the caller may name, models first, by name.
    pub async fn usable_models(&self, caller: &Caller) -> Result<Vec<UsableModel>, Error> {
        let state = self.state(Consistency::Linearizable).await?;
        let mut all = Vec::new();
        let mut taken = BTreeSet::new();
        for object in state.objects(&caller.namespace, &ObjectKind::new("model")?, None) {
            if let Some(model) = self.usable_model_object(caller, &state, object).await? {
                taken.insert(model.id.clone());
                all.push(model);
            }
        }
        let query = AgentQuery { versions: Versions::Latest, ..AgentQuery::default() };
        for agent in self.agents(caller, &query, Consistency::Stale).await? {
            let mapping = Mapping::of(&agent.contract.value);
            let is_made = is_made(&agent.agent);
            let is_shown = agent.agent.kind == AgentKind::Agent && !is_named_so(&agent.agent.name) && mapping.is_ok();
            if is_made || !is_shown || !self.may_use(caller, &state, &agent.contract.value, None).await? {
                continue;
            }
            let name = agent.agent.name.as_str();
            let id = if taken.insert(name.to_owned()) { name.to_owned() } else { format!("{AGENT}{name}") };
            let created = agent.agent.registered_at;
            let form = UsableForm::Agent { agent: Box::new(agent), version: None, mapping };
            all.push(UsableModel { id, created, form });
        }
        for object in state.objects(&caller.namespace, &ObjectKind::new("chain")?, None) {
            let name = object.key.name.as_str();
            let is_free = AgentName::new(name)
                .is_ok_and(|name| state.agent_latest(&caller.namespace, &name).is_none_or(|agent| is_made(agent)));
            // An agent of this name would be called instead of it.
            if is_free {
                let id = if taken.insert(name.to_owned()) { name.to_owned() } else { format!("{CHAIN}{name}") };
                all.push(UsableModel { id, created: object.created, form: UsableForm::Chain });
            }
        }
        Ok(all)
    }

    /// What a name stands for; none if there is nothing that the caller may use.
    pub async fn usable_model(&self, caller: &Caller, text: &str) -> Result<Option<UsableModel>, Error> {
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Ok(None);
        }
        let state = self.state(Consistency::Linearizable).await?;
        for named in Named::read(text) {
            let object = model_object(&state, &caller.namespace, named.name).filter(|_| named.may_be(MODEL));
            if let Some(object) = object {
                return self.usable_model_object(caller, &state, object).await;
            }
            if let Some(model) = self.usable_agent(caller, &state, named).await? {
                return Ok(Some(UsableModel { id: text.to_owned(), ..model }));
            }
        }
        Ok(None)
    }

    async fn usable_model_object(
        &self,
        caller: &Caller,
        state: &State,
        object: &Arc<Object>,
    ) -> Result<Option<UsableModel>, Error> {
        let name = object.key.name.as_str();
        let Ok(spec) = ModelSpec::read(&object.spec) else { return Ok(None) };
        // Scores have no form there.
        if spec.purpose == Purpose::Reranker {
            return Ok(None);
        }
        let input = Bytes::from(json!({ "model": name }).to_string());
        if !self.may_use(caller, state, &CALL, Some(&input)).await? {
            return Ok(None);
        }
        let form = UsableForm::Model { name: name.to_owned(), spec: Box::new(spec) };
        Ok(Some(UsableModel { id: name.to_owned(), created: object.created, form }))
    }

    async fn usable_agent(
        &self,
        caller: &Caller,
        state: &State,
        named: Named<'_>,
    ) -> Result<Option<UsableModel>, Error> {
        let Named { name, version, .. } = named;
        let Ok(agent_name) = AgentName::new(name) else { return Ok(None) };
        if is_named_so(&agent_name) {
            return Ok(None);
        }
        let newer = match named.may_be(CHAIN) {
            true => self.with_chain(caller, state, &agent_name, version).await?,
            false => None,
        };
        let state = newer.as_ref().unwrap_or(state);
        let found = match find_version(state, caller, &agent_name, version) {
            // A name with an `@` that is no requirement.
            Err(Error::Malformed(_)) => return Ok(None),
            found => found?,
        };
        let fits = |made: bool| named.may_be(if made { CHAIN } else { AGENT });
        let Some(agent) = found.filter(|agent| agent.kind == AgentKind::Agent && fits(is_made(agent))) else {
            return Ok(None);
        };
        let contract = self.shared.registry.contract(&agent).await?;
        if !self.may_use(caller, state, &contract.value, None).await? {
            return Ok(None);
        }
        let (created, mapping) = (agent.registered_at, Mapping::of(&contract.value));
        let (agent, version) = (Box::new(ShownAgent { agent, contract }), version.map(str::to_owned));
        Ok(Some(UsableModel { id: name.to_owned(), created, form: UsableForm::Agent { agent, version, mapping } }))
    }

    /// Whether no policy keeps the caller from jobs of a contract. Rules that look at more of the input decide once there is one.
    async fn may_use(
        &self,
        caller: &Caller,
        state: &State,
        contract: &Value,
        input: Option<&Bytes>,
    ) -> Result<bool, Error> {
        let operation = Operation { kind: PolicyOperation::Submit, caller, contract, input, priority: 0 };
        self.shared.registry.would_allow(state, &operation).await
    }
}

/// A model of a namespace.
fn model_object<'s>(state: &'s State, namespace: &Namespace, name: &str) -> Option<&'s Arc<Object>> {
    let (kind, name) = (ObjectKind::new("model").ok()?, ObjectName::new(name).ok()?);
    state.object(&ObjectKey { namespace: namespace.clone(), kind, name })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let shown = Named::read(text).into_iter().map(|named| {
            let Named { form, name, version } = named;
            format!("{} {name} {}\n", form.unwrap_or("any"), version.unwrap_or("-"))
        });
        expected.assert_eq(&shown.collect::<String>());
    }

    #[test]
    fn names_are_read_in_each_way_that_they_could_be_meant() {
        check("small", &expect![["any small -\n"]]);
        check("agent/a@1.0.0", &expect![["agent/ a@1.0.0 -\nagent/ a 1.0.0\n"]]);
        check("model/x@", &expect![["model/ x@ -\n"]]);
        check("@1", &expect![["any @1 -\n"]]);
        check("meta/llama", &expect![["any meta/llama -\n"]]);
        check("", &expect![["any  -\n"]]);
    }

    #[test]
    fn a_version_is_that_of_an_agent() {
        let [whole, versioned] = Named::read("a@^1")[..] else { panic!("two readings") };
        assert!(whole.may_be(MODEL) && whole.may_be(AGENT) && whole.may_be(CHAIN));
        assert!(!versioned.may_be(MODEL) && versioned.may_be(AGENT) && !versioned.may_be(CHAIN));
        assert!(CALL["name"] == "model-call");
    }
}
