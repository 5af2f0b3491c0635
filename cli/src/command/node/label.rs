//! `atlasctl node label`: adds and removes labels of a node.

use std::collections::{BTreeMap, BTreeSet};

use atlas_api::types::Node;
use serde_json::json;

use crate::answers;
use crate::command::label::{self, Label};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl node label`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The node's name.
    #[arg(value_parser = names::node)]
    name: String,
    /// KEY=VALUE adds a label and overrides the worker's own; KEY- removes an added label; repeatable.
    #[arg(required = true, value_name = "KEY=VALUE|KEY-", value_parser = label::parse)]
    labels: Vec<Label>,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    change(context, &options.name, &options.labels).await
}

/// Changes the labels and shows the resulting labels of the node.
pub(in crate::command) async fn change(context: &Context, name: &str, labels: &[Label]) -> Result<Exit, Failure> {
    let (mut set, mut remove) = (BTreeMap::new(), BTreeSet::new());
    for (key, value) in label::by_key(labels)? {
        match value {
            Some(value) => drop(set.insert(key, value)),
            None => drop(remove.insert(key)),
        }
    }
    let client = context.client()?;
    client.post(&["api", "nodes", name, "labels"], &[], &json!({"set": set, "remove": remove})).await?;
    let value = client.get(&["api", "nodes", name], &[]).await?;
    let node: Node = answers::read(&value)?;
    let labels = words::labels(&node.labels);
    let text = format!("{name}   {}\n", if labels.is_empty() { "no labels" } else { &labels });
    context.show(&Shown { value, text, names: vec![format!("node/{name}")] })?;
    Ok(Exit::Done)
}
