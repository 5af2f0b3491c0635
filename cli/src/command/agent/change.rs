//! `atlasctl agent deprecate` and `atlasctl agent retire`: what becomes of versions.

use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// Which version.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The agent's name.
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    /// The version, such as 1.2.0.
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    version: String,
}

/// Which version, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct DeprecateOptions {
    #[command(flatten)]
    which: Options,
    /// What to use instead, for whoever still uses it.
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    message: String,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    retire(context, &options.name, &options.version).await
}

/// Takes a version out of service.
pub(crate) async fn retire(context: &Context, name: &str, version: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&["api", "agents", name, "versions", version]).await?;
    context.note(&format!("{name} {version} takes no new jobs; those it has finish"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("agent/{name}@{version}")] })?;
    Ok(Exit::Done)
}

pub(super) async fn deprecate(context: &Context, options: &DeprecateOptions) -> Result<Exit, Failure> {
    let (name, version) = (&options.which.name, &options.which.version);
    let path = ["api", "agents", name, "versions", version, "deprecate"];
    let value = context.client()?.post(&path, &[], &json!({"message": options.message})).await?;
    context.note(&format!("{name} {version} is deprecated; it still takes jobs"));
    context.show(&Shown { value, text: String::new(), names: vec![format!("agent/{name}@{version}")] })?;
    Ok(Exit::Done)
}
