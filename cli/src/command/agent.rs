//! `atlasctl agent`: one file per verb.

mod change;
mod delete;
mod diff;
mod eval;
mod list;
mod revisions;
mod rollback;
mod schema;
mod search;
mod show;

pub(crate) use change::retire;
pub(crate) use list::{Options as ListOptions, list, watch};
pub(crate) use show::show;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Verbs of `atlasctl agent`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists agents.
    List(list::Options),
    /// Finds agents by capability, or by text in their names and descriptions.
    Search(search::Options),
    /// Shows one agent: its description, program and contract.
    Show(show::Options),
    /// Prints an agent's input and output schemas.
    Schema(schema::Options),
    /// Lists all versions of an agent, including retired ones.
    Versions(list::VersionsOptions),
    /// Lists the packages that a version has and had.
    Revisions(revisions::Options),
    /// Registers an earlier package of a version again.
    Rollback(rollback::Options),
    /// Shows the differences between the contracts of two versions; exits 1 if they differ.
    Diff(diff::Options),
    /// Runs an agent over a data set, and exits 1 if not enough outputs are right.
    Eval(eval::Options),
    /// Prints a data set made of the completed jobs of an agent.
    DataSet(eval::DataSetOptions),
    /// Marks a version as deprecated; it still accepts jobs.
    Deprecate(change::DeprecateOptions),
    /// Lets jobs of a version start again although its last jobs failed.
    Resume(change::Options),
    /// Retires a version: it accepts no new jobs; its existing jobs finish.
    Retire(change::Options),
    /// Deletes retired versions that have no waiting or running jobs; controllers also do this automatically later.
    Delete(delete::Options),
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::List(options) => list(context, options).await,
        Verb::Search(options) => search::run(context, options).await,
        Verb::Show(options) => show::run(context, options).await,
        Verb::Schema(options) => schema::run(context, options).await,
        Verb::Versions(options) => list::versions(context, options).await,
        Verb::Revisions(options) => revisions::run(context, options).await,
        Verb::Rollback(options) => rollback::run(context, options).await,
        Verb::Diff(options) => diff::run(context, options).await,
        Verb::Eval(options) => eval::run(context, options).await,
        Verb::DataSet(options) => eval::data_set(context, options).await,
        Verb::Deprecate(options) => change::deprecate(context, options).await,
        Verb::Resume(options) => change::resume(context, options).await,
        Verb::Retire(options) => change::run(context, options).await,
        Verb::Delete(options) => delete::run(context, options).await,
    }
}

/// Like [`named`], but the version may come from an option instead; giving both is refused.
pub(crate) fn one_version<'a>(text: &'a str, option: Option<&'a str>) -> Result<(&'a str, Option<&'a str>), Failure> {
    match (named(text), option) {
        ((_, Some(_)), Some(_)) => Err(Failure::usage("the version was given twice: after the name and as --version")),
        ((name, version), option) => Ok((name, version.or(option))),
    }
}

/// Splits `hello@^1.2` into the agent's name and the version requirement; `hello` has no requirement.
pub(crate) fn named(text: &str) -> (&str, Option<&str>) {
    match text.split_once('@') {
        Some((name, requirement)) if !requirement.is_empty() => (name, Some(requirement)),
        _ => (text.trim_end_matches('@'), None),
    }
}
