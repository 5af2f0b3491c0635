//! `atlasctl node drain`, `cordon`, `uncordon` and `remove`: whether a node takes new jobs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Which node.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The names of nodes; node/NAME as -o name prints them.
    #[arg(required = true, value_name = "NAME", value_parser = names::node)]
    pub(super) names: Vec<String>,
}

/// Which node, and for how long at most.
#[derive(Debug, clap::Args)]
pub(crate) struct DrainOptions {
    #[command(flatten)]
    node: Options,
    /// After so long the node gives back what it still runs, which then runs elsewhere; else everything finishes.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    deadline: Option<Duration>,
}

/// Lets a node finish what it runs.
pub(super) async fn drain(context: &Context, options: &DrainOptions) -> Result<Exit, Failure> {
    let (mut body, mut told) = (json!({}), "finishes what it runs and takes nothing new".to_owned());
    if let Some(deadline) = options.deadline {
        body["deadline_s"] = deadline.as_secs_f64().into();
        told += &format!("; what still runs in {} is given back", words::age(deadline.as_secs_f64()));
    }
    names::each(context, &options.node.names, async |name| {
        change(context, name, "drain", &body, &told).await?;
        context.next(&format!("next: atlasctl wait node {name} --for drained"));
        Ok(Exit::Done)
    })
    .await
}

/// Gives a node nothing new.
pub(super) async fn cordon(context: &Context, name: &str) -> Result<Exit, Failure> {
    change(context, name, "cordon", &json!({}), "takes no new jobs").await
}

/// Gives a node new jobs again.
pub(super) async fn uncordon(context: &Context, name: &str) -> Result<Exit, Failure> {
    change(context, name, "uncordon", &json!({}), "takes new jobs again").await
}

/// Does one of these; `verb` is the last part of the path, `told` what it means from now on.
async fn change(context: &Context, name: &str, verb: &str, body: &Value, told: &str) -> Result<Exit, Failure> {
    let value = context.client()?.post(&["api", "nodes", name, verb], &[], body).await?;
    context.note(&format!("{name} {told}"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("node/{name}")] })?;
    Ok(Exit::Done)
}

/// Forgets a node.
pub(crate) async fn remove(context: &Context, name: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&["api", "nodes", name]).await?;
    context.note(&format!("{name} is forgotten; it comes back if its worker does"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("node/{name}")] })?;
    Ok(Exit::Done)
}
