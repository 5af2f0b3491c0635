//! `atlasctl apply`: makes the cluster be what folders of agents and documents say; a second time changes nothing.

mod documents;
mod prune;
mod split;
mod standing;

use std::path::PathBuf;

use atlas_package::Package;
use serde_json::{Value, json};

use self::documents::{Problem, refusal};
pub(super) use self::documents::{Sourced, object_of, read};
pub(super) use self::standing::{Standing, applicable, change, compare};
use crate::api::{Agent, Node};
use crate::client::Client;
use crate::confirm;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// What to apply.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A folder of agents and documents, a file of documents as get -o yaml prints them, or - for stdin; may be repeated.
    ///
    /// Of a folder every .yaml, .yml and .json file is read that is not in the folder of an agent; links are not followed. A file
    /// may hold several documents with --- between them.
    #[arg(short, long = "file", required = true, value_name = "PATH|-", allow_hyphen_values = true)]
    files: Vec<PathBuf>,
    /// Says what would change, and changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Also retires every agent version that has the labels and is not in the files; a node stays as it is.
    ///
    /// A retired version takes no new jobs, and comes back when it is applied again. Only agents can be pruned: a node is a
    /// machine, which no document makes.
    #[arg(long, requires = "labels")]
    prune: bool,
    /// With --prune: a label that the contracts of all these agents have, KEY=VALUE; may be repeated.
    #[arg(short, long = "label", requires = "prune", value_name = "KEY=VALUE", value_parser = words::parse_label)]
    labels: Vec<(String, String)>,
    /// With --prune: does not ask.
    #[arg(short, long, requires = "prune")]
    yes: bool,
}

/// What somebody wants to be there.
pub(in crate::command) enum Wanted {
    /// An agent, from its folder.
    Package(Box<Package>),
    /// An agent version, from a document: its package must be there.
    Agent {
        /// The version.
        agent: Agent,
        /// Whether the document says something of its deprecation.
        deprecation: bool,
    },
    /// A node that takes new jobs or not, and the labels that operators gave it.
    Node(Node),
}

impl Wanted {
    pub(in crate::command) fn name(&self) -> String {
        match self {
            Self::Package(package) => format!("agent/{}@{}", package.contract.name, package.contract.version),
            Self::Agent { agent, .. } => format!("agent/{}@{}", agent.name, agent.version),
            Self::Node(node) => format!("node/{}", node.id),
        }
    }
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let wanted = read(&options.files)?;
    if options.prune {
        prune::check(&wanted, &options.labels)?;
    }
    // All is compared before the first change: a document that cannot be applied leaves nothing half done.
    let compared = compare_all(&client, wanted).await?;
    let pruned = match options.prune {
        true => prune::find(&client, &compared, &options.labels).await?,
        false => Vec::new(),
    };
    if !pruned.is_empty() && !options.dry_run && !options.yes {
        ask(context, &pruned)?;
    }
    let mut done = Done { dry_run: options.dry_run, values: Vec::new(), names: Vec::new(), text: String::new() };
    let ended = carry_out(&client, compared, &pruned, &mut done).await;
    // What was changed is told, also if the rest could not be.
    context.show(&Shown { value: Value::Array(done.values), text: done.text, names: done.names })?;
    ended.map(|()| Exit::Done)
}

/// Compares each with the cluster; every one that cannot be applied is told.
async fn compare_all(client: &Client, wanted: Vec<Sourced>) -> Result<Vec<(Wanted, Standing)>, Failure> {
    let (mut compared, mut problems) = (Vec::new(), Vec::new());
    for Sourced { wanted, place } in wanted {
        let standing = compare(client, &wanted).await?;
        match applicable(&wanted, &standing) {
            Ok(()) => compared.push((wanted, standing)),
            Err(failure) => problems.push(Problem::about(place, failure)),
        }
    }
    refusal(problems).map_or(Ok(compared), Err)
}

/// Lets a person agree to what is retired.
fn ask(context: &Context, pruned: &[prune::Pruned]) -> Result<(), Failure> {
    for version in pruned {
        context.note(&format!("{}  would be retired", version.shown()));
    }
    let count = words::count(pruned.len() as u64, "agent version");
    if confirm::agreed(&format!("retire {count}? [y/N] "))? {
        return Ok(());
    }
    let failure = Failure::new("E0113", Exit::Usage, format!("nothing was changed: {count} to retire"));
    Err(failure.with_next("do it: --yes   or look first: --dry-run"))
}

/// What is told of what was done.
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

/// Changes what is to be changed, then retires what is not wanted any more: what replaces it is there by then.
async fn carry_out(
    client: &Client,
    compared: Vec<(Wanted, Standing)>,
    pruned: &[prune::Pruned],
    done: &mut Done,
) -> Result<(), Failure> {
    for (wanted, standing) in compared {
        let name = wanted.name();
        let word = match &standing {
            Standing::Same => "unchanged",
            Standing::Missing => "created",
            Standing::Other(_) => "changed",
        };
        if !done.dry_run && !matches!(standing, Standing::Same) {
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
