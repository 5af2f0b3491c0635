//! The arguments of the tools. Unknown members are refused: a model that misspells one gets told.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// Most characters of a search text.
const TEXT_MAX: usize = 500;

/// `agents_search`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    #[serde(default)]
    pub(crate) query: String,
    #[serde(default = "twenty")]
    pub(crate) limit: usize,
    #[serde(default)]
    pub(crate) offset: usize,
}

fn twenty() -> usize {
    20
}

/// `agent_describe`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Describe {
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) version: Option<String>,
}

/// `agent_run`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) version: Option<String>,
    #[serde(default)]
    pub(crate) input: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) wait_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) idempotency_key: Option<String>,
    #[serde(default)]
    pub(crate) questions: Option<String>,
}

/// `docs_search`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocsSearch {
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}

/// `search_documents`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchDocuments {
    pub(crate) base: String,
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) top_k: Option<u64>,
    #[serde(default)]
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) metadata: JsonObject,
}

/// `job_answer`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    pub(crate) job_id: String,
    #[serde(default)]
    pub(crate) question_id: Option<String>,
    pub(crate) answer: Value,
}

/// `job_get` and `job_cancel`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    pub(crate) job_id: String,
}

/// `job_wait`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    pub(crate) job_id: String,
    #[serde(default)]
    pub(crate) wait_seconds: Option<f64>,
}

/// `chain_run`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChainRun {
    #[serde(default)]
    pub(crate) chain: Option<String>,
    #[serde(default)]
    pub(crate) input: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) wait_seconds: Option<f64>,
}

/// Reads the arguments of a call. The error is a sentence for the model.
pub(crate) fn read<T: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<T, String> {
    let text = Value::Object(arguments.unwrap_or_default()).to_string();
    serde_json::from_str(&text).map_err(|error| format!("the arguments do not fit the tool's schema: {error}"))
}

impl Search {
    /// The search text, within its limit.
    pub(crate) fn text(&self) -> Result<Option<String>, String> {
        let text = within(&self.query)?.trim();
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }
}

/// A search text that is not too long.
pub(crate) fn within(query: &str) -> Result<&str, String> {
    match query.chars().count() > TEXT_MAX {
        true => Err(format!("'query' is longer than {TEXT_MAX} characters")),
        false => Ok(query),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal<T: DeserializeOwned + std::fmt::Debug>(arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        read::<T>(Some(arguments)).expect_err("refused")
    }

    #[test]
    fn what_a_model_gets_wrong_is_told() {
        assert!(refusal::<Describe>(json!({})).contains("missing field `agent`"));
        assert!(refusal::<Run>(json!({"agent": "echo", "inputs": {}})).contains("unknown field `inputs`"));
        assert!(refusal::<Search>(json!({"limit": -1})).contains("invalid value"));
        let long = Search { query: "x".repeat(501), limit: 1, offset: 0 };
        assert!(long.text().expect_err("refused").contains("500 characters"));
    }

    #[test]
    fn a_call_without_arguments_has_none() {
        let search: Search = read(None).expect("defaults");
        assert_eq!((search.limit, search.offset, search.text()), (20, 0, Ok(None)));
    }
}
