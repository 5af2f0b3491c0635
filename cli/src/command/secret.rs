//! `atlasctl secret`: values that agents and models need, sealed in the store; one file per verb.

mod import;
mod list;
mod readers;
mod set;
mod value;

pub(in crate::command) use self::value::store;

use atlas_api::types::ObjectMetadata;
use serde::Deserialize;

use crate::command::object;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;

/// The word of secrets in the API.
const KIND: &str = "secret";

/// Verbs of `atlasctl secret`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Stores a value: from the terminal, a file or stdin, never from an argument.
    Set(set::Options),
    /// Stores a new value of a secret that exists; running attempts keep the old one.
    Rotate(set::RotateOptions),
    /// Lists secrets, without values.
    List(list::Options),
    /// Shows one secret as apply reads it, without values.
    Show(Names),
    /// Lists the agents that get the value, and the models whose calls use it.
    WhoCanRead(readers::Options),
    /// Stores the secrets of a vault file of Loki.
    Import(import::Options),
    /// Removes a secret with all versions.
    Remove(Names),
}

/// Names of secrets.
#[derive(Debug, clap::Args)]
pub(crate) struct Names {
    /// The secret's name.
    #[arg(value_name = "NAME", required = true, value_parser = names::secret)]
    names: Vec<String>,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Set(options) => set::run(context, options).await,
        Verb::Rotate(options) => set::rotate(context, options).await,
        Verb::List(options) => list::run(context, options).await,
        Verb::Show(options) => {
            names::each(context, &options.names, async |name| object::show(context, KIND, name).await).await
        }
        Verb::WhoCanRead(options) => readers::run(context, options).await,
        Verb::Import(options) => import::run(context, options).await,
        Verb::Remove(options) => {
            names::each(context, &options.names, async |name| object::remove(context, KIND, name).await).await
        }
    }
}

/// A secret as the API shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Secret {
    metadata: ObjectMetadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    provider: String,
    /// None allows all agents of the namespace.
    readers: Option<Vec<String>>,
    versions: Vec<Version>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Version {
    version: u64,
    /// The id of the key that sealed it.
    key: String,
    /// Seconds since the Unix epoch.
    created: f64,
}

impl Secret {
    fn newest(&self) -> Option<&Version> {
        self.spec.versions.last()
    }

    /// The provider; the API leaves the default away.
    fn provider(&self) -> &str {
        if self.spec.provider.is_empty() { "store" } else { &self.spec.provider }
    }

    fn permits(&self, agent: &str) -> bool {
        self.spec.readers.as_ref().is_none_or(|readers| readers.iter().any(|reader| reader == agent))
    }
}
