//! Models that a worker runs itself, with a package that it installs: no provider, no key, no network.

use super::check::SpecError;
use super::{ModelSpec, Provider, Purpose};

/// The models of the provider `local`. Each is a Python package of the same name that comes with its weights.
pub const LOCAL_MODELS: [&str; 1] = ["wordllama"];
/// The lengths of their vectors. The last one is the default.
pub const LOCAL_DIMENSIONS: [u32; 3] = [64, 128, 256];

impl ModelSpec {
    /// Refuses what means nothing for a model without a server.
    pub(super) fn check_local(&self) -> Result<(), SpecError> {
        if self.provider != Provider::Local {
            return Ok(());
        }
        if self.purpose != Purpose::Embedding {
            return Err(SpecError::new(
                "spec.type",
                "must be embedding for the provider local, which makes vectors only",
            ));
        }
        if !LOCAL_MODELS.contains(&self.name.as_str()) {
            let all = LOCAL_MODELS.join(", ");
            return Err(SpecError::new("spec.name", format!("is not a model of the provider local, which has {all}")));
        }
        let given = [
            ("spec.base_url", self.base_url.is_some()),
            ("spec.key", self.key.is_some()),
            ("spec.forward_inbound_auth", self.forward_inbound_auth),
            ("spec.headers", !self.headers.is_empty()),
            ("spec.patch", self.patch.is_some()),
        ];
        if let Some((field, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(SpecError::new(field, "is not used with the provider local, which sends nothing"));
        }
        let refused = |text: String| Err(SpecError::new("spec.parameters", text));
        for (name, value) in &self.parameters {
            if name != "dimensions" {
                return refused(format!("has a member {name}; the provider local has only dimensions"));
            }
            if !LOCAL_DIMENSIONS.iter().any(|length| length.to_string() == *value) {
                let all = LOCAL_DIMENSIONS.map(|length| length.to_string()).join(", ");
                return refused(format!("has a value of dimensions that is none of {all}"));
            }
        }
        Ok(())
    }

    /// The length of the vectors of a model of the provider `local`.
    pub fn local_dimensions(&self) -> u32 {
        let given = self.parameters.get("dimensions").and_then(|text| text.parse().ok());
        let [.., default] = LOCAL_DIMENSIONS;
        given.filter(|length| LOCAL_DIMENSIONS.contains(length)).unwrap_or(default)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;
    use crate::{Day, NanoDollars, PriceList};

    fn check(change: &Value, expected: &Expect) {
        let mut spec = json!({ "provider": "local", "name": "wordllama", "type": "embedding" });
        for (name, value) in change.as_object().expect("an object") {
            spec[name] = value.clone();
        }
        let read = ModelSpec::read(spec.to_string().as_bytes());
        let shown = read.map_or_else(|error| error.to_string(), |spec| spec.local_dimensions().to_string());
        expected.assert_eq(&shown);
    }

    #[test]
    fn vectors_have_one_of_three_lengths() {
        check(&json!({}), &expect!["256"]);
        check(&json!({"parameters": {"dimensions": "64"}}), &expect!["64"]);
        check(&json!({"parameters": {"dimensions": "128"}}), &expect!["128"]);
        let other = expect!["`spec.parameters` has a value of dimensions that is none of 64, 128, 256"];
        check(&json!({"parameters": {"dimensions": "512"}}), &other);
        check(&json!({"parameters": {"dimensions": "064"}}), &other);
        check(&json!({"parameters": {"dimensions": "${LENGTH}"}}), &other);
        check(
            &json!({"parameters": {"region": "eu"}}),
            &expect!["`spec.parameters` has a member region; the provider local has only dimensions"],
        );
    }

    #[test]
    fn what_only_servers_have_is_refused() {
        check(
            &json!({"name": "wordllama2"}),
            &expect!["`spec.name` is not a model of the provider local, which has wordllama"],
        );
        let kind = expect!["`spec.type` must be embedding for the provider local, which makes vectors only"];
        check(&json!({"type": "chat"}), &kind);
        check(&json!({"type": "reranker"}), &kind);
        for (member, value) in [
            ("base_url", json!("https://a.test")),
            ("key", json!("secret://k")),
            ("headers", json!({"x-team": "a"})),
            ("patch", json!({"url": "https://a.test"})),
            ("forward_inbound_auth", json!(true)),
        ] {
            let spec = json!({ "provider": "local", "name": "wordllama", "type": "embedding", member: value });
            let error = ModelSpec::read(spec.to_string().as_bytes()).expect_err("refused").to_string();
            assert_eq!(error, format!("`spec.{member}` is not used with the provider local, which sends nothing"));
        }
        let login = json!({"login": {"issuer": "claude", "client_id": "c"}});
        check(&login, &expect!["`spec.login` is not used with the provider local"]);
    }

    #[test]
    fn local_models_cost_nothing() {
        let spec = json!({ "provider": "local", "name": "wordllama", "type": "embedding" });
        let spec = ModelSpec::read(spec.to_string().as_bytes()).expect("a spec");
        let prices = spec.prices_on(PriceList::embedded(), Day::of(u64::MAX)).expect("known");
        assert_eq!((prices.input, prices.output), (NanoDollars(0), NanoDollars(0)));
    }
}
