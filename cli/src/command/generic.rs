//! `atlasctl get`, `describe` and `delete`: the same verbs for every kind of object.

use std::fmt;
use std::str::FromStr;

use crate::command::agent::{self, named};
use crate::command::{cluster, job, node, object};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::ListOptions;
use crate::watch::Watching;
use crate::words;

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Job,
    Agent,
    Node,
    Controller,
    /// One that the controllers know, by its word.
    Object(&'static str),
}

/// `KIND`, or `KIND/NAME` as `-o name` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: Kind,
    name: Option<String>,
}

impl Target {
    /// Whether the name was given with the kind.
    pub(super) fn has_name(&self) -> bool {
        self.name.is_some()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Job => "job",
            Self::Agent => "agent",
            Self::Node => "node",
            Self::Controller => "controller",
            Self::Object(kind) => kind,
        })
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once('/').map_or((text, None), |(kind, name)| (kind, Some(name.to_owned())));
        let kind = match kind {
            "job" | "jobs" => Kind::Job,
            "agent" | "agents" => Kind::Agent,
            "node" | "nodes" => Kind::Node,
            "controller" | "controllers" => Kind::Controller,
            // The controllers have the table of these kinds. A command line has one or two words, so they can live as long as it.
            kind if is_word(kind) => Kind::Object(kind.to_owned().leak()),
            _ => return Err("job, agent, node, controller or a kind of object, optionally with /NAME".to_owned()),
        };
        Ok(Self { kind, name: name.filter(|name| !name.is_empty()) })
    }
}

