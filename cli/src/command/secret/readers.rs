//! `atlasctl secret who-can-read`.

use atlas_secrets::{Reference, Template};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{KIND, Secret};
use crate::answers;
use crate::client::Client;
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, column, members};

/// How many contracts are asked for at the same time.
const AT_ONCE: usize = 8;

/// Options of `atlasctl secret who-can-read`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The secret's name.
    #[arg(value_name = "NAME", value_parser = names::secret)]
    name: String,
    #[command(flatten)]
    list: ListOptions,
}

/// An agent or a model that names a secret.
#[derive(Debug, Serialize, Deserialize)]
struct Reader {
    kind: String,
    name: String,
    /// Whether it gets the value.
    allowed: bool,
    why: String,
}

const COLUMNS: [Column<Reader>; 4] = [
    column("KIND", "kind", |reader, _| reader.kind.clone()),
    column("NAME", "name", |reader, _| reader.name.clone()),
    column("ALLOWED", "allowed", |reader, _| if reader.allowed { "yes" } else { "no" }.to_owned()),
    column("WHY", "why", |reader, _| reader.why.clone()),
];

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (client, name) = (context.client()?, &options.name);
    let secret: Secret = answers::read(&client.get(&["api", "objects", KIND, name], &[]).await?)?;
    let mut readers = agents(&client, name, &secret).await?;
    readers.extend(models(&client, name).await?);
    let list = List {
        columns: &COLUMNS,
        members: members::READER,
        name: |reader: &Reader| format!("{}/{}", reader.kind, reader.name),
    };
    if context.list(json!(readers), &options.list, &list)? == 0 {
        context.note(&format!("no agent and no model names the secret \"{name}\""));
    }
    Ok(Exit::Done)
}

/// The versions of agents whose contracts name the secret.
async fn agents(client: &Client, name: &str, secret: &Secret) -> Result<Vec<Reader>, Failure> {
    let listed = client.get(&["api", "agents"], &[]).await?;
    let contract = async |agent: &Value| {
        let text = |member: &str| agent[member].as_str().unwrap_or_default();
        client.get(&["api", "agents", text("name"), "versions", text("version")], &[]).await
    };
    let listed = listed.as_array().map(Vec::as_slice).unwrap_or_default();
    let agents: Vec<Value> = stream::iter(listed.iter().map(contract)).buffered(AT_ONCE).try_collect().await?;
    let names_it = |agent: &&Value| {
        let names = agent["contract"]["permissions"]["secrets"].as_array();
        names.into_iter().flatten().any(|declared| declared == name)
    };
    let reader = |agent: &Value| {
        let text = |member: &str| agent[member].as_str().unwrap_or_default().to_owned();
        let allowed = secret.permits(&text("name"));
        let why = match (allowed, &secret.spec.readers) {
            (false, _) => "its contract names the secret, but it is not one of the readers",
            (true, None) => "its contract names the secret",
            (true, Some(_)) => "its contract names the secret, and it is one of the readers",
        };
        Reader {
            kind: "agent".to_owned(),
            name: format!("{}@{}", text("name"), text("version")),
            allowed,
            why: why.to_owned(),
        }
    };
    Ok(agents.iter().filter(names_it).map(reader).collect())
}

/// The models whose specs refer to the secret.
async fn models(client: &Client, name: &str) -> Result<Vec<Reader>, Failure> {
    let models = object::all(client, "model").await?;
    let reader = |model: &Value| Reader {
        kind: "model".to_owned(),
        name: model["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        allowed: true,
        why: "its calls use the secret; agents do not get it".to_owned(),
    };
    Ok(models.iter().filter(|model| refers(&model["spec"], name)).map(reader).collect())
}

/// Whether a text of a document refers to a secret.
fn refers(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => Template::parse(text)
            .is_ok_and(|template| template.references().any(|reference| reference == Reference::Secret(name))),
        Value::Array(items) => items.iter().any(|item| refers(item, name)),
        Value::Object(members) => members.values().any(|member| refers(member, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_refer_to_secrets_in_texts_at_any_depth() {
        let spec = json!({"key": "secret://a", "headers": {"x": "Bearer {{b}}"}, "more": ["${c}", 1, null]});
        assert!(refers(&spec, "a") && refers(&spec, "b"));
        assert!(!refers(&spec, "c"), "a variable is no secret");
        assert!(!refers(&spec, "Bearer"));
    }
}
