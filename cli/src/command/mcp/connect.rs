//! `atlasctl mcp connect` and `disconnect`: shows the change to a client's configuration, asks, and makes it.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::clients::{Client, NAME, Surroundings, Way, general};
use super::document::{BYTES_MAX, difference, with_entry, without_entry};
use crate::confirm;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Options of `atlasctl mcp connect`.
#[derive(Debug, clap::Args)]
pub(crate) struct ConnectOptions {
    /// The client.
    #[arg(required_unless_present = "print")]
    client: Option<Client>,
    /// Prints the configuration for a client that is not in the list.
    #[arg(long, value_name = "FORM", value_parser = ["json"], conflicts_with = "client")]
    print: Option<String>,
    #[command(flatten)]
    change: ChangeOptions,
}

/// Options of `atlasctl mcp disconnect`.
#[derive(Debug, clap::Args)]
pub(crate) struct DisconnectOptions {
    /// The client.
    client: Client,
    #[command(flatten)]
    change: ChangeOptions,
}

#[derive(Debug, clap::Args)]
struct ChangeOptions {
    /// Shows the change without making it.
    #[arg(long)]
    dry_run: bool,
    /// Makes the change without asking.
    #[arg(long, short)]
    yes: bool,
}

/// A change of a client's configuration.
enum Plan {
    Run(Vec<String>),
    Write { path: PathBuf, old: Option<String>, new: String },
}

pub(super) fn connect(context: &Context, options: &ConnectOptions) -> Result<Exit, Failure> {
    let (server, _) = context.server()?;
    let url = gateway(&server);
    let Some(client) = options.client else {
        context.print(&format!("{:#}\n", general(&url)))?;
        return Ok(Exit::Done);
    };
    let plan = match way(client, &url, &server)? {
        Way::Commands { add, .. } => Plan::Run(add),
        Way::File { path, section, entry } => {
            let old = read(&path)?;
            let new =
                with_entry(old.as_deref(), section, NAME, &entry).map_err(|error| by_hand(&path, &error, &url))?;
            Plan::Write { path, old, new }
        }
    };
    if !carry_out(context, &plan, &options.change)? {
        return Ok(Exit::Done);
    }
    let word = client.word();
    context.print(&format!("connected: {word} · undo: atlasctl mcp disconnect {word}\n"))?;
    context.next("next: atlasctl mcp check");
    Ok(Exit::Done)
}

pub(super) fn disconnect(context: &Context, options: &DisconnectOptions) -> Result<Exit, Failure> {
    let (server, _) = context.server()?;
    let (url, word) = (gateway(&server), options.client.word());
    let plan = match way(options.client, &url, &server)? {
        Way::Commands { remove, .. } => Plan::Run(remove),
        Way::File { path, section, .. } => {
            let old = read(&path)?;
            let new = without_entry(old.as_deref(), section, NAME).map_err(|error| by_hand(&path, &error, &url))?;
            let Some(new) = new else {
                context.print(&format!("{word} is not connected: {} has no entry \"{NAME}\"\n", path.display()))?;
                return Ok(Exit::Done);
            };
            Plan::Write { path, old, new }
        }
    };
    if carry_out(context, &plan, &options.change)? {
        context.print(&format!("disconnected: {word}\n"))?;
    }
    Ok(Exit::Done)
}

/// The address of the gateway of the first controller.
fn gateway(server: &str) -> String {
    let first = server.split(',').next().unwrap_or(server).trim().trim_end_matches('/');
    let scheme = if first.contains("://") { "" } else { "http://" };
    format!("{scheme}{first}/mcp")
}

fn way(client: Client, url: &str, server: &str) -> Result<Way, Failure> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::usage(format!("the path of this program is unknown: {error}")))?;
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    Ok(client.way(&Surroundings { url, server, program: &program, home: &home }))
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::usage(format!("could not read {}: {error}", path.display()));
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let mut text = String::new();
    file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(unreadable(&format!("it is longer than {BYTES_MAX} bytes")));
    }
    Ok(Some(text))
}

fn by_hand(path: &Path, error: &str, url: &str) -> Failure {
    Failure::usage(format!("{} {error}", path.display()))
        .with_next(format!("add the server by hand: atlasctl mcp connect --print json   (its address is {url})"))
}

/// Shows the change, asks, and makes it. False if it was not made.
fn carry_out(context: &Context, plan: &Plan, options: &ChangeOptions) -> Result<bool, Failure> {
    match plan {
        Plan::Run(words) => context.print(&format!("would run: {}\n", words.join(" ")))?,
        Plan::Write { path, old, new } => {
            let changes = difference(old.as_deref().unwrap_or_default(), new);
            if changes.is_empty() {
                context.print(&format!("{} stays as it is\n", path.display()))?;
                return Ok(true);
            }
            context.print(&format!("would change {}:\n{changes}", path.display()))?;
        }
    }
    if options.dry_run || !(options.yes || confirm::agreed("apply? [y/N] ")?) {
        context.print("nothing was changed\n")?;
        return Ok(false);
    }
    match plan {
        Plan::Run(words) => run(words)?,
        Plan::Write { path, new, .. } => write(path, new)?,
    }
    Ok(true)
}

fn run(words: &[String]) -> Result<(), Failure> {
    let [program, arguments @ ..] = words else { return Ok(()) };
    let status = Command::new(program).args(arguments).status();
    let status = status.map_err(|error| {
        Failure::usage(format!("could not run {program}: {error}"))
            .with_next(format!("install it, or run the command yourself: {}", words.join(" ")))
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::usage(format!("{program} ended with {status}"))),
    }
}

/// Replaces the file as a whole, so that a client never reads half of it.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("could not write {}: {error}", path.display()));
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    // A link stays a link.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".atlas-new");
    let beside = path.with_file_name(name);
    std::fs::write(&beside, text).map_err(failed)?;
    if let Ok(existing) = std::fs::metadata(&path) {
        std::fs::set_permissions(&beside, existing.permissions()).map_err(failed)?;
    }
    std::fs::rename(&beside, &path).map_err(failed)
}
