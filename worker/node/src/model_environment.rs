//! Models that are chosen and reached by variables of the worker's environment (compatibility §21, §26).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use atlas_http::Secret;
use atlas_llm::anthropic::Anthropic;
use atlas_llm::openai::Chat;
use atlas_llm::{Endpoint, Protocol};
use atlas_types::SecretText;
use serde::{Deserialize, Serialize};

/// The variables that count.
const NAMES: [&str; 20] = [
    "ATLAS_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "ATLAS_MODEL_FAST",
    "ATLAS_MODEL_BALANCED",
    "ATLAS_MODEL_POWERFUL",
    "ATLAS_OPENAI_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ATLAS_OPENAI_MODEL_FAST",
    "ATLAS_OPENAI_MODEL_BALANCED",
    "ATLAS_OPENAI_MODEL_POWERFUL",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "all_proxy",
    "no_proxy",
];

const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// A provider that the environment can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Chosen {
    Anthropic,
    Openai,
}

/// Variables of the worker's environment that choose and reach models. Their values are not printed.
#[derive(Clone, Default)]
pub struct ModelEnvironment(Arc<BTreeMap<String, SecretText>>);

impl fmt::Debug for ModelEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl ModelEnvironment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        Self::new(NAMES.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?))))
    }

    /// These variables. Empty values count as absent.
    pub fn new<'n>(variables: impl IntoIterator<Item = (&'n str, String)>) -> Self {
        let set = variables.into_iter().filter(|(_, value)| !value.is_empty());
        Self(Arc::new(set.map(|(name, value)| (name.to_owned(), SecretText::new(value))).collect()))
    }

    /// The keys of providers, by the names of their variables.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&str, &SecretText)> {
        let all = self.0.iter().map(|(name, value)| (name.as_str(), value));
        all.filter(|(name, _)| name.ends_with("_API_KEY"))
    }

    /// The value of a variable, if it is set and counts.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|value| value.expose().to_owned())
    }

    /// The setting of a proxy, for requests to models and MCP servers.
    pub(crate) fn proxy(&self, name: &str) -> Option<String> {
        self.get(name).filter(|_| name.to_ascii_lowercase().ends_with("_proxy"))
    }

    /// The value of a variable that the spec of a model refers to. Variables of the worker itself, such as the token with which it joined,
    /// are not given to models.
    pub(crate) fn of_models(&self, name: &str) -> Option<SecretText> {
        const OWN: &str = "ATLAS_";
        let is_allowed = !name.starts_with(OWN)
            || name.starts_with("ATLAS_SECRET_")
            || matches!(name, "ATLAS_API_KEY" | "ATLAS_OPENAI_API_KEY");
        if !is_allowed {
            return None;
        }
        self.0.get(name).cloned().or_else(|| std::env::var(name).ok().map(SecretText::new))
    }

    /// The provider that has a key; with two keys the first one.
    pub(crate) fn chosen(&self) -> Option<Chosen> {
        [Chosen::Anthropic, Chosen::Openai].into_iter().find(|chosen| self.reach(*chosen).is_some())
    }

    /// How a provider is reached. None without a key.
    pub(crate) fn reach(&self, chosen: Chosen) -> Option<(Arc<dyn Protocol>, Endpoint)> {
        match chosen {
            Chosen::Anthropic => {
                let (protocol, endpoint) = Anthropic::from_environment(|name| self.get(name))?;
                Some((Arc::new(protocol), endpoint))
            }
            Chosen::Openai => {
                let key = self.get("ATLAS_OPENAI_API_KEY").or_else(|| self.get("OPENAI_API_KEY"))?;
                let base_url = self.get("OPENAI_BASE_URL").unwrap_or_else(|| OPENAI_BASE_URL.to_owned());
                Some((Arc::new(Chat::openai(Secret::from(key))), Endpoint { base_url, headers: Vec::new() }))
            }
        }
    }

    /// The model of a tier; an unknown tier counts as balanced.
    pub(crate) fn model(&self, chosen: Chosen, preference: &str) -> String {
        let tier = match preference {
            "fast" => "FAST",
            "powerful" => "POWERFUL",
            _ => "BALANCED",
        };
        let (prefix, default) = match (chosen, tier) {
            (Chosen::Anthropic, "FAST") => ("ATLAS_MODEL_", "claude-haiku-4-5-20251001"),
            (Chosen::Anthropic, _) => ("ATLAS_MODEL_", "claude-sonnet-4-20250514"),
            (Chosen::Openai, "POWERFUL") => ("ATLAS_OPENAI_MODEL_", "gpt-4o"),
            (Chosen::Openai, _) => ("ATLAS_OPENAI_MODEL_", "gpt-4o-mini"),
        };
        self.get(&format!("{prefix}{tier}")).unwrap_or_else(|| default.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> ModelEnvironment {
        ModelEnvironment::new(variables.iter().map(|(name, value)| (*name, (*value).to_owned())))
    }

    #[test]
    fn keys_choose_the_provider() {
        assert_eq!(environment(&[("ANTHROPIC_API_KEY", "")]).chosen(), None);
        assert_eq!(environment(&[("OPENAI_API_KEY", "k")]).chosen(), Some(Chosen::Openai));
        let both = environment(&[("OPENAI_API_KEY", "k"), ("ATLAS_API_KEY", "k")]);
        assert_eq!(both.chosen(), Some(Chosen::Anthropic));
        let local = environment(&[("ATLAS_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")]);
        let (_, endpoint) = local.reach(Chosen::Anthropic).expect("a key");
        assert_eq!(endpoint.base_url, "http://127.0.0.1:1");
    }

    #[test]
    fn tiers_have_models() {
        let set = environment(&[("ATLAS_MODEL_FAST", "m"), ("ATLAS_OPENAI_MODEL_POWERFUL", "p")]);
        let models = |chosen| ["fast", "balanced", "powerful", "x"].map(|tier| set.model(chosen, tier)).join(" ");
        let sonnet = "claude-sonnet-4-20250514";
        assert_eq!(models(Chosen::Anthropic), format!("m {sonnet} {sonnet} {sonnet}"));
        assert_eq!(models(Chosen::Openai), "gpt-4o-mini gpt-4o-mini p gpt-4o-mini");
    }

    #[test]
    fn variables_of_the_worker_are_not_for_models() {
        let set = environment(&[("ATLAS_API_KEY", "k"), ("ATLAS_MODEL_FAST", "m"), ("HTTPS_PROXY", "http://p")]);
        assert!(set.of_models("ATLAS_API_KEY").is_some_and(|key| key.expose() == "k"));
        assert!(set.of_models("ATLAS_MODEL_FAST").is_none() && set.of_models("PATH").is_some());
        assert_eq!((set.proxy("HTTPS_PROXY").as_deref(), set.proxy("ATLAS_API_KEY")), (Some("http://p"), None));
    }

    #[test]
    fn values_are_not_printed() {
        assert_eq!(format!("{:?}", environment(&[("ATLAS_API_KEY", "canary")])), r#"{"ATLAS_API_KEY"}"#);
    }
}
