//! `atlasctl mcp connect` and `disconnect`: shows the change to a client's configuration, asks, and makes it.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::clients::{Client, NAME, Surroundings, Way, general};
use super::document::{BYTES_MAX, Left, difference, with_entry, without_entry};
use crate::confirm;
use crate::context::{Bridge, Context};
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
    Write {
        path: PathBuf,
        old: Option<String>,
        new: String,
    },
    /// Removes a file that was made by connecting.
    Remove {
        path: PathBuf,
        old: Option<String>,
    },
}

pub(super) fn connect(context: &Context, options: &ConnectOptions) -> Result<Exit, Failure> {
    let reach = Reach::of(context)?;
    let Some(client) = options.client else {
        context.print(&format!("{:#}\n", reach.with(general)))?;
        reach.explain(context);
        return Ok(Exit::Done);
    };
    let plan = match reach.with(|around| client.way(around)) {
        Way::Commands { add, .. } => Plan::Run(add),
        Way::File { path, section, entry } => {
            let old = read(&path)?;
            let new = with_entry(old.as_deref(), section, NAME, &entry).map_err(|error| by_hand(&path, &error))?;
            Plan::Write { path, old, new }
        }
    };
    reach.explain(context);
    if !carry_out(context, &plan, &options.change)? {
        return Ok(Exit::Done);
    }
    let word = client.word();
    context.print(&format!("connected: {word} · undo: atlasctl mcp disconnect {word}\n"))?;
    context.next("next: atlasctl mcp check");
    Ok(Exit::Done)
}

pub(super) fn disconnect(context: &Context, options: &DisconnectOptions) -> Result<Exit, Failure> {
    let word = options.client.word();
    // What is removed does not depend on the cluster.
    let plan = match (Reach { url: None, ..Reach::default() }).with(|around| options.client.way(around)) {
        Way::Commands { remove, .. } => Plan::Run(remove),
        Way::File { path, section, .. } => {
            let old = read(&path)?;
            let new = without_entry(old.as_deref(), section, NAME).map_err(|error| by_hand(&path, &error))?;
            match new {
                Left::Text(new) => Plan::Write { path, old, new },
                Left::Nothing => Plan::Remove { path, old },
                Left::Same => {
                    context.print(&format!("{word} is not connected: {} has no entry \"{NAME}\"\n", path.display()))?;
                    return Ok(Exit::Done);
                }
            }
        }
    };
    if carry_out(context, &plan, &options.change)? {
        context.print(&format!("disconnected: {word}\n"))?;
    }
    Ok(Exit::Done)
}

/// How a client reaches the gateway.
#[derive(Default)]
struct Reach {
    /// The address; none if the client has to start this program.
    url: Option<String>,
    bridge: Bridge,
    program: PathBuf,
}

impl Reach {
    /// As the command itself reaches it. Where that takes a token or a certificate, clients start this program, which has both: a copy of a
    /// token in their files would be read by others and would not be renewed, and few clients can be told which certificates to trust.
    fn of(context: &Context) -> Result<Self, Failure> {
        let bridge = context.bridge()?;
        let url = match context.needs_bridge()? {
            true => None,
            false => Some(gateway(&context.server()?.0, context.named_namespace())?),
        };
        let program = std::env::current_exe();
        let program =
            program.map_err(|error| Failure::usage(format!("the path of this program is unknown: {error}")))?;
        Ok(Self { url, bridge, program })
    }

    fn with<T>(&self, made: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let Self { url, bridge, program } = self;
        made(&Surroundings { url: url.as_deref(), bridge, program, home: &home })
    }

    fn explain(&self, context: &Context) {
        if self.url.is_none() {
            context.note("the client starts atlasctl mcp stdio, which has the token and the certificates");
        }
    }
}

/// The address of the gateway of the first controller.
fn gateway(server: &str, namespace: Option<&str>) -> Result<String, Failure> {
    let first = server.split(',').next().unwrap_or(server).trim().trim_end_matches('/');
    let scheme = if first.contains("://") { "" } else { "http://" };
    let url = format!("{scheme}{first}/mcp");
    let Some(namespace) = namespace else { return Ok(url) };
    let wrong = |_| Failure::usage(format!("\"{url}\" is no address"));
    let mut url = url::Url::parse(&url).map_err(wrong)?;
    url.query_pairs_mut().append_pair("namespace", namespace);
    Ok(url.to_string())
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match atlas_env::read_text(path, BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::usage(format!("could not read {}: {error}", path.display()))),
    }
}

fn by_hand(path: &Path, error: &str) -> Failure {
    Failure::usage(format!("{} {error}", path.display()))
        .with_next("add the server by hand: atlasctl mcp connect --print json")
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
        Plan::Remove { path, old } => {
            let lines = difference(old.as_deref().unwrap_or_default(), "");
            context.print(&format!("would remove {}:\n{lines}", path.display()))?;
        }
    }
    if options.dry_run || !(options.yes || confirm::agreed("apply? [y/N] ")?) {
        context.print("nothing was changed\n")?;
        return Ok(false);
    }
    match plan {
        Plan::Run(words) => run(words)?,
        Plan::Write { path, old, new } => {
            same(path, old.as_deref())?;
            write(path, new)?;
        }
        Plan::Remove { path, old } => {
            same(path, old.as_deref())?;
            // The file that a link leads to is the person's own.
            match path.is_symlink() {
                true => write(path, "")?,
                false => std::fs::remove_file(path)
                    .map_err(|error| Failure::usage(format!("could not remove {}: {error}", path.display())))?,
            }
        }
    }
    Ok(true)
}

/// Refuses to replace what the client has written since the change was shown.
fn same(path: &Path, old: Option<&str>) -> Result<(), Failure> {
    match read(path)?.as_deref() == old {
        true => Ok(()),
        false => Err(Failure::usage(format!("{} has changed meanwhile; nothing was written", path.display()))
            .with_next("run the command again")),
    }
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
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Others may read it only if they could read the file before: it may have keys.
    let existing = std::fs::metadata(&path).ok().map(|existing| existing.permissions());
    let mode = if existing.is_some() { 0o600 } else { 0o666 };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".atlas-").permissions(std::fs::Permissions::from_mode(mode));
    let mut beside = builder.tempfile_in(folder).map_err(failed)?;
    beside.write_all(text.as_bytes()).map_err(failed)?;
    if let Some(existing) = existing {
        beside.as_file().set_permissions(existing).map_err(failed)?;
    }
    beside.persist(&path).map(drop).map_err(|error| failed(error.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_meanwhile_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config.json");
        std::fs::write(&file, "{}").expect("writable");
        assert!(same(&file, Some("{}")).is_ok());
        let refused = same(&file, Some("")).expect_err("it has other bytes");
        assert!(
            refused.message.ends_with("config.json has changed meanwhile; nothing was written"),
            "{}",
            refused.message
        );
        assert!(same(&folder.path().join("none"), None).is_ok());
    }

    #[test]
    fn who_may_read_a_file_stays_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("config.json"), folder.path().join("link"));
        std::fs::write(&file, "{}").expect("writable");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("its own file");
        std::os::unix::fs::symlink(&file, &link).expect("writable");
        write(&link, "{\"a\":1}").expect("writable");
        assert_eq!(std::fs::read_to_string(&file).expect("readable"), "{\"a\":1}");
        assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 2, "nothing is left beside it");
    }
}
