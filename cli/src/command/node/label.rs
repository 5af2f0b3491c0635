//! `atlasctl node label`: adds and removes labels of a node.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::api::{self, Node};
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
    #[arg(required = true, value_name = "KEY=VALUE|KEY-", value_parser = parse)]
    labels: Vec<Label>,
}

/// A label to add or to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Label {
    key: String,
    /// None removes the label.
    value: Option<String>,
}

fn parse(text: &str) -> Result<Label, String> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text.strip_suffix('-').unwrap_or_default(), None),
    };
    if key.is_empty() || key.ends_with('-') {
        return Err(format!("\"{text}\" is neither KEY=VALUE nor KEY-"));
    }
    Ok(Label { key: key.to_owned(), value })
}

/// Changes the labels and shows the resulting labels of the node.
pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let name = &options.name;
    let (mut set, mut remove) = (BTreeMap::new(), BTreeSet::new());
    let mut keys = BTreeSet::new();
    for Label { key, value } in &options.labels {
        if !keys.insert(key) {
            return Err(Failure::usage(format!("the label \"{key}\" is given twice")));
        }
        match value {
            Some(value) => drop(set.insert(key, value)),
            None => drop(remove.insert(key)),
        }
    }
    let client = context.client()?;
    client.post(&["api", "nodes", name, "labels"], &[], &json!({"set": set, "remove": remove})).await?;
    let value = client.get(&["api", "nodes", name], &[]).await?;
    let node: Node = api::read(&value)?;
    let labels = words::labels(&node.labels);
    let text = format!("{name}   {}\n", if labels.is_empty() { "no labels" } else { &labels });
    context.show(&Shown { value, text, names: vec![format!("node/{name}")] })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_give_labels_and_take_them_away() {
        let label = |key: &str, value: Option<&str>| Ok(Label { key: key.to_owned(), value: value.map(str::to_owned) });
        assert_eq!(parse("zone=b"), label("zone", Some("b")));
        assert_eq!(parse("zone="), label("zone", Some("")));
        assert_eq!(parse("a=b=c-"), label("a", Some("b=c-")));
        assert_eq!(parse("zone-"), label("zone", None));
        assert_eq!(parse("my-zone-"), label("my-zone", None));
        for wrong in ["", "-", "=b", "zone", "zone--", "zone-=b"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
