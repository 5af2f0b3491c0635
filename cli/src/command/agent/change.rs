//! `atlasctl agent deprecate`, `resume` and `retire`.

use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl agent retire` and `resume`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// NAME@VERSION, one or more, also as printed by -o name; or a single NAME VERSION.
    #[arg(required = true, value_name = "NAME@VERSION", value_parser = names::agent)]
    names: Vec<String>,
}

/// Options of `atlasctl agent deprecate`.
#[derive(Debug, clap::Args)]
pub(crate) struct DeprecateOptions {
    #[command(flatten)]
    which: Options,
    /// Message for users of the version, such as what to use instead.
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    message: String,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    for (name, version) in names::versions(&options.names)? {
        retire(context, name, version).await?;
    }
    Ok(Exit::Done)
}

/// Retires a version.
pub(crate) async fn retire(context: &Context, name: &str, version: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&["api", "agents", name, "versions", version]).await?;
    context.note(&format!("{name} {version} accepts no new jobs; its existing jobs finish"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("agent/{name}@{version}")] })?;
    Ok(Exit::Done)
}

/// Closes the circuits of versions.
pub(super) async fn resume(context: &Context, options: &Options) -> Result<Exit, Failure> {
    for (name, version) in names::versions(&options.names)? {
        let path = ["api", "agents", name, "versions", version, "resume"];
        let value = context.client()?.post(&path, &[], &json!({})).await?;
        context.note(&format!("jobs of {name} {version} start as usual"));
        context.show(&Shown { value, text: String::new(), names: vec![format!("agent/{name}@{version}")] })?;
    }
    Ok(Exit::Done)
}

pub(super) async fn deprecate(context: &Context, options: &DeprecateOptions) -> Result<Exit, Failure> {
    for (name, version) in names::versions(&options.which.names)? {
        deprecate_one(context, name, version, &options.message).await?;
    }
    Ok(Exit::Done)
}

async fn deprecate_one(context: &Context, name: &str, version: &str, message: &str) -> Result<Exit, Failure> {
    let path = ["api", "agents", name, "versions", version, "deprecate"];
    let value = context.client()?.post(&path, &[], &json!({"message": message})).await?;
    context.note(&format!("{name} {version} is deprecated; it still accepts jobs"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("agent/{name}@{version}")] })?;
    Ok(Exit::Done)
}
