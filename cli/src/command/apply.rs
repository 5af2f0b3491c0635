//! `atlasctl apply`: makes the cluster be what folders of agents and documents say; a second time changes nothing.

use std::path::PathBuf;

use atlas_contract::yaml;
use atlas_package::Package;
use serde_json::{Map, Value, json};

use crate::api::{self, Agent, Node};
use crate::client::Client;
use crate::command::deploy::{folders, pack};
use crate::context::Context;
use crate::difference::{self, Change};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::output::Shown;

/// What to apply.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A folder of agents, a document as get -o yaml prints it, or - for stdin; may be repeated.
    #[arg(short, long = "file", required = true, value_name = "PATH|-", allow_hyphen_values = true)]
    files: Vec<PathBuf>,
    /// Says what would change, and changes nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Where a document has the labels of a node that operators gave it.
const LABELS: &str = "/operator_labels";

/// What somebody wants to be there.
pub(super) enum Wanted {
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
    pub(super) fn name(&self) -> String {
        match self {
            Self::Package(package) => format!("agent/{}@{}", package.contract.name, package.contract.version),
            Self::Agent { agent, .. } => format!("agent/{}@{}", agent.name, agent.version),
            Self::Node(node) => format!("node/{}", node.id),
        }
    }
}

/// What is the matter with one of them: nothing, it is not there, or it is other.
pub(super) enum Standing {
    Same,
    Missing,
    Other(Vec<Change>),
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let wanted = read(&options.files)?;
    // All is compared before the first change: a document that cannot be applied leaves nothing half done.
    let mut compared = Vec::new();
    for wanted in wanted {
        let standing = compare(&client, &wanted).await?;
        applicable(&wanted, &standing)?;
        compared.push((wanted, standing));
    }
    let (mut values, mut names, mut text) = (Vec::new(), Vec::new(), String::new());
    for (wanted, standing) in compared {
        let name = wanted.name();
        let word = match &standing {
            Standing::Same => "unchanged",
            Standing::Missing => "created",
            Standing::Other(_) => "changed",
        };
        if !options.dry_run && !matches!(standing, Standing::Same) {
            change(&client, wanted, &standing).await?;
        }
        text += &format!("{name}  {word}{}\n", if options.dry_run { " (dry run)" } else { "" });
        values.push(json!({"name": name, "result": word}));
        names.push(name);
    }
    context.show(&Shown { value: Value::Array(values), text, names })?;
    Ok(Exit::Done)
}

/// Reads all that is wanted, from folders and documents.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Wanted>, Failure> {
    let mut wanted = Vec::new();
    for file in files {
        if file.is_dir() {
            for folder in folders(file)? {
                wanted.push(Wanted::Package(Box::new(pack(&folder)?)));
            }
            continue;
        }
        let (text, what) = match file.to_str() {
            Some("-") => (input::read_stdin()?, "stdin".to_owned()),
            _ => (input::read_file(file)?, format!("\"{}\"", file.display())),
        };
        let document = yaml::load(text.as_bytes(), yaml::Budget::default());
        let refused = |why: String| Failure::new("E0125", Exit::Invalid, format!("{what} cannot be applied: {why}"));
        let document = document.map_err(|error| refused(atlas_env::chain(&error)))?;
        let objects = match document {
            Value::Array(objects) => objects,
            object => vec![object],
        };
        for object in &objects {
            wanted.push(object_of(object).map_err(|why| {
                refused(why)
                    .with_next("what can be applied: atlasctl get agent -o yaml   or: atlasctl get node -o yaml")
            })?);
        }
    }
    Ok(wanted)
}

