//! Rules in files, programs outside of the cluster, and the orchestrators that are objects.

use std::path::Path;

use atlas_contract::yaml::{self, Budget};
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;

/// The kind of the objects.
const KIND: &str = "orchestrator";

/// The name of an orchestrator. A file is stored first, under the name that it has, and an address under a name that is made of it.
pub(super) async fn stored(client: &Client, text: &str) -> Result<String, Failure> {
    if let Some(address) = text.strip_prefix("grpc://") {
        let name = external_name(address);
        let body = json!({"labels": {}, "spec": {"grpc": {"address": address}}});
        client.put(&["api", "objects", KIND, &name], &[], &body).await?;
        return Ok(name);
    }
    let path = Path::new(text);
    if !path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
        return Ok(text.to_owned());
    }
    let Definition { name, labels, spec } = parse(&input::read_file(path)?, path)?;
    client.put(&["api", "objects", KIND, &name], &[], &json!({"labels": labels, "spec": spec})).await?;
    Ok(name)
}

/// The stored orchestrators, in the form of agents.
pub(super) async fn all(client: &Client) -> Result<Vec<Value>, Failure> {
    let found = client.get(&["api", "objects", KIND], &[("limit", "1000")]).await?;
    let shown = |object: &Value| {
        json!({
            "name": object["metadata"]["name"], "version": "", "kind": KIND,
            "description": object["spec"]["description"].as_str().unwrap_or_default(),
        })
    };
    Ok(found["objects"].as_array().into_iter().flatten().map(shown).collect())
}

/// The name under which the program at an address is stored.
fn external_name(address: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || char == '.' { char } else { '-' };
    format!("grpc-{}", address.chars().map(plain).collect::<String>().trim_matches('-'))
}

struct Definition {
    name: String,
    labels: Value,
    spec: Value,
}

/// Reads a document as `atlasctl get orchestrator NAME -o yaml` prints it, or its spec with a `name`, also under the key `orchestrator`.
fn parse(text: &str, path: &Path) -> Result<Definition, Failure> {
    let wrong = |what: String| Failure::new("E1104", Exit::Invalid, format!("{}: {what}", path.display()));
    let document = yaml::load_strictly(text.as_bytes(), Budget::default()).map_err(|error| wrong(error.to_string()))?;
    let named = |name: &Value| name.as_str().map(str::to_owned);
    let found = if document["kind"] == KIND {
        let metadata = &document["metadata"];
        let labels = if metadata["labels"].is_object() { metadata["labels"].clone() } else { json!({}) };
        named(&metadata["name"]).map(|name| Definition { name, labels, spec: document["spec"].clone() })
    } else {
        let mut members: Map<String, Value> =
            document.get(KIND).unwrap_or(&document).as_object().cloned().unwrap_or_default();
        let name = members.remove("name").as_ref().and_then(named);
        name.map(|name| Definition { name, labels: json!({}), spec: Value::Object(members) })
    };
    found.filter(|found| !found.name.is_empty()).ok_or_else(|| {
        wrong("an orchestrator has a `name` and `rules`, also under the key `orchestrator`".to_owned())
            .with_next("the format: atlasctl docs orchestrators")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_name() {
        assert_eq!(external_name("127.0.0.1:9000"), "grpc-127.0.0.1-9000");
        assert_eq!(external_name("[::1]:9000"), "grpc-1--9000");
    }

    #[test]
    fn files_are_read_in_all_forms() {
        let path = Path::new("rules.yaml");
        let rules = json!({"rules": [{"allow": true}]});
        for text in [
            "name: r\nrules: [{allow: true}]\n",
            "orchestrator:\n  name: r\n  rules: [{allow: true}]\n",
            "kind: orchestrator\nmetadata: {name: r}\nspec:\n  rules: [{allow: true}]\n",
        ] {
            let found = parse(text, path).expect("a definition");
            assert_eq!((found.name.as_str(), found.spec), ("r", rules.clone()));
        }
        for text in ["", "rules: []", "- a", "name: {", "name: 5", "kind: orchestrator", "orchestrator: 1", "name: ''"]
        {
            assert_eq!(parse(text, path).err().expect(text).code.as_deref(), Some("E1104"), "{text}");
        }
    }
}
