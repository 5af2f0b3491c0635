//! What a job is fixed to: the first step of its journal. Later attempts use it as it is recorded, also on a worker with
//! other keys or another contract of the same version.

use std::collections::BTreeMap;

use atlas_contract::{Contract, ToolPermission};
use atlas_graph_run::Embedder;
use atlas_model::{CallError, CallErrorKind, Capability, Day, NanoDollars, PriceList, Prices, Purpose};
use atlas_turn::record::LEVEL;
use atlas_turn::{AtLimit, Format, Limits, Sampling, Settings, ToolAction, ToolRule};
use atlas_types::{Attachments, Namespace};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::fault::Fault;
use super::stored::{self, StoredModel};
use super::tools::Sources;
use crate::agent::Agent;
use crate::model_environment::Chosen;
use crate::provider::Shared;

/// How often an answer that does not match the schema is returned to the model, if the contract does not say.
const REPAIRS_DEFAULT: u32 = 2;

/// The record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct Fixed {
    pub(in crate::provider) level: u32,
    pub(in crate::provider) source: Source,
    pub(in crate::provider) settings: Settings,
    /// What answers the tool calls in the settings.
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub(in crate::provider) tools: Sources,
    /// The model that summarises the outputs of helpers; none is the own one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::provider) summarizer: Option<Box<Self>>,
    /// The prompt of an agent with a `config.yaml`, with what its documents say about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::provider) prompt: Option<String>,
    /// The instructions that an agent has computed, as a conversation keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::provider) instructions: Option<String>,
    /// The models that search documents, by their names in the contract.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::provider) searches: BTreeMap<String, Self>,
}

/// Where the model is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::provider) enum Source {
    /// Models of the namespace: the one of the agent's tier, then its fallbacks.
    Stored(Vec<StoredModel>),
    /// The agent's `mock.yaml`.
    Mock,
    /// A provider whose key is in the worker's environment.
    Environment(Chosen),
}

/// What an agent asks for.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    Tier(&'a str),
    Named(&'a str),
}

impl<'a> Wanted<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::Tier(name) | Self::Named(name) => name,
        }
    }
}

/// Answers of a script cost nothing.
const FREE: Prices = Prices { input: NanoDollars(0), output: NanoDollars(0), cache_read: None, cache_write: None };

#[derive(Deserialize)]
struct Leveled {
    level: u32,
}

impl Fixed {
    /// What a new job of an agent is fixed to. Models of the namespace count first, then the environment of the worker, then the
    /// agent's `mock.yaml`.
    pub(in crate::provider) fn of(agent: &Agent, attachments: &Attachments, shared: &Shared) -> Result<Self, Fault> {
        let model = &agent.contract.model;
        let wanted = model.name.as_deref().map_or(Wanted::Tier(&model.preference), Wanted::Named);
        Self::resolved(agent, wanted, stored::for_name(attachments.models(), wanted.name(), true)?, shared)
    }

    /// The same for another model or tier that the contract names.
    pub(in crate::provider) fn of_other(
        agent: &Agent,
        name: &str,
        attachments: &Attachments,
        shared: &Shared,
    ) -> Result<Self, Fault> {
        let wanted = if atlas_package::TIERS.contains(&name) { Wanted::Tier(name) } else { Wanted::Named(name) };
        Self::resolved(agent, wanted, stored::for_name(attachments.models(), name, false)?, shared)
    }

    /// The same for a model that searches documents. Vectors of different models do not fit together, so a model that makes them has no
    /// fallbacks.
    pub(in crate::provider) fn of_search(
        agent: &Agent,
        (name, purpose): (&str, Purpose),
        attachments: &Attachments,
        shared: &Shared,
    ) -> Result<Self, Fault> {
        let mut stored = stored::for_name(attachments.models(), name, false)?;
        let Some(first) = stored.first() else {
            return Err(Fault::NoModel(format!(
                "there is no model \"{name}\"; add it: atlasctl model add. An agent.yaml beside the definition names it in model.others"
            )));
        };
        has_purpose(name, first, purpose)?;
        if purpose == Purpose::Embedding {
            stored.truncate(1);
        }
        Self::resolved(agent, Wanted::Named(name), stored, shared)
    }

    /// The same for the own model of an agent that serves document bases, which its input names.
    pub(in crate::provider) fn of_documents(
        agent: &Agent,
        (name, purpose): (&str, Purpose),
        attachments: &Attachments,
        shared: &Shared,
    ) -> Result<Self, Fault> {
        let own = agent.contract.model.name.as_deref().unwrap_or_default();
        let mut stored = stored::for_name(attachments.models(), own, true)?;
        stored.truncate(1);
        let Some(first) = stored.first() else {
            return Err(Fault::NoModel(format!(
                "the namespace has no model \"{name}\"; add it: atlasctl model add {name}"
            )));
        };
        has_purpose(name, first, purpose)?;
        let one = Self::resolved(agent, Wanted::Named(name), stored, shared)?;
        Ok(Self { searches: BTreeMap::from([(atlas_package::model_name(name), one.clone())]), ..one })
    }

