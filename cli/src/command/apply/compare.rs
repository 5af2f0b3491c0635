//! Compares the cluster with the documents, and applies the differences.

use atlas_api::types::{Agent, Node};
use atlas_package::Package;
use serde_json::{Map, Value, json};

use super::Wanted;
use crate::answers;
use crate::client::Client;
use crate::difference::{self, Change};
use crate::exit::Exit;
use crate::failure::Failure;

/// The JSON pointer to the labels that operators gave a node.
const LABELS: &str = "/operator_labels";

/// How an object in the cluster differs from the wanted one: it is the same, missing, or different.
pub(in crate::command) enum Comparison {
    Same,
    Missing,
    Other(Vec<Change>),
}

/// Compares a wanted object with the object in the cluster.
pub(in crate::command) async fn compare(client: &Client, wanted: &Wanted) -> Result<Comparison, Failure> {
    match wanted {
        Wanted::Package(package) => {
            let (name, version) = (package.contract.name.as_str(), package.contract.version.to_string());
            let Some(value) = agent(client, name, &version).await? else { return Ok(Comparison::Missing) };
            let known: Agent = answers::read(&value)?;
            if known.digest == package.digest.to_string() {
                return Ok(Comparison::Same);
            }
            let mut changes = difference::between(&value["contract"], &package.contract.to_json());
            changes.push(changed("/digest", json!(known.digest), json!(package.digest.to_string())));
            Ok(Comparison::Other(changes))
        }
        Wanted::Agent { agent, deprecation } => {
            let Some(value) = self::agent(client, &agent.name, &agent.version).await? else {
                return Ok(if agent.retired { Comparison::Same } else { Comparison::Missing });
            };
            let known: Agent = answers::read(&value)?;
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
            Ok(if changes.is_empty() { Comparison::Same } else { Comparison::Other(changes) })
        }
        Wanted::Node { node, labels } => {
            let known: Node = match client.get(&["api", "nodes", &node.id], &[]).await {
                Ok(value) => answers::read(&value)?,
                Err(failure) if failure.exit == Exit::NotFound => return Ok(Comparison::Missing),
                Err(failure) => return Err(failure),
            };
            let mut changes = Vec::new();
            if known.cordoned != node.cordoned {
                changes.push(changed("/cordoned", json!(known.cordoned), json!(node.cordoned)));
            }
            if *labels && known.operator_labels != node.operator_labels {
                changes.push(changed(LABELS, json!(known.operator_labels), json!(node.operator_labels)));
            }
            Ok(if changes.is_empty() { Comparison::Same } else { Comparison::Other(changes) })
        }
        Wanted::Object(object) => {
            object.is_in(client.namespace())?;
            let known = match client.get(&object.path(), &object.query()).await {
                Ok(known) => known,
                Err(failure) if failure.code.as_deref() == Some("E1115") => return Ok(Comparison::Missing),
                Err(failure) => return Err(failure),
            };
            let known = json!({ "metadata": { "labels": known["metadata"]["labels"] }, "spec": known["spec"] });
            let wanted = json!({ "metadata": { "labels": object.labels }, "spec": object.spec });
            let changes = difference::between(&known, &wanted);
            Ok(if changes.is_empty() { Comparison::Same } else { Comparison::Other(changes) })
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

/// The package that a version has in the cluster, if it is another one than that of the folder.
pub(super) fn other_package<'a>(wanted: &'a Wanted, standing: &'a Comparison) -> Option<(&'a Package, &'a str)> {
    let (Wanted::Package(package), Comparison::Other(changes)) = (wanted, standing) else { return None };
    let change = changes.iter().find(|change| change.place == "/digest")?;
    Some((package, change.old.as_ref()?.as_str()?))
}

/// Refuses an agent version whose package is not registered (a document holds no package) and an unknown node.
pub(in crate::command) fn applicable(wanted: &Wanted, standing: &Comparison) -> Result<(), Failure> {
    let why = match (wanted, standing) {
        (_, Comparison::Same) | (Wanted::Package(_) | Wanted::Object(_), _) => return Ok(()),
        (Wanted::Node { .. }, Comparison::Missing) => {
            "the node is not registered, and documents do not create nodes".to_owned()
        }
        (Wanted::Node { .. }, Comparison::Other(_)) => return Ok(()),
        (Wanted::Agent { .. }, Comparison::Other(changes)) => {
            let possible = |change: &Change| match change.place.as_str() {
                "/retired" => change.new == Some(json!(true)),
                place => place == "/deprecated",
            };
            return if changes.iter().all(possible) { Ok(()) } else { Err(no_package(wanted)) };
        }
        (Wanted::Agent { .. }, Comparison::Missing) => return Err(no_package(wanted)),
    };
    Err(Failure::new("E0125", Exit::NotFound, format!("{} cannot be applied: {why}", wanted.name())))
}

fn no_package(wanted: &Wanted) -> Failure {
    let message = format!(
        "{} cannot be applied: its package is not registered, and documents contain no packages",
        wanted.name()
    );
    Failure::new("E0125", Exit::Conflict, message).with_next("apply its folder: atlasctl apply -f DIR")
}

/// Changes the object in the cluster to the wanted one.
pub(in crate::command) async fn change(client: &Client, wanted: Wanted, standing: &Comparison) -> Result<(), Failure> {
    match wanted {
        Wanted::Object(object) => client.put(&object.path(), &object.query(), &object.body()).await.map(drop),
        Wanted::Package(package) => {
            client.register(package.bytes, matches!(standing, Comparison::Other(_))).await.map(drop)
        }
        Wanted::Agent { agent, .. } => {
            let Comparison::Other(changes) = standing else { return Ok(()) };
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
        Wanted::Node { node, .. } => {
            let Comparison::Other(changes) = standing else { return Ok(()) };
            let cordons = changes.iter().any(|change| change.place == "/cordoned");
            // New labels can make the scheduler place jobs on the node immediately, so a wanted cordon is set first.
            if cordons && node.cordoned {
                client.post(&["api", "nodes", &node.id, "cordon"], &[], &json!({})).await?;
            }
            let labels = changes.iter().find(|change| change.place == LABELS);
            if let Some(Change { old: Some(Value::Object(old)), new: Some(Value::Object(new)), .. }) = labels {
                // Only the labels that differ are sent: another user may have changed the other labels since the
                // comparison.
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