/// An object by the members that only its kind has.
pub(super) fn object_of(object: &Value) -> Result<Wanted, String> {
    let has = |names: &[&str]| names.iter().all(|name| object.get(name).is_some());
    let wrong = |failure: Failure| failure.message;
    if has(&["name", "version", "digest"]) {
        let deprecation = has(&["deprecated"]);
        return api::read(object).map(|agent| Wanted::Agent { agent, deprecation }).map_err(wrong);
    }
    if has(&["id", "health", "cordoned"]) {
        let labels = object.get("operator_labels").and_then(Value::as_object).into_iter().flatten();
        if let Some((key, value)) = labels.clone().find(|(_, value)| !value.is_string()) {
            return Err(format!("/operator_labels/{key} is to be text: write '{value}'"));
        }
        return api::read(object).map(Wanted::Node).map_err(wrong);
    }
    if has(&["agent_name", "input_data"]) {
        return Err("a job is not a wish but an event: run it with atlasctl run".to_owned());
    }
    if has(&["agent"]) {
        return Err("a contract alone has no program: apply the folder that it is in".to_owned());
    }
    Err("it is neither an agent nor a node".to_owned())
}

/// How the cluster stands to what is wanted.
pub(super) async fn compare(client: &Client, wanted: &Wanted) -> Result<Standing, Failure> {
    match wanted {
        Wanted::Package(package) => {
            let (name, version) = (package.contract.name.as_str(), package.contract.version.to_string());
            let Some(value) = agent(client, name, &version).await? else { return Ok(Standing::Missing) };
            let known: Agent = api::read(&value)?;
            if known.digest == package.digest.to_string() {
                return Ok(Standing::Same);
            }
            let mut changes = difference::between(&value["contract"], &package.contract.to_json());
            changes.push(changed("/digest", json!(known.digest), json!(package.digest.to_string())));
            Ok(Standing::Other(changes))
        }
        Wanted::Agent { agent, deprecation } => {
            let Some(value) = self::agent(client, &agent.name, &agent.version).await? else {
                return Ok(if agent.retired { Standing::Same } else { Standing::Missing });
            };
            let known: Agent = api::read(&value)?;
            let mut changes = Vec::new();
            if known.digest != agent.digest {
                changes.push(changed("/digest", json!(known.digest), json!(agent.digest)));
            }
            if known.retired != agent.retired {
                changes.push(changed("/retired", json!(known.retired), json!(agent.retired)));
            }
            if *deprecation && known.deprecated != agent.deprecated {
                changes.push(changed("/deprecated", json!(known.deprecated), json!(agent.deprecated)));
            }
            Ok(if changes.is_empty() { Standing::Same } else { Standing::Other(changes) })
        }
        Wanted::Node(node) => {
            let known: Node = match client.get(&["api", "nodes", &node.id], &[]).await {
                Ok(value) => api::read(&value)?,
                Err(failure) if failure.exit == Exit::NotFound => return Ok(Standing::Missing),
                Err(failure) => return Err(failure),
            };
            let mut changes = Vec::new();
            if known.cordoned != node.cordoned {
                changes.push(changed("/cordoned", json!(known.cordoned), json!(node.cordoned)));
            }
            if node.operator_labels.is_some() && known.operator_labels != node.operator_labels {
                changes.push(changed(LABELS, json!(known.operator_labels), json!(node.operator_labels)));
            }
            Ok(if changes.is_empty() { Standing::Same } else { Standing::Other(changes) })
        }
    }
}

fn changed(place: &str, old: Value, new: Value) -> Change {
    Change { place: place.to_owned(), old: Some(old), new: Some(new) }
}

