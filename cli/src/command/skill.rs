//! `atlasctl skill`: functions that agents call.

mod deploy;
mod test;

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;

pub(crate) use self::deploy::deploy;

use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, column, members, wide};

/// The word of skills in the API.
const KIND: &str = "skill";

/// Verbs of `atlasctl skill`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists skills.
    List(Options),
    /// Shows one skill with its schemas.
    Show(Names),
    /// Checks, packs and deploys the skills in folders.
    Deploy(deploy::Options),
    /// Calls a deployed skill once, as an agent would, and prints what it returns.
    Test(test::Options),
    /// Removes a skill.
    Remove(Names),
}

/// Options of `atlasctl skill list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

/// Names of skills.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The skill's name.
    #[arg(value_name = "NAME", required = true, value_parser = names::skill)]
    names: Vec<String>,
}

/// A skill as a list shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Skill {
    metadata: ObjectMetadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    version: String,
    runtime: String,
    description: String,
    package: String,
}

const COLUMNS: [Column<Skill>; 6] = [
    column("NAME", "metadata", |skill, _| skill.metadata.name.clone()),
    column("VERSION", "spec", |skill, _| skill.spec.version.clone()),
    column("RUNTIME", "spec", |skill, _| skill.spec.runtime.clone()),
    column("DESCRIPTION", "spec", |skill, _| skill.spec.description.clone()),
    wide("PACKAGE", "spec", |skill, _| skill.spec.package.clone()),
    wide("NAMESPACE", "metadata", |skill, _| skill.metadata.namespace.clone()),
];

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => {
            let name = |skill: &Skill| format!("{KIND}/{}", skill.metadata.name);
            let list = List { columns: &COLUMNS, members: members::OBJECT, name };
            object::list_as(context, KIND, &options.list, &list, "no skills: atlasctl skill deploy FOLDER").await
        }
        Verb::Show(options) => {
            names::each(context, &options.names, async |name| object::show(context, KIND, name).await).await
        }
        Verb::Deploy(options) => deploy::run(context, options).await,
        Verb::Test(options) => test::run(context, options).await,
        Verb::Remove(options) => {
            names::each(context, &options.names, async |name| object::remove(context, KIND, name).await).await
        }
    }
}
