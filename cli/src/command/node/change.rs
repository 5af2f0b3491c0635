//! `atlasctl node drain`, `cordon`, `uncordon`, `resume` and `remove`: whether a node takes new jobs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Nodes by name.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Node names, also as printed by -o name.
    #[arg(required = true, value_name = "NAME", value_parser = names::node)]
    pub(super) names: Vec<String>,
}

/// Options of `atlasctl node drain`.
#[derive(Debug, clap::Args)]
pub(crate) struct DrainOptions {
    #[command(flatten)]
    node: Options,
    /// After this time, the node returns its running jobs, which then run elsewhere; without it, all jobs finish.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    deadline: Option<Duration>,
}

/// Drains a node: its running jobs finish, and it gets no new ones.
pub(super) async fn drain(context: &Context, options: &DrainOptions) -> Result<Exit, Failure> {
    let (mut body, mut told) = (json!({}), "finishes its running jobs and accepts no new ones".to_owned());
    if let Some(deadline) = options.deadline {
        body["deadline_s"] = deadline.as_secs_f64().into();
        told += &format!("; jobs still running in {} are returned", words::age(deadline.as_secs_f64()));
    }
    names::each(context, &options.node.names, async |name| {
        change(context, name, "drain", &body, &told).await?;
        context.next(&format!("next: atlasctl wait node {name} --for drained"));
        Ok(Exit::Done)
    })
    .await
}

/// Stops new jobs on a node.
pub(super) async fn cordon(context: &Context, name: &str) -> Result<Exit, Failure> {
    change(context, name, "cordon", &json!({}), "accepts no new jobs").await
}

/// Allows new jobs on a node again.
pub(super) async fn uncordon(context: &Context, name: &str) -> Result<Exit, Failure> {
    change(context, name, "uncordon", &json!({}), "accepts new jobs again").await
}

/// Closes the circuit of a node.
pub(super) async fn resume(context: &Context, name: &str) -> Result<Exit, Failure> {
    change(context, name, "resume", &json!({}), "takes jobs as usual").await
}

/// Sends one of these requests; `verb` is the last part of the path, `told` describes the effect to the user.
async fn change(context: &Context, name: &str, verb: &str, body: &Value, told: &str) -> Result<Exit, Failure> {
    let value = context.client()?.post(&["api", "nodes", name, verb], &[], body).await?;
    context.note(&format!("{name} {told}"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("node/{name}")] })?;
    Ok(Exit::Done)
}

/// Removes a node.
pub(crate) async fn remove(context: &Context, name: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&["api", "nodes", name]).await?;
    context.note(&format!("{name} is removed; it reappears if its worker reconnects"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("node/{name}")] })?;
    Ok(Exit::Done)
}
