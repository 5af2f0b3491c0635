//! The selection of a namespace: the object `routing/default`.

use atlas_contract::ProviderKind;
use atlas_objects::ROUTING;
use atlas_types::{Expect, Micros};
use serde_json::{Value, json};

use super::candidate::Candidate;
use super::consult::Silence;
use crate::{Caller, Consistency, Error, ObjectChange, Service};

/// The default orchestrator, as Atlas for Python calls it.
const DEFAULT: &str = "DefaultOrchestrator";

/// How long an orchestrator may take to be loaded when it is selected. Without a worker that loads it in this time, it is selected unseen.
const PROBE_MAX: Micros = Micros::from_secs(15);

/// How often the selection is written again when others change it at the same time.
const CONFLICTS_MAX: usize = 5;

/// The orchestrator of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// Its name, or that of the default one.
    pub name: String,
    /// Whether it is not the default one.
    pub custom: bool,
}

impl Selected {
    fn of(name: Option<&str>) -> Self {
        Self { name: name.unwrap_or(DEFAULT).to_owned(), custom: name.is_some() }
    }
}

impl Service {
    /// The selected orchestrator.
    pub async fn orchestrator(&self, caller: &Caller, consistency: Consistency) -> Result<Selected, Error> {
        let state = self.state(consistency).await?;
        Ok(Selected::of(state.routing(&caller.namespace).map(|routing| &*routing.orchestrator)))
    }

    /// Selects an orchestrator; none selects the default one. It decides on every job that gets its first lease after the answer.
    pub async fn select_orchestrator(&self, caller: &Caller, name: Option<&str>) -> Result<Selected, Error> {
        if let Some(name) = name {
            self.check_orchestrator(caller, name).await?;
        }
        for _ in 0..CONFLICTS_MAX {
            let (mut spec, expect) = match self.object(caller, "routing", ROUTING, Consistency::Linearizable).await {
                Ok(shown) => (shown.value.spec, Expect::Revision(shown.revision)),
                Err(Error::UnknownObject(_)) => (json!({}), Expect::Absent),
                Err(error) => return Err(error),
            };
            if spec["orchestrator"].as_str() == name {
                return Ok(Selected::of(name));
            }
            spec["previous"] = spec["orchestrator"].clone();
            spec["orchestrator"] = name.map_or(Value::Null, Value::from);
            let change = ObjectChange { kind: "routing".to_owned(), name: ROUTING.to_owned(), expect, dry_run: false };
            // A repeat is another request, because the object may have changed.
            let writer = caller.clone().with_request_id(None);
            match self.put_object(&writer, &change, Default::default(), &spec).await {
                Ok(_) => return Ok(Selected::of(name)),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Overloaded)
    }

    /// Refuses a name that is not that of an orchestrator, and one that does not have the methods of an orchestrator.
    async fn check_orchestrator(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let state = self.state(Consistency::Linearizable).await?;
        let short = || name.chars().take(255).collect::<String>();
        let Some(candidate) = Candidate::of(&state, &caller.namespace, name) else {
            return Err(Error::UnknownOrchestrator(short()));
        };
        let Candidate::Agent(agent) = candidate else { return Ok(()) };
        let contract = self.shared.registry.contract(&agent).await?;
        let provider = contract.value["provider"]["type"].as_str().unwrap_or("python");
        if provider != ProviderKind::Python.as_str() {
            return Err(Error::NotAnOrchestrator(short()));
        }
        if state.nodes().all(|node| !node.takes_leases()) {
            return Ok(());
        }
        match self.consult(&agent, &[], PROBE_MAX).await {
            Ok(_) => Ok(()),
            // It was loaded, or there was no room to load it.
            Err(Silence::Failed(_)) => Ok(()),
            Err(Silence::NotOne(why)) => {
                tracing::info!(orchestrator = name, why, "an orchestrator was not selected");
                Err(Error::NotAnOrchestrator(short()))
            }
            Err(Silence::Error(error)) => Err(error),
        }
    }
}