    /// The same for a job of one call, whose input names the model. Vectors of different models do not fit together, so a model that makes them
    /// has no fallbacks.
    pub(in crate::provider) fn of_direct(
        agent: &Agent,
        (name, purpose): (&str, Purpose),
        attachments: &Attachments,
        shared: &Shared,
    ) -> Result<Self, Fault> {
        let own = agent.contract.model.name.as_deref().unwrap_or_default();
        let mut stored = stored::for_name(attachments.models(), own, true)?;
        let Some(first) = stored.first() else {
            return Err(Fault::NoModel(format!(
                "the namespace has no model \"{name}\"; add it: atlasctl model add {name}"
            )));
        };
        has_purpose(name, first, purpose)?;
        // Fallbacks of another type cannot answer.
        stored.retain(|model| model.spec.purpose == purpose);
        if purpose != Purpose::Chat {
            stored.truncate(1);
        }
        Self::resolved(agent, Wanted::Named(name), stored, shared)
    }

    /// What is known of the vectors of a model that makes them.
    pub(in crate::provider) fn embedder(&self, namespace: &Namespace) -> Result<Embedder, CallError> {
        let Source::Stored(stored) = &self.source else { return Err(not_stored()) };
        let Some(StoredModel { spec, .. }) = stored.first() else { return Err(not_stored()) };
        let length = spec.parameters.get("dimensions").map(String::as_str).unwrap_or_default();
        let server = spec.parameters.get("server").map(String::as_str).unwrap_or_default();
        let url = spec.base_url.as_deref().unwrap_or_default();
        let id = json!([namespace.as_str(), spec.provider.as_str(), server, url, spec.name, length]).to_string();
        let texts_max = atlas_llm::embedding::texts_max(spec);
        Ok(Embedder { id, tokens_max: spec.context_window, texts_max })
    }

    fn resolved(agent: &Agent, wanted: Wanted<'_>, stored: Vec<StoredModel>, shared: &Shared) -> Result<Self, Fault> {
        let contract = &agent.contract;
        let models = &shared.settings.models;
        let today = Day::of(u64::try_from(shared.env.clock.wall().0 / 1_000_000).unwrap_or(0));
        let asked = settings(contract);
        if let Some(first) = stored.first() {
            let mut prices = stored::prices(&stored, today).into_iter();
            let settings = Settings {
                model: first.spec.name.clone(),
                prices: prices.next().flatten(),
                fallback_prices: prices.collect(),
                stream: contract.provider.llm.stream.unwrap_or(true),
                vision: stored::has(&stored, Capability::Vision),
                json_schema: stored::has(&stored, Capability::JsonSchema),
                ..asked
            };
            return Ok(Self {
                level: LEVEL,
                source: Source::Stored(stored),
                settings,
                tools: Sources::new(),
                summarizer: None,
                prompt: None,
                instructions: None,
                searches: BTreeMap::new(),
            });
        }
        let tier = if let Wanted::Tier(tier) = wanted { Some(tier) } else { None };
        let (source, model, prices) = match models.chosen().zip(tier) {
            Some((chosen, preference)) => {
                let model = models.model(chosen, preference);
                let prices = PriceList::embedded().prices(&model, today);
                (Source::Environment(chosen), model, prices)
            }
            None if agent.mock.is_some() => (Source::Mock, atlas_llm::scripted::MODEL.to_owned(), Some(FREE)),
            None if let Wanted::Named(name) = wanted => {
                let (what, add) =
                    if name.starts_with('{') { ("of the name in the input", "NAME") } else { (name, name) };
                return Err(Fault::NoModel(format!(
                    "the namespace has no model {what}; add it: atlasctl model add {add}"
                )));
            }
            None => {
                let preference = wanted.name();
                return Err(Fault::NoModel(format!(
                    "there is no model for the tier \"{preference}\": the namespace has no model for it (atlasctl model add), the environment \
                     of the worker has neither ATLAS_API_KEY, ANTHROPIC_API_KEY, ATLAS_OPENAI_API_KEY nor OPENAI_API_KEY, and the agent \
                     has no mock.yaml"
                )));
            }
        };
        let settings = Settings {
            prices,
            model,
            // A mock shows how answers form; providers are asked as Atlas for Python asks them.
            stream: contract.provider.llm.stream.unwrap_or(source == Source::Mock),
            ..asked
        };
        Ok(Self {
            level: LEVEL,
            source,
            settings,
            tools: Sources::new(),
            summarizer: None,
            prompt: None,
            instructions: None,
            searches: BTreeMap::new(),
        })
    }

    /// Reads a record.
    pub(in crate::provider) fn read(json: &[u8]) -> Result<Self, Fault> {
        let unreadable = |error: serde_json::Error| Fault::internal(format!("step 0 is not readable: {error}"));
        let Leveled { level: recorded } = serde_json::from_slice(json).map_err(unreadable)?;
        if recorded != LEVEL {
            return Err(Fault::Level { recorded, ours: LEVEL });
        }
        serde_json::from_slice(json).map_err(unreadable)
    }
}

