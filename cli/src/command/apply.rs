//! `atlasctl apply`: applies folders of agents and documents to the cluster; idempotent.

mod compare;
mod documents;
pub(super) mod prune;
mod split;

use std::collections::BTreeSet;
use std::path::PathBuf;

use atlas_api::types::{Agent, Node};
use atlas_package::Package;
use serde_json::{Value, json};

pub(super) use self::compare::{Comparison, applicable, change, compare};
use self::documents::{Problem, refusal};
pub(super) use self::documents::{Sourced, object_of, read};
use crate::client::Client;
use crate::command::deploy::published::taken;
use crate::command::object;
use crate::confirm;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::program::{Checker, RunsOn};
use crate::words;

/// Options of `atlasctl apply`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder of agents and documents, file of documents as printed by get -o yaml, or - for stdin; repeatable.
    ///
    /// Of a folder every .yaml, .yml and .json file is read that is not in the folder of an agent; links are not followed. A file
    /// may hold several documents with --- between them.
    #[arg(value_name = "PATH|-", required_unless_present = "files")]
    paths: Vec<PathBuf>,
    /// The same, as an option.
    #[arg(short, long = "file", value_name = "PATH|-", allow_hyphen_values = true)]
    files: Vec<PathBuf>,
    /// Print what would change, without changing anything.
    #[arg(long)]
    dry_run: bool,
    /// Replace the packages of agent versions that are deployed with other files; running and waiting jobs keep the old ones.
    #[arg(long)]
    replace: bool,
    /// Also retire agent versions that have the labels and are not in the files; nodes are not changed.
    ///
    /// A retired version takes no new jobs, and comes back when it is applied again. Only agents can be pruned: a node is a
    /// machine, which no document makes.
    #[arg(long, requires = "labels")]
    prune: bool,
    /// With --prune: label of the agents to consider, KEY=VALUE; repeatable.
    #[arg(short, long = "label", requires = "prune", value_name = "KEY=VALUE", value_parser = words::parse_label)]
    labels: Vec<(String, String)>,
    /// With --prune: skip the confirmation.
    #[arg(short, long, requires = "prune")]
    yes: bool,
}

/// A wanted object.
pub(in crate::command) enum Wanted {
    /// An agent, from its folder.
    Package(Box<Package>),
    /// An agent version, from a document; its package must already be registered.
    Agent {
        /// The version.
        agent: Agent,
        /// Whether the document mentions the deprecation of the version.
        deprecation: bool,
    },
    /// A node: whether it is cordoned, and its labels from operators.
    Node {
        node: Node,
        /// Whether the document tells the labels of operators.
        labels: bool,
    },
    /// An object of a kind that the controllers know.
    Object(object::Wanted),
}

impl Wanted {
    pub(in crate::command) fn name(&self) -> String {
        match self {
            Self::Package(package) => format!("agent/{}@{}", package.contract.name, package.contract.version),
            Self::Agent { agent, .. } => format!("agent/{}@{}", agent.name, agent.version),
            Self::Node { node, .. } => format!("node/{}", node.id),
            Self::Object(object) => format!("{}/{}", object.kind, object.name),
        }
    }
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let wanted = read(&[&options.paths[..], &options.files].concat())?;
    if options.prune {
        prune::check(&wanted, &options.labels)?;
    }
    // Everything is compared before the first change, so that an invalid document cannot leave the files half applied.
    let held = names_of(&wanted);
    let compared = compare_all(context, &client, wanted, options.replace).await?;
    let pruned = match options.prune {
        true => prune::find(&client, &held, &options.labels).await?,
        false => Vec::new(),
    };
    if !pruned.is_empty() && !options.dry_run && !options.yes {
        ask(context, &pruned)?;
    }
    let mut done = Done { dry_run: options.dry_run, values: Vec::new(), names: Vec::new(), text: String::new() };
    let ended = carry_out(&client, compared, &pruned, &mut done).await;
    // The changes that were made are reported even if a later change failed.
    context.show(&Shown { value: Value::Array(done.values), text: done.text, names: done.names })?;
    ended.map(|()| Exit::Done)
}

/// The names of what is wanted.
pub(super) fn names_of(wanted: &[Sourced]) -> BTreeSet<String> {
    wanted.iter().map(|one| one.wanted.name()).collect()
}

/// Compares each with the cluster, and checks that programs of new agents can start; all failures are reported.
async fn compare_all(
    context: &Context,
    client: &Client,
    wanted: Vec<Sourced>,
    replace: bool,
) -> Result<Vec<(Wanted, Comparison)>, Failure> {
    let (mut compared, mut problems) = (Vec::new(), Vec::new());
    let checker = Checker::new(RunsOn::Workers { tested: false });
    for Sourced { wanted, place, folder } in wanted {
        let standing = compare(client, &wanted).await?;
        if let Err(failure) = applicable(&wanted, &standing) {
            problems.push(Problem::about(place, failure));
            continue;
        }
        if let Some((package, digest)) = compare::other_package(&wanted, &standing).filter(|_| !replace) {
            problems.push(Problem::about(place, taken(package, digest)));
            continue;
        }
        if let (Wanted::Package(package), Some(folder)) = (&wanted, &folder)
            && !matches!(standing, Comparison::Same)
        {
            let findings = checker.check(folder, package).await;
            let agent = format!("{} {}", package.contract.name, package.contract.version);
            findings.warnings.iter().for_each(|warning| context.note(&format!("{agent}   warning    {warning}")));
            problems.extend(findings.refusal(&agent).map(|failure| Problem::whole(folder, failure)));
        }
        compared.push((wanted, standing));
    }
    refusal(problems).map_or(Ok(compared), Err)
}

/// Asks the user to confirm the versions that will be retired.
fn ask(context: &Context, pruned: &[prune::Pruned]) -> Result<(), Failure> {
    for version in pruned {
        context.note(&format!("{}  would be retired", version.shown()));
    }
    let count = words::count(pruned.len() as u64, "agent version");
    if confirm::agreed(&format!("retire {count}? [y/N] "))? {
        return Ok(());
    }
    let failure = Failure::new("E0113", Exit::Usage, format!("nothing was changed: {count} to retire"));
    Err(failure.with_next("confirm: --yes   or preview: --dry-run"))
}

/// The report of the changes.
struct Done {
    dry_run: bool,
    values: Vec<Value>,
    names: Vec<String>,
    text: String,
}

impl Done {
    fn add(&mut self, name: String, word: &str) {
        self.text += &format!("{name}  {word}{}\n", if self.dry_run { " (dry run)" } else { "" });
        self.values.push(json!({"name": name, "result": word}));
        self.names.push(name);
    }
}

/// Applies changes first, then retires unwanted versions, so that their replacements exist.
async fn carry_out(
    client: &Client,
    compared: Vec<(Wanted, Comparison)>,
    pruned: &[prune::Pruned],
    done: &mut Done,
) -> Result<(), Failure> {
    for (wanted, standing) in compared {
        let name = wanted.name();
        let word = match &standing {
            Comparison::Same => "unchanged",
            Comparison::Missing => "created",
            Comparison::Other(_) => "changed",
        };
        if !done.dry_run && !matches!(standing, Comparison::Same) {
            change(client, wanted, &standing).await?;
        }
        done.add(name, word);
    }
    for version in pruned {
        if !done.dry_run {
            version.retire(client).await?;
        }
        done.add(version.shown(), "retired");
    }
    Ok(())
}
