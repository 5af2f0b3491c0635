//! `atlasctl apply --prune`: agent versions with the same labels that are not in the files.

use std::collections::BTreeSet;

use atlas_api::types::Agent;

use super::Wanted;
use super::documents::{Problem, Sourced, refusal};
use crate::answers;
use crate::client::Client;
use crate::exit::Exit;
use crate::failure::Failure;

/// An agent version that will be retired.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::command) struct Pruned {
    name: String,
    version: String,
}

impl Pruned {
    /// Its name as `-o name` prints it.
    pub(in crate::command) fn shown(&self) -> String {
        format!("agent/{}@{}", self.name, self.version)
    }

    /// Retires the version; it is no error if another user has retired it already.
    pub(super) async fn retire(&self, client: &Client) -> Result<(), Failure> {
        match client.delete(&["api", "agents", &self.name, "versions", &self.version]).await {
            Err(failure) if failure.exit != Exit::NotFound => Err(failure),
            _ => Ok(()),
        }
    }
}

/// Refuses agents without the labels, which the next prune would not find, and files without agents, which would retire
/// every version with the labels.
pub(in crate::command) fn check(wanted: &[Sourced], labels: &[(String, String)]) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for Sourced { wanted, place, .. } in wanted {
        let Wanted::Package(package) = wanted else { continue };
        let has = package.contract.labels.clone().unwrap_or_default();
        if let Some((key, value)) = labels.iter().find(|(key, value)| has.get(key) != Some(value)) {
            let message = format!("{} has no label {key}={value} in its contract", wanted.name());
            let failure = Failure::new("E0125", Exit::Invalid, message);
            let next = "add it under agent: labels: in agent.yaml, or omit --prune";
            problems.push(Problem::about(place.clone(), failure.with_next(next)));
        }
    }
    if let Some(failure) = refusal(problems) {
        return Err(failure);
    }
    if wanted.iter().all(|one| matches!(one.wanted, Wanted::Node { .. } | Wanted::Object(_))) {
        let failure = Failure::new(
            "E0125",
            Exit::Invalid,
            "nothing was changed: the files contain no agent, and --prune would retire all agents",
        );
        return Err(failure.with_next("retire a version: atlasctl delete agent NAME@VERSION"));
    }
    Ok(())
}

/// The versions that have the labels, are not retired and are not in the files, whose objects are `held`.
pub(in crate::command) async fn find(
    client: &Client,
    held: &BTreeSet<String>,
    labels: &[(String, String)],
) -> Result<Vec<Pruned>, Failure> {
    let agents: Vec<Agent> =
        answers::read(&client.get(&["api", "agents"], &[("all", "true"), ("view", "full")]).await?)?;
    Ok(unwanted(agents, held, labels))
}

fn unwanted(agents: Vec<Agent>, held: &BTreeSet<String>, labels: &[(String, String)]) -> Vec<Pruned> {
    let meant = agents.into_iter().filter(|agent| {
        !agent.retired && !labels.is_empty() && labels.iter().all(|(key, value)| agent.labels.get(key) == Some(value))
    });
    let pruned = meant.map(|Agent { name, version, .. }| Pruned { name, version });
    pruned.filter(|version| !held.contains(&version.shown())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_versions_of_the_labels_that_are_not_held_are_unwanted() {
        let agents = || {
            let all = json!([
                {"name": "a", "version": "1.0.0", "labels": {"team": "shop"}},
                {"name": "a", "version": "2.0.0", "labels": {"team": "shop", "tier": "x"}},
                {"name": "b", "version": "1.0.0", "labels": {"team": "shop"}, "retired": true},
                {"name": "c", "version": "1.0.0", "labels": {"team": "other"}},
                {"name": "d", "version": "1.0.0"},
                {"name": "e", "version": "1.0.0", "labels": {"team": "shop", "tier": "x"}},
            ]);
            answers::read::<Vec<Agent>>(&all).expect("agents")
        };
        let held = BTreeSet::from(["agent/a@2.0.0".to_owned()]);
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let shown = |labels: &[_]| unwanted(agents(), &held, labels).iter().map(Pruned::shown).collect::<Vec<_>>();
        assert_eq!(shown(&[label("team", "shop")]), ["agent/a@1.0.0", "agent/e@1.0.0"]);
        assert_eq!(shown(&[label("team", "shop"), label("tier", "x")]), ["agent/e@1.0.0"]);
        assert!(shown(&[]).is_empty());
    }
}
