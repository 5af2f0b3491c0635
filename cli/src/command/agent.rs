//! `atlasctl agent`: one file a verb.

mod change;
mod delete;
mod diff;
mod list;
mod schema;
mod search;
mod show;

pub(crate) use change::retire;
pub(crate) use list::{Options as ListOptions, list, watch};
pub(crate) use show::show;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to do with agents.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists agents.
    List(list::Options),
    /// Finds agents by their capabilities, or by words in their names and descriptions.
    Search(search::Options),
    /// Shows one agent: what it does, its program and its contract.
    Show(show::Options),
    /// Prints the schemas of an agent's input and output.
    Schema(schema::Options),
    /// Lists all versions of an agent, also retired ones.
    Versions(list::VersionsOptions),
    /// Says in what the contracts of two versions differ; exits 1 if they do.
    Diff(diff::Options),
    /// Marks a version that should not be used any more: it still takes jobs.
    Deprecate(change::DeprecateOptions),
    /// Takes a version out of service; its jobs finish.
    Retire(change::Options),
    /// Forgets retired versions that no job needs any more; a controller does so by itself after a while.
    Delete(delete::Options),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list(context, options).await,
        Verb::Search(options) => search::run(context, options).await,
        Verb::Show(options) => show::run(context, options).await,
        Verb::Schema(options) => schema::run(context, options).await,
        Verb::Versions(options) => list::versions(context, options).await,
        Verb::Diff(options) => diff::run(context, options).await,
        Verb::Deprecate(options) => change::deprecate(context, options).await,
        Verb::Retire(options) => change::run(context, options).await,
        Verb::Delete(options) => delete::run(context, options).await,
    }
}

/// The same where an option may say which version: not both.
pub(crate) fn one_version<'a>(text: &'a str, option: Option<&'a str>) -> Result<(&'a str, Option<&'a str>), Failure> {
    match (named(text), option) {
        ((_, Some(_)), Some(_)) => Err(Failure::usage("the version was given twice: behind the name and as --version")),
        ((name, version), option) => Ok((name, version.or(option))),
    }
}

/// `hello` or `hello@^1.2`: an agent, and which version of it.
pub(crate) fn named(text: &str) -> (&str, Option<&str>) {
    match text.split_once('@') {
        Some((name, requirement)) if !requirement.is_empty() => (name, Some(requirement)),
        _ => (text.trim_end_matches('@'), None),
    }
}
