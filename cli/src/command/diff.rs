//! `atlasctl diff`: compares the cluster with folders of agents and documents.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::command::apply::{Comparison, Sourced, compare, names_of, prune, read};
use crate::context::Context;
use crate::difference;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder of agents and documents, file of documents as printed by get -o yaml, or - for stdin; repeatable.
    #[arg(value_name = "PATH|-", required_unless_present = "files")]
    paths: Vec<PathBuf>,
    /// The same, as an option.
    #[arg(short, long = "file", value_name = "PATH|-", allow_hyphen_values = true)]
    files: Vec<PathBuf>,
    /// Also list agent versions that have the labels and are not in the files, which apply --prune would retire.
    #[arg(long, requires = "labels")]
    prune: bool,
    /// With --prune: label of the agents to consider, KEY=VALUE; repeatable.
    #[arg(short, long = "label", requires = "prune", value_name = "KEY=VALUE", value_parser = words::parse_label)]
    labels: Vec<(String, String)>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let (mut values, mut names, mut text) = (Vec::new(), Vec::new(), String::new());
    let wanted = read(&[&options.paths[..], &options.files].concat())?;
    let held = names_of(&wanted);
    if options.prune {
        prune::check(&wanted, &options.labels)?;
    }
    for Sourced { wanted, .. } in wanted {
        let name = wanted.name();
        let changes = match compare(&client, &wanted).await? {
            Comparison::Same => continue,
            Comparison::Missing => Vec::new(),
            Comparison::Other(changes) => changes,
        };
        let sign = if changes.is_empty() { "+" } else { "~" };
        text += &format!("{sign} {name}\n");
        text += &difference::text(&changes).lines().map(|line| format!("  {line}\n")).collect::<String>();
        let places =
            changes.iter().map(|change| json!({"pointer": change.place, "old": change.old, "new": change.new}));
        values.push(json!({"name": name, "missing": changes.is_empty(), "changes": places.collect::<Vec<_>>()}));
        names.push(name);
    }
    let pruned = match options.prune {
        true => prune::find(&client, &held, &options.labels).await?,
        false => Vec::new(),
    };
    for name in pruned.iter().map(prune::Pruned::shown) {
        text += &format!("- {name}\n");
        values.push(json!({"name": name, "missing": false, "changes": [], "retires": true}));
        names.push(name);
    }
    let exit = if values.is_empty() { Exit::Done } else { Exit::Short };
    context.show(&Shown { value: Value::Array(values), text, names })?;
    Ok(exit)
}
