//! `atlasctl diff`: compares the cluster with folders of agents and documents.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::command::apply::{Comparison, Sourced, compare, read};
use crate::context::Context;
use crate::difference;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Options of `atlasctl diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder of agents and documents, file of documents as printed by get -o yaml, or - for stdin; repeatable.
    #[arg(short, long = "file", required = true, value_name = "PATH|-", allow_hyphen_values = true)]
    files: Vec<PathBuf>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let (mut values, mut names, mut text) = (Vec::new(), Vec::new(), String::new());
    for Sourced { wanted, .. } in read(&options.files)? {
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
    let exit = if values.is_empty() { Exit::Done } else { Exit::Short };
    context.show(&Shown { value: Value::Array(values), text, names })?;
    Ok(exit)
}