async fn agent(client: &Client, name: &str, version: &str) -> Result<Option<Value>, Failure> {
    match client.get(&["api", "agents", name], &[("version", version)]).await {
        Ok(value) => Ok(Some(value)),
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A document holds no package, and no wish makes a machine.
pub(super) fn applicable(wanted: &Wanted, standing: &Standing) -> Result<(), Failure> {
    let why = match (wanted, standing) {
        (_, Standing::Same) | (Wanted::Package(_), _) => return Ok(()),
        (Wanted::Node(_), Standing::Missing) => "no such node is registered, and a document makes none".to_owned(),
        (Wanted::Node(_), Standing::Other(_)) => return Ok(()),
        (Wanted::Agent { .. }, Standing::Other(changes)) => {
            let possible = |change: &Change| match change.place.as_str() {
                "/retired" => change.new == Some(json!(true)),
                place => place == "/deprecated",
            };
            return if changes.iter().all(possible) { Ok(()) } else { Err(no_package(wanted)) };
        }
        (Wanted::Agent { .. }, Standing::Missing) => return Err(no_package(wanted)),
    };
    Err(Failure::new("E0125", Exit::NotFound, format!("{} cannot be applied: {why}", wanted.name())))
}

fn no_package(wanted: &Wanted) -> Failure {
    let message =
        format!("{} cannot be applied: this package is not registered, and a document holds none", wanted.name());
    Failure::new("E0125", Exit::Conflict, message).with_next("apply its folder: atlasctl apply -f DIR")
}

/// Makes it so.
pub(super) async fn change(client: &Client, wanted: Wanted, standing: &Standing) -> Result<(), Failure> {
    match wanted {
        Wanted::Package(package) => client.upload(&["api", "agents"], package.bytes).await.map(drop),
        Wanted::Agent { agent, .. } => {
            let Standing::Other(changes) = standing else { return Ok(()) };
            let path = ["api", "agents", &agent.name, "versions", &agent.version];
            if changes.iter().any(|change| change.place == "/deprecated") {
                let body = match &agent.deprecated {
                    Some(message) => json!({"message": message}),
                    None => json!({"deprecated": false}),
                };
                let mut deprecate = path.to_vec();
                deprecate.push("deprecate");
                client.post(&deprecate, &[], &body).await?;
            }
            if changes.iter().any(|change| change.place == "/retired") {
                client.delete(&path).await?;
            }
            Ok(())
        }
        Wanted::Node(node) => {
            let Standing::Other(changes) = standing else { return Ok(()) };
            let cordons = changes.iter().any(|change| change.place == "/cordoned");
            // New labels may bring the node jobs at once, which it is not to get while it is cordoned.
            if cordons && node.cordoned {
                client.post(&["api", "nodes", &node.id, "cordon"], &[], &json!({})).await?;
            }
            let labels = changes.iter().find(|change| change.place == LABELS);
            if let Some(Change { old: Some(Value::Object(old)), new: Some(Value::Object(new)), .. }) = labels {
                // Only what is other than it was: another person may have changed the rest meanwhile.
                let set: Map<_, _> =
                    new.clone().into_iter().filter(|(key, value)| old.get(key) != Some(value)).collect();
                let gone: Vec<_> = old.keys().filter(|key| !new.contains_key(*key)).collect();
                let body = json!({"set": set, "remove": gone});
                client.post(&["api", "nodes", &node.id, "labels"], &[], &body).await?;
            }
            if cordons && !node.cordoned {
                client.post(&["api", "nodes", &node.id, "uncordon"], &[], &json!({})).await?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("x.yaml");
        std::fs::write(&path, text).expect("written");
        match read(&[path]) {
            Ok(wanted) => wanted.iter().map(Wanted::name).collect::<Vec<_>>().join(" "),
            Err(failure) => failure.message.split_once(": ").expect("a cause").1.to_owned(),
        }
    }

    #[test]
    fn objects_are_known_by_their_members() {
        assert_eq!(told("{name: a, version: 1.0.0, digest: x}"), "agent/a@1.0.0");
        assert_eq!(
            told("- {id: n, health: ready, cordoned: true}\n- {id: m, health: ready, cordoned: no}"),
            "node/n node/m"
        );
        assert!(told("{agent_name: x, input_data: {}}").contains("atlasctl run"));
        assert_eq!(
            told("{id: n, health: ready, cordoned: true, operator_labels: {rack: 7}}"),
            "/operator_labels/rack is to be text: write '7'"
        );
        assert!(told("agent: {name: x}").contains("apply the folder"));
        assert!(told("5").contains("neither"));
        assert!(told("[").contains("line"), "{}", told("["));
    }
}
