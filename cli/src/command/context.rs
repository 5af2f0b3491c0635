//! `atlasctl context`: clusters by name. A context holds addresses of controllers, and the token that is shown to them.

mod kubernetes;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::Client;
use crate::command::auth;
use crate::config::{Config, Entry};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};
use crate::words::{could_not, shell};

/// Verbs of `atlasctl context`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists contexts; a star marks the current one.
    List,
    /// Shows one context, by default the current one.
    Show(Name),
    /// Selects a context as the current one.
    Use(OneName),
    /// Adds a context for the cluster of --server; the first one becomes the current one.
    Add(AddOptions),
    /// Removes a context.
    Remove(OneName),
}

/// An optional context.
#[derive(Debug, clap::Args)]
pub(crate) struct Name {
    /// Its name.
    #[arg(value_parser = names::context)]
    name: Option<String>,
}

/// One context.
#[derive(Debug, clap::Args)]
pub(crate) struct OneName {
    /// Its name.
    #[arg(value_parser = names::context)]
    name: String,
}

/// Options of `atlasctl context add`.
#[derive(Debug, clap::Args)]
pub(crate) struct AddOptions {
    /// Name of the new context.
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    /// Select it as the current context.
    #[arg(long = "use")]
    current: bool,
    /// Read the token for the cluster from a file; - reads it from stdin.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Read the token, and the certificate of the cluster, from a Secret of Kubernetes, as JSON; - reads it from stdin.
    ///
    /// kubectl -n atlas get secret atlas-auth -o json | atlasctl context add prod --server URL --from-secret -
    #[arg(long, value_name = "FILE", conflicts_with = "token_file")]
    from_secret: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    let mut config = context.config()?.clone();
    match verb {
        Verb::List => list(context, &config),
        Verb::Show(options) => show(context, &config, options.name.as_deref()),
        Verb::Use(options) => {
            config.context(&options.name)?;
            config.current = Some(options.name.clone());
            config.write()?;
            told(context, &options.name, "is the current context")
        }
        Verb::Add(options) => add(context, config, options),
        Verb::Remove(options) => {
            config.context(&options.name)?;
            config.contexts.remove(&options.name);
            if config.current.as_ref() == Some(&options.name) {
                config.current = None;
            }
            config.write()?;
            told(context, &options.name, "is removed")
        }
    }
}

fn list(context: &Context, config: &Config) -> Result<Exit, Failure> {
    let mut table = Table::new(&["", "CONTEXT", "SERVER"]);
    let star = |name: &String| if config.current.as_ref() == Some(name) { "*" } else { " " };
    for (name, entry) in &config.contexts {
        table.row([star(name).to_owned(), name.clone(), entry.server.clone()]);
    }
    let value = config.contexts.iter().map(|(name, entry)| value(config, name, entry)).collect();
    let names = config.contexts.keys().map(|name| format!("context/{name}")).collect();
    let text = if config.contexts.is_empty() { String::new() } else { table.text() };
    if config.contexts.is_empty() {
        context.note("no contexts");
        context.next("next: atlasctl context add NAME --server URL");
    }
    context.show(&Shown { value, text, names })?;
    Ok(Exit::Done)
}

fn value(config: &Config, name: &String, entry: &Entry) -> Value {
    json!({"name": name, "server": entry.server, "current": config.current.as_ref() == Some(name)})
}

fn show(context: &Context, config: &Config, name: Option<&str>) -> Result<Exit, Failure> {
    let name = name.map(str::to_owned).or_else(|| config.current.clone()).ok_or_else(|| {
        let failure = Failure::new("E0124", Exit::NotFound, "there is no current context");
        failure.with_next("choose one: atlasctl context use NAME   or list them: atlasctl context list")
    })?;
    let entry = config.context(&name)?;
    let text = format!("{name}   {}\n", entry.server);
    context.show(&Shown { value: value(config, &name, entry), text, names: vec![format!("context/{name}")] })?;
    Ok(Exit::Done)
}

fn add(context: &Context, mut config: Config, options: &AddOptions) -> Result<Exit, Failure> {
    let name = &options.name;
    let server = context.named_server().ok_or_else(|| {
        Failure::usage("which server?").with_next(format!("write: atlasctl context add {} --server URL", shell(name)))
    })?;
    let server = Client::new(&server)?.base();
    let ca_file = match context.named_ca_file() {
        Some(path) => Some(std::path::absolute(path).map_err(|error| could_not("read", path, &error))?),
        None => config.contexts.get(name).and_then(|known| known.ca_file.clone()),
    };
    if let Some(known) = config.contexts.get(name).filter(|known| known.server != server) {
        let failure = Failure::new("E0124", Exit::Conflict, format!("\"{name}\" is already {}", known.server));
        return Err(failure.with_next(format!("remove it first: atlasctl context remove {}", shell(name))));
    }
    let known = config.contexts.get(name);
    let mut ca = known.and_then(|known| known.ca.clone()).filter(|_| context.named_ca_file().is_none());
    let (token, login) = match (&options.token_file, &options.from_secret) {
        (Some(path), _) => (Some(auth::read_token(path)?), None),
        (None, Some(path)) => {
            let secret = kubernetes::read(path)?;
            ca = secret.ca.filter(|_| context.named_ca_file().is_none()).or(ca);
            (Some(secret.token), None)
        }
        (None, None) => (known.and_then(|known| known.token.clone()), known.and_then(|known| known.login.clone())),
    };
    config.contexts.insert(name.clone(), Entry { server: server.clone(), token, ca_file, ca, login });
    if options.current || config.current.is_none() {
        config.current = Some(name.clone());
    }
    config.write()?;
    told(context, name, &format!("is {server}"))
}

fn told(context: &Context, name: &str, what: &str) -> Result<Exit, Failure> {
    context.note(&format!("{name} {what}"));
    let shown = Shown { value: json!({"name": name}), text: String::new(), names: vec![format!("context/{name}")] };
    context.show(&shown)?;
    Ok(Exit::Done)
}