/// Whether a text can be the word of a kind.
fn is_word(text: &str) -> bool {
    (1..=63).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// Options of `atlasctl get`.
#[derive(Debug, clap::Args)]
pub(crate) struct GetOptions {
    /// Kind: job, agent, node, controller or a kind of object, such as webhook; or KIND/NAME.
    #[arg(value_name = "KIND")]
    target: Target,
    /// Names of the objects.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    list: ListOptions,
    #[command(flatten)]
    watching: Watching,
}

/// Options of `atlasctl describe`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Kind: job, agent, node, controller or a kind of object, such as webhook; or KIND/NAME.
    #[arg(value_name = "KIND")]
    target: Target,
    /// Names of the objects.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Options of `atlasctl delete`.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteOptions {
    /// Kind: job, agent, node, controller or a kind of object, such as webhook; or KIND/NAME.
    #[arg(value_name = "KIND")]
    target: Target,
    /// Names; for agents NAME@VERSION.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Skip the confirmation for removing a controller.
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn get(context: &Context, options: &GetOptions) -> Result<Exit, Failure> {
    let (kind, watching) = (options.target.kind, options.watching);
    match kind {
        Kind::Controller if watching.watch => {
            let failure = Failure::usage("controllers cannot be watched");
            return Err(failure.with_next("wait for one: atlasctl wait controller NAME --for leading"));
        }
        Kind::Object(_) if watching.watch => {
            let failure = Failure::usage(format!("objects of the kind {kind} cannot be watched"));
            return Err(failure.with_next("follow their changes: atlasctl event tail --kind object"));
        }
        _ => {}
    }
    match &*some(&options.target, &options.names)? {
        [] => list(context, kind, options.list.clone(), watching).await,
        [name] if watching.watch => watch(context, kind, &bare(name, kind)?, &options.list).await,
        _ if watching.watch => Err(Failure::usage("only one object can be watched")),
        names => names::each(context, names, async |name| show(context, kind, &bare(name, kind)?).await).await,
    }
}

async fn list(context: &Context, kind: Kind, list: ListOptions, watching: Watching) -> Result<Exit, Failure> {
    match kind {
        Kind::Job => {
            let which = job::ListOptions { list, ..job::ListOptions::default() };
            job::list(context, &job::Listing { which, all: false, watching }).await
        }
        Kind::Agent => agent::list(context, &agent::ListOptions { all: false, list, watching }).await,
        Kind::Node => node::list(context, &node::ListOptions { list, watching }).await,
        Kind::Controller => cluster::members(context, &list).await,
        Kind::Object(kind) => object::list(context, kind, &list).await,
    }
}

async fn watch(context: &Context, kind: Kind, name: &str, list: &ListOptions) -> Result<Exit, Failure> {
    match kind {
        Kind::Job => job::watch_in_list(context, name, list).await,
        Kind::Agent => {
            let (name, requirement) = named(name);
            agent::watch(context, name, requirement, list).await
        }
        Kind::Node => node::watch(context, name, list).await,
        // `get` refuses to watch these before it calls this function.
        Kind::Controller | Kind::Object(_) => show(context, kind, name).await,
    }
}

pub(crate) async fn describe(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let kind = options.target.kind;
    let names = some_names(&options.target, &options.names, "describe")?;
    names::each(context, &names, async |name| show(context, kind, &bare(name, kind)?).await).await
}

async fn show(context: &Context, kind: Kind, name: &str) -> Result<Exit, Failure> {
    match kind {
        Kind::Job => job::show(context, name).await,
        Kind::Agent => {
            let (name, requirement) = named(name);
            agent::show(context, name, requirement).await
        }
        Kind::Node => node::show(context, name).await,
        Kind::Controller => cluster::member(context, name).await,
        Kind::Object(kind) => object::show(context, kind, name).await,
    }
}

pub(crate) async fn delete(context: &Context, options: &DeleteOptions) -> Result<Exit, Failure> {
    let kind = options.target.kind;
    let names = some_names(&options.target, &options.names, "delete")?;
    names::each(context, &names, async |name| remove(context, kind, &bare(name, kind)?, options.yes).await).await
}

async fn remove(context: &Context, kind: Kind, name: &str, yes: bool) -> Result<Exit, Failure> {
    match kind {
        Kind::Job => job::cancel(context, name).await,
        Kind::Agent => match named(name) {
            (name, Some(version)) => agent::retire(context, name, version).await,
            (name, None) => {
                let shell = words::shell(name);
                Err(Failure::usage(format!("which version of \"{name}\"?")).with_next(format!(
                    "write: atlasctl delete agent {shell}@VERSION   or list them: atlasctl agent versions {shell}"
                )))
            }
        },
        Kind::Node => node::remove(context, name).await,
        Kind::Controller => cluster::remove(context, name, yes).await,
        Kind::Object(kind) => object::remove(context, kind, name).await,
    }
}

/// All names on the command line: the one in `KIND/NAME` and those in the arguments after it, each with or without its
/// kind.
fn some(target: &Target, names: &[String]) -> Result<Vec<String>, Failure> {
    let all: Vec<String> = target.name.iter().chain(names).cloned().collect();
    all.iter().try_for_each(|name| bare(name, target.kind).map(drop))?;
    Ok(all)
}

/// Like [`some`], but refuses an empty list of names.
fn some_names(target: &Target, names: &[String], verb: &str) -> Result<Vec<String>, Failure> {
    one(target, names.first().map(String::as_str), verb)?;
    some(target, names)
}

/// A name without its kind.
fn bare(name: &str, kind: Kind) -> Result<String, Failure> {
    match kind {
        Kind::Job => names::ran(name),
        Kind::Agent => names::agent(name),
        Kind::Node => names::node(name),
        Kind::Controller => names::controller(name),
        Kind::Object(_) if name.is_empty() => Err("no name given".to_owned()),
        Kind::Object(_) => Ok(name.to_owned()),
    }
    .map_err(Failure::usage)
}

/// The name from `KIND/NAME` or from the argument after the kind.
pub(super) fn one<'a>(target: &'a Target, name: Option<&'a str>, verb: &str) -> Result<&'a str, Failure> {
    let name = target.name.as_deref().or(name);
    let name =
        name.ok_or_else(|| Failure::usage("no name given").with_next(format!("write: atlasctl {verb} KIND NAME")))?;
    Ok(name.strip_prefix(&format!("{}/", target.kind)).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_kinds_with_or_without_a_name() {
        let target = |text: &str| text.parse::<Target>().map(|target| (target.kind, target.name));
        assert_eq!(target("jobs"), Ok((Kind::Job, None)));
        assert_eq!(target("agent/hello@1.0.0"), Ok((Kind::Agent, Some("hello@1.0.0".to_owned()))));
        assert_eq!(target("node/"), Ok((Kind::Node, None)));
        assert_eq!(target("webhook/ci"), Ok((Kind::Object("webhook"), Some("ci".to_owned()))));
        assert!(target("Pod").is_err());
    }
}