/// Refuses a model that is for other work.
fn has_purpose(name: &str, model: &StoredModel, purpose: Purpose) -> Result<(), Fault> {
    if model.spec.purpose == purpose {
        return Ok(());
    }
    let word = match purpose {
        Purpose::Chat => "chat",
        Purpose::Embedding => "embedding",
        Purpose::Reranker => "reranker",
    };
    Err(Fault::NoModel(format!("the model \"{name}\" is for other work; its type must be {word}")))
}

fn not_stored() -> CallError {
    CallError::new(CallErrorKind::UnknownModel, "it is no model of the namespace")
}

/// The settings that a contract asks for.
fn settings(contract: &Contract) -> Settings {
    let (provider, llm) = (&contract.provider, &contract.provider.llm);
    let defaults = Limits::default();
    let system = if provider.system_prompt.is_empty() { &provider.focus } else { &provider.system_prompt };
    Settings {
        system: system.clone(),
        sampling: Sampling {
            max_tokens: llm.max_tokens.or(Sampling::default().max_tokens),
            temperature: llm.temperature,
            top_p: llm.top_p,
            top_k: llm.top_k,
            stop: llm.stop.clone().unwrap_or_default(),
            reasoning_effort: llm.reasoning_effort.clone(),
            ..Sampling::default()
        },
        format: format(contract),
        limits: Limits {
            requests: u32::try_from(provider.max_iterations).unwrap_or(u32::MAX),
            at_limit: if llm.partial_at_limit == Some(true) { AtLimit::Partial } else { AtLimit::Error },
            repeats: llm.loop_repeat_threshold.unwrap_or(defaults.repeats),
            parallel: llm.parallel_tools.map_or(defaults.parallel, |most| most as usize),
            ..defaults
        },
        permissions: permissions(contract),
        // The providers of the environment have no declarations; they refuse what a model does not accept.
        vision: true,
        utf8: true,
        judged: true,
        ..Settings::default()
    }
}

/// The rules of a contract about tool calls.
pub(in crate::provider) fn permissions(contract: &Contract) -> Vec<ToolRule> {
    contract.provider.llm.tool_permissions.iter().filter_map(permission).collect()
}

fn permission(rule: &ToolPermission) -> Option<ToolRule> {
    Some(ToolRule { tool: rule.tool.clone(), action: ToolAction::of(&rule.action)? })
}

fn format(contract: &Contract) -> Format {
    let llm = &contract.provider.llm;
    if contract.provider.output_format == "text" {
        return Format::Text;
    }
    // Without a schema, everything matches.
    if llm.enforce_schema != Some(true) || contract.output_schema == json!({"type": "object"}) {
        return Format::Json;
    }
    let (name, schema) = ("output".to_owned(), contract.output_schema.clone());
    Format::Schema { name, schema, repairs: llm.repair_rounds.unwrap_or(REPAIRS_DEFAULT) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn of(provider: &str) -> Settings {
        let text = format!(
            "agent: {{name: a, version: 1.0.0, output: {{schema: {{required: [x]}}}}, provider: {{type: llm, {provider}}}}}"
        );
        settings(&atlas_contract::parse(text.as_bytes()).expect("a contract"))
    }

    #[test]
    fn a_plain_contract_asks_as_atlas_for_python_does() {
        let settings = of("system_prompt: '', focus: Be brief.");
        let python =
            Settings { system: "Be brief.".to_owned(), vision: true, utf8: true, judged: true, ..Settings::default() };
        assert_eq!(settings, python);
    }

    #[test]
    fn extensions_are_passed_on() {
        let settings =
            of("system_prompt: s, focus: f, max_iterations: 9, max_tokens: 10, temperature: 0.5, stop: [x], \
             enforce_schema: yes, loop_repeat_threshold: 3, partial_at_limit: yes, parallel_tools: 4");
        expect![[r#"{"name":"output","schema":{"required":["x"]},"repairs":2}"#]]
            .assert_eq(&json!(settings.format)["schema"].to_string());
        expect![[r#"{"requests":9,"at_limit":"partial","repeats":3,"calls":128,"parallel":4,"result_bytes":65536,"budget":null}"#]]
            .assert_eq(&json!(settings.limits).to_string());
        assert_eq!((settings.system.as_str(), settings.sampling.max_tokens), ("s", Some(10)));
        assert_eq!(of("output_format: text, enforce_schema: yes").format, Format::Text);
    }

    #[test]
    fn other_levels_are_refused() {
        let (source, tools) = (Source::Environment(Chosen::Openai), Sources::new());
        let settings = Settings::default();
        let (summarizer, prompt, instructions, searches) = (None, None, None, BTreeMap::new());
        let fixed = Fixed { level: LEVEL, source, settings, tools, summarizer, prompt, instructions, searches };
        assert_eq!(Fixed::read(&serde_json::to_vec(&fixed).expect("JSON")).expect("ours"), fixed);
        let newer = Fixed::read(br#"{"level": 2, "new": []}"#).expect_err("newer");
        assert_eq!(newer.to_string(), "the job began with level 2 of the agent loop, and this worker has level 1");
        assert!(Fixed::read(b"{").is_err() && Fixed::read(br#"{"level": 1}"#).is_err());
    }
}
