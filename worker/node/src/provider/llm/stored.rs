//! Models of the namespace, which come with the lease: the model of the agent's tier, then its fallbacks.

use std::sync::Arc;

use atlas_llm::client::Target;
use atlas_llm::connect::{self, ConnectError, Surroundings};
use atlas_llm::local::LocalModels;
use atlas_llm::scripted::Script;
use atlas_model::{Capability, Day, ModelSpec, PriceList, Prices};
use atlas_types::{AttachedModel, SecretText};
use serde::{Deserialize, Serialize};

use super::fault::Fault;
use crate::model_environment::ModelEnvironment;
use crate::provider::login::Logins;
use crate::secrets::Secrets;

/// A model as step 0 records it. Its spec has references to secrets, and no values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct StoredModel {
    /// The name of its object.
    pub(in crate::provider) name: String,
    pub(in crate::provider) spec: ModelSpec,
}

/// The models that came with a lease.
pub(in crate::provider) fn read(attached: &[AttachedModel]) -> Result<Vec<StoredModel>, Fault> {
    let read = |model: &AttachedModel| {
        let spec = ModelSpec::read(&model.spec);
        let spec =
            spec.map_err(|error| Fault::NoModel(format!("the model \"{}\" cannot be read: {error}", model.name)))?;
        Ok(StoredModel { name: model.name.clone(), spec })
    };
    attached.iter().map(read).collect()
}

/// The models for a name in the contract: the first one, then its fallbacks. What came for an agent with one model is for that one.
pub(in crate::provider) fn for_name(
    attached: &[AttachedModel],
    name: &str,
    own: bool,
) -> Result<Vec<StoredModel>, Fault> {
    let all = read(attached)?;
    if own && attached.iter().all(|model| model.asked.is_empty()) {
        return Ok(all);
    }
    let first = attached.iter().find(|model| model.asked.iter().any(|asked| asked == name));
    let (mut waiting, mut chosen): (Vec<String>, Vec<StoredModel>) =
        (first.map(|model| model.name.clone()).into_iter().collect(), Vec::new());
    // Each fallback is followed by its own, and none comes twice.
    while let Some(next) = waiting.pop() {
        let found = all.iter().find(|model| model.name == next);
        let Some(model) = found.filter(|_| chosen.iter().all(|model| model.name != next)) else { continue };
        waiting.extend(model.spec.fallbacks.iter().rev().cloned());
        chosen.push(model.clone());
    }
    Ok(chosen)
}

/// The models that a job was fixed to, reached as their objects say now: a key or an address that was changed meanwhile counts also
/// for jobs that began before. Which models they are does not change.
pub(in crate::provider) fn current(recorded: &[StoredModel], attached: &[StoredModel]) -> Vec<StoredModel> {
    let is = |a: &StoredModel, b: &StoredModel| {
        a.name == b.name && a.spec.provider == b.spec.provider && a.spec.name == b.spec.name
    };
    let current = |model: &StoredModel| attached.iter().find(|other| is(model, other)).unwrap_or(model).clone();
    recorded.iter().map(current).collect()
}

/// What the worker adds to the specs of models.
pub(in crate::provider) struct Around<'a> {
    pub(in crate::provider) secrets: &'a Secrets,
    pub(in crate::provider) environment: &'a ModelEnvironment,
    pub(in crate::provider) logins: &'a Logins,
    /// The credential of the job's caller.
    pub(in crate::provider) bearer: Option<&'a SecretText>,
    /// The script of the agent, for models of the provider `scripted`.
    pub(in crate::provider) script: Option<&'a Arc<Script>>,
    /// What runs models of the provider `local`.
    pub(in crate::provider) local: &'a Arc<dyn LocalModels>,
}

impl Around<'_> {
    pub(in crate::provider) fn target(&self, model: &StoredModel) -> Result<Target, ConnectError> {
        let secret = |name: &str| self.secrets.of_models(name).map(|value| value.expose().into());
        let variable = |name: &str| {
            let own = self.secrets.variable_of_models(name).map(|value| value.expose().to_owned());
            own.or_else(|| self.environment.proxy(name))
        };
        let script = self.script.cloned();
        let login = model.spec.login.as_ref().map(|_| self.logins.model(&model.name));
        let (bearer, local) = (self.bearer, Some(Arc::clone(self.local)));
        let surroundings = Surroundings { secret: &secret, variable: &variable, login, bearer, script, local };
        connect::target(&model.name, &model.spec, &surroundings)
    }
}

/// What the tokens of each model cost on a day.
pub(in crate::provider) fn prices(models: &[StoredModel], day: Day) -> Vec<Option<Prices>> {
    models.iter().map(|model| model.spec.prices_on(PriceList::embedded(), day)).collect()
}

/// Whether one of the models has a capability. A model without it is passed over.
pub(in crate::provider) fn has(models: &[StoredModel], capability: Capability) -> bool {
    models.iter().any(|model| model.spec.capabilities.contains(&capability))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str, spec: &str) -> StoredModel {
        StoredModel { name: name.to_owned(), spec: ModelSpec::read(spec.as_bytes()).expect("a spec") }
    }

    #[test]
    fn addresses_are_those_of_now_and_models_those_of_the_first_attempt() {
        let recorded = [
            model("a", r#"{"provider": "openai", "name": "m", "base_url": "http://127.0.0.1:1"}"#),
            model("b", r#"{"provider": "openai", "name": "m"}"#),
        ];
        let moved = model("a", r#"{"provider": "openai", "name": "m", "base_url": "http://127.0.0.1:2"}"#);
        let other = model("b", r#"{"provider": "openai", "name": "other"}"#);
        let now = current(&recorded, &[other, moved.clone()]);
        assert_eq!(now, [moved, recorded[1].clone()]);
    }

    #[test]
    fn each_name_has_its_model_and_fallbacks() {
        let attached = |name: &str, fallbacks: &str, asked: &[&str]| AttachedModel {
            name: name.to_owned(),
            spec: format!(r#"{{"provider": "openai", "name": "m", "fallbacks": {fallbacks}}}"#).into_bytes().into(),
            asked: asked.iter().map(|name| (*name).to_owned()).collect(),
        };
        let names = |attached: &[AttachedModel], name, own| {
            let chosen = for_name(attached, name, own).expect("models");
            chosen.into_iter().map(|model| model.name).collect::<Vec<_>>().join(" ")
        };
        let several = [
            attached("a", r#"["b", "c"]"#, &["balanced"]),
            attached("b", r#"["c", "gone"]"#, &["fast", "b"]),
            attached("c", r#"[]"#, &[]),
        ];
        assert_eq!(names(&several, "balanced", true), "a b c");
        assert_eq!((names(&several, "fast", false), names(&several, "b", false)), ("b c".to_owned(), "b c".to_owned()));
        assert_eq!((names(&several, "c", false), names(&several, "other", true)), (String::new(), String::new()));
        let one = [attached("a", r#"["b"]"#, &[]), attached("b", "[]", &[])];
        assert_eq!((names(&one, "balanced", true), names(&one, "fast", false)), ("a b".to_owned(), String::new()));
    }

    #[test]
    fn a_spec_that_cannot_be_read_is_named() {
        let attached = AttachedModel { name: "a".to_owned(), spec: (*b"{}").into(), asked: Vec::new() };
        let error = read(&[attached]).expect_err("refused").to_string();
        assert!(error.starts_with("the model \"a\" cannot be read: "), "{error}");
    }
}
