//! `atlasctl secret set` and `atlasctl secret rotate`.

use serde_json::{Value, json};

use super::value::{Source, check_private, store};
use super::{KIND, Secret};
use crate::answers;
use crate::client::Client;
use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl secret set`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The secret's name; agents name it in permissions.secrets, models as secret://NAME.
    #[arg(value_name = "NAME", value_parser = names::secret)]
    name: String,
    #[command(flatten)]
    source: Source,
    /// An agent that may have the value, if its contract names the secret; repeatable. Without it, all agents of the namespace that
    /// name it, or those that were set before.
    #[arg(long = "reader", value_name = "AGENT", value_parser = names::agent)]
    readers: Vec<String>,
}

/// Options of `atlasctl secret rotate`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct RotateOptions {
    /// The secret's name.
    #[arg(value_name = "NAME", value_parser = names::secret)]
    name: String,
    #[command(flatten)]
    source: Source,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    check_private(&client)?;
    let value = options.source.read(&options.name)?;
    if !options.readers.is_empty() {
        // Before the value, so that no other agent gets it in between.
        set_readers(&client, &options.name, &options.readers).await?;
    }
    let stored = store(&client, &options.name, &value, false).await?;
    show(context, stored)
}

pub(super) async fn rotate(context: &Context, options: &RotateOptions) -> Result<Exit, Failure> {
    let client = context.client()?;
    check_private(&client)?;
    // Before the value is asked for.
    client.get(&["api", "objects", KIND, &options.name], &[]).await?;
    let value = options.source.read(&options.name)?;
    let stored = store(&client, &options.name, &value, true).await?;
    show(context, stored)
}

/// Restricts a secret to some agents; makes the secret without a value if there is none.
async fn set_readers(client: &Client, name: &str, readers: &[String]) -> Result<(), Failure> {
    let path = ["api", "objects", KIND, name];
    match client.get(&path, &[]).await {
        Ok(mut object) => {
            object["spec"]["readers"] = json!(readers);
            let body = json!({ "labels": object["metadata"]["labels"], "spec": object["spec"] });
            client.put_revision(&path, &[], &body, object::revision(&object)).await?;
        }
        Err(failure) if failure.exit == Exit::NotFound => {
            client.put_new(&path, &[], &json!({ "labels": {}, "spec": { "readers": readers } })).await?;
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

fn show(context: &Context, value: Value) -> Result<Exit, Failure> {
    let secret: Secret = answers::read(&value)?;
    let version = secret.newest().map_or(0, |newest| newest.version);
    let (name, namespace) = (&secret.metadata.name, &secret.metadata.namespace);
    let text = format!("secret {name} v{version} stored in {namespace} (sealed)\n");
    context.show(&Shown { text, names: vec![format!("{KIND}/{name}")], value })?;
    Ok(Exit::Done)
}
