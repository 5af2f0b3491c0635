//! Families of models that take other settings than most: what their providers' pages say, as data. Models that are not here get
//! the usual request; a patch of the model changes it.

/// Whether a model takes `temperature` and `top_p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    Always,
    /// While it does not reason: without an effort, or with the effort `none`.
    WithoutReasoning,
    /// Any value but the provider's own is refused.
    Never,
}

/// What the models of a family take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    /// Its name. A model belongs to it if its own name is the same, or goes on with `-` or `.`.
    name: &'static str,
    pub(super) sampling: Sampling,
    pub(super) stop: bool,
}

const fn family(name: &'static str, sampling: Sampling, stop: bool) -> Family {
    Family { name, sampling, stop }
}

/// OpenAI's models that reason. All of them want `max_completion_tokens`. The first family that a model belongs to counts.
const REASONING: [Family; 9] = [
    family("o1", Sampling::Never, true),
    family("o3", Sampling::Never, false),
    family("o4", Sampling::Never, false),
    family("gpt-5-chat", Sampling::Always, true),
    family("gpt-5.1-codex", Sampling::Never, false),
    family("gpt-5.2-codex", Sampling::Never, false),
    family("gpt-5.1", Sampling::WithoutReasoning, false),
    family("gpt-5.2", Sampling::WithoutReasoning, false),
    family("gpt-5", Sampling::Never, false),
];

/// Families of Mistral: their servers take ids of calls with nine letters and digits alone.
const MISTRAL: [&str; 10] = [
    "mistral",
    "ministral",
    "magistral",
    "codestral",
    "devstral",
    "pixtral",
    "mixtral",
    "voxtral",
    "open-mistral",
    "open-mixtral",
];

/// The family of a model that reasons. Fine-tuned models are named after the model that they come from.
pub(super) fn reasoning(model: &str) -> Option<&'static Family> {
    let model = model.strip_prefix("ft:").unwrap_or(model);
    REASONING.iter().find(|family| belongs(model, family.name))
}

/// Whether a model is one of Mistral's, also under the name of its owner (`mistralai/…`).
pub(super) fn is_mistral(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    MISTRAL.iter().any(|name| belongs(&model, name))
}

fn belongs(model: &str, family: &str) -> bool {
    model.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.', ':']))
}

impl Family {
    /// The settings of a request that the family refuses.
    pub(super) fn refuses(&self, effort: Option<&str>) -> Refused {
        let sampling = match self.sampling {
            Sampling::Always => false,
            Sampling::WithoutReasoning => effort.is_some_and(|effort| effort != "none"),
            Sampling::Never => true,
        };
        Refused { sampling, stop: !self.stop }
    }
}

/// Settings that are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Refused {
    /// `temperature` and `top_p`.
    pub(super) sampling: bool,
    pub(super) stop: bool,
}

/// What a model refuses; nothing if it is of no known family.
pub(super) fn refused(model: &str, effort: Option<&str>) -> Refused {
    reasoning(model).map(|family| family.refuses(effort)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_their_families() {
        let name = |model: &str| reasoning(model).map(|family| family.name);
        for (model, family) in [
            ("o1", Some("o1")),
            ("o1-2024-12-17", Some("o1")),
            ("o3-mini", Some("o3")),
            ("o4-mini-2025-04-16", Some("o4")),
            ("ft:o4-mini-2025-04-16:acme::id", Some("o4")),
            ("gpt-5", Some("gpt-5")),
            ("gpt-5-mini", Some("gpt-5")),
            ("gpt-5.3-pro", Some("gpt-5")),
            ("gpt-5.1-codex-max", Some("gpt-5.1-codex")),
            ("gpt-5.2-2025-12-11", Some("gpt-5.2")),
            ("gpt-5-chat-latest", Some("gpt-5-chat")),
            ("gpt-4o", None),
            ("gpt-50", None),
            ("o10", None),
            ("gpt-oss-120b", None),
            ("olmo", None),
        ] {
            assert_eq!(name(model), family, "{model}");
        }
        assert!(is_mistral("mistral-large-latest") && is_mistral("mistralai/Mixtral-8x7B") && is_mistral("codestral"));
        assert!(!is_mistral("gpt-4o") && !is_mistral("mistralx"));
    }
}
