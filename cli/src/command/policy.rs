//! `atlasctl policy`: what agents may have, and rules on deploying and submitting.

mod why;

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;
use serde_json::Value;

use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, column, members, wide};

pub(crate) use why::left;

/// The word of policies in the API.
const KIND: &str = "policy";

/// Verbs of `atlasctl policy`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists policies.
    List(Options),
    /// Shows one policy with its rules.
    Show(Names),
    /// Shows which policy and which rule decide if you submit a job for an agent or deploy it: allowed, denied, or asked about.
    Why(why::Options),
    /// Removes a policy.
    Remove(Names),
}

/// Options of `atlasctl policy list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

/// Names of policies.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The policy's name.
    #[arg(value_name = "NAME", required = true, value_parser = names::policy)]
    names: Vec<String>,
}

/// A policy as a list shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Policy {
    metadata: ObjectMetadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    namespaces: Option<Vec<String>>,
    allowed_secrets: Option<Vec<String>>,
    rules: Vec<Value>,
}

const COLUMNS: [Column<Policy>; 5] = [
    column("NAME", "metadata", |policy, _| policy.metadata.name.clone()),
    column("NAMESPACES", "spec", |policy, _| named(policy.spec.namespaces.as_deref())),
    column("SECRETS", "spec", |policy, _| named(policy.spec.allowed_secrets.as_deref())),
    column("RULES", "spec", |policy, _| policy.spec.rules.len().to_string()),
    wide("CHANGED BY", "metadata", |policy, _| policy.metadata.updated_by.clone()),
];

/// The names in a list without which there is no restriction.
fn named(names: Option<&[String]>) -> String {
    match names {
        None => "all".to_owned(),
        Some([]) => "none".to_owned(),
        Some(names) => names.join(", "),
    }
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => {
            let name = |policy: &Policy| format!("{KIND}/{}", policy.metadata.name);
            let list = List { columns: &COLUMNS, members: members::OBJECT, name };
            object::list_as(context, KIND, &options.list, &list, "no policies: atlasctl apply FILE").await
        }
        Verb::Show(options) => {
            names::each(context, &options.names, async |name| object::show(context, KIND, name).await).await
        }
        Verb::Why(options) => why::run(context, options).await,
        Verb::Remove(options) => {
            names::each(context, &options.names, async |name| object::remove(context, KIND, name).await).await
        }
    }
}
