//! One attempt at one resource: the cluster gets what the resource says, and the resource gets a status.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, finalizer};
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};

use crate::agent::{self, Agent};
use crate::atlas::Atlas;
use crate::backoff;
use crate::kind::{GROUP, Kind, VERSION};
use crate::object::{Object, revision};
use crate::problem::{Problem, Reason};
use crate::resource::Resource;
use crate::status::{self, Synced};
use crate::words::said;

/// Holds a resource back until its object is deleted.
const FINALIZER: &str = "atlas.dev/operator";
/// Who writes the statuses.
const MANAGER: &str = "atlas-operator";

/// What attempts need.
pub(crate) struct Operator {
    pub(crate) client: Client,
    pub(crate) atlas: Atlas,
    /// The operator's own namespace.
    pub(crate) home: String,
    /// After how long a resource that is in order is looked at again.
    pub(crate) resync: Duration,
    pub(crate) env: Env,
    recorder: Recorder,
    /// Failures in a row, by the uid of the resource.
    failures: Mutex<BTreeMap<String, u32>>,
}

/// Why an attempt could not be finished.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the API server did not accept a change")]
    Kubernetes(#[source] kube::Error),
    #[error("the finalizer could not be changed")]
    Finalizer(#[source] Box<finalizer::Error<Problem>>),
    #[error("the resource cannot be read")]
    Read(#[source] serde_json::Error),
}

/// How the API server calls a kind.
pub(crate) fn api_resource(kind: Kind) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, kind.name()), kind.plural())
}

impl Operator {
    pub(crate) fn new(client: Client, atlas: Atlas, home: &str, identity: &str, resync: Duration, env: Env) -> Self {
        let reporter = Reporter { controller: MANAGER.to_owned(), instance: Some(identity.to_owned()) };
        let recorder = Recorder::new(client.clone(), reporter);
        Self { client, atlas, home: home.to_owned(), resync, env, recorder, failures: Mutex::default() }
    }

    /// One attempt; says when the next one is due.
    pub(crate) async fn reconcile(&self, kind: Kind, object: Arc<DynamicObject>) -> Result<Action, Failure> {
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        let api = Api::namespaced_with(self.client.clone(), &namespace, &api_resource(kind));
        let shown = object.clone();
        let ended = finalizer(&api, FINALIZER, object, |event| async {
            match event {
                finalizer::Event::Apply(object) => self.apply(kind, &api, &object).await,
                finalizer::Event::Cleanup(object) => {
                    self.clean_up(kind, &object).await.map(|()| Action::await_change())
                }
            }
        });
        match ended.await {
            Ok(action) => {
                if action == Action::await_change() {
                    self.forget(&shown);
                }
                Ok(action)
            }
            Err(finalizer::Error::ApplyFailed(problem) | finalizer::Error::CleanupFailed(problem)) => {
                // The next attempt sees the other change; nobody has to know.
                if problem.reason != Reason::Changed {
                    self.tell(kind, &api, &shown, &problem).await?;
                }
                Ok(Action::requeue(self.pause(&shown)))
            }
            Err(error) => Err(Failure::Finalizer(Box::new(error))),
        }
    }

    /// When to try again after the API server failed.
    pub(crate) fn after_failure(&self, object: &DynamicObject, failure: &Failure) -> Action {
        tracing::warn!(resource = %name(object), "{}", said(failure));
        Action::requeue(self.pause(object))
    }

    async fn apply(&self, kind: Kind, api: &Api<DynamicObject>, object: &DynamicObject) -> Result<Action, Problem> {
        let resource = read(kind, object)?;
        let synced = match kind.object() {
            Some(word) => self.put_object(&Object::of(&resource, word, &self.home)?).await?,
            None => self.put_agent(Agent::of(&resource, &self.home)?).await?,
        };
        let status = status::status(&resource, Ok(&synced), &self.now());
        if let Err(error) = self.write_status(kind, api, &resource, status).await {
            return Err(Problem::new(Reason::Unreachable, format!("the status was not written: {}", said(&error))));
        }
        self.forget(object);
        Ok(Action::requeue(self.resync))
    }

    async fn put_object(&self, object: &Object) -> Result<Synced, Problem> {
        let found = self.atlas.get(&object.get()).await?;
        let mut revision = found.as_ref().map(revision);
        if let Some(request) = object.put(found.as_ref())? {
            revision = Some(self::revision(&self.atlas.change(&request).await?));
            tracing::info!(object = object.shown(), namespace = object.namespace(), revision, "object written");
        }
        let (namespace, object) = (object.namespace().to_owned(), object.shown());
        Ok(Synced { namespace, object, revision, versions: Vec::new() })
    }

    async fn put_agent(&self, agent: Agent) -> Result<Synced, Problem> {
        let packed = self.env.spawn_blocking("pack an agent", move || agent.pack().map(|package| (agent, package)));
        let unpacked = |_| Problem::new(Reason::Invalid, "the files of the agent could not be packed");
        let (agent, package) = packed.join().await.map_err(unpacked)??;
        let found = self.atlas.get(&agent.get(&package)).await?;
        let object = format!("agent/{}@{}", package.contract.name, package.contract.version);
        for request in agent.put(&package, found.as_ref())? {
            self.atlas.change(&request).await?;
            tracing::info!(agent = object, namespace = agent.namespace(), "agent version changed");
        }
        let (namespace, versions) = (agent.namespace().to_owned(), agent.remembered(&package));
        Ok(Synced { namespace, object, revision: None, versions })
    }

    /// Removes from the cluster what a resource made.
    async fn clean_up(&self, kind: Kind, object: &DynamicObject) -> Result<(), Problem> {
        let Ok(resource) = read(kind, object) else { return Ok(()) };
        // A resource that was never permitted made nothing.
        if resource.keeps() || resource.place(&self.home).is_err() {
            return Ok(());
        }
        let requests = match kind.object() {
            None => agent::retire(&resource, &self.home)?,
            Some(word) => {
                let object = Object::of(&resource, word, &self.home)?;
                let found = self.atlas.get(&object.get()).await?;
                object.delete(found.as_ref()).into_iter().collect()
            }
        };
        for request in requests {
            self.atlas.change(&request).await?;
            tracing::info!(resource = resource.owner(), "{request}");
        }
        Ok(())
    }

    /// Says in the status, and once in an event, why a resource is not what the cluster has.
    async fn tell(
        &self,
        kind: Kind,
        api: &Api<DynamicObject>,
        object: &DynamicObject,
        problem: &Problem,
    ) -> Result<(), Failure> {
        let document = serde_json::to_value(object).map_err(Failure::Read)?;
        // A spec that cannot be read has a status all the same.
        let resource = Resource::read(kind, &document).or_else(|_| Resource::read(kind, &without_spec(document)));
        let Ok(resource) = resource else { return Ok(()) };
        let is_news = status::is_news(&resource.status, problem);
        let status = status::status(&resource, Err(problem), &self.now());
        self.write_status(kind, api, &resource, status).await.map_err(Failure::Kubernetes)?;
        if is_news {
            tracing::warn!(resource = resource.owner(), reason = problem.reason.as_str(), "{problem}");
            let event = Event {
                type_: EventType::Warning,
                reason: problem.reason.as_str().to_owned(),
                note: Some(problem.message.clone()),
                action: "Synchronize".to_owned(),
                secondary: None,
            };
            let published = self.recorder.publish(&event, &object.object_ref(&api_resource(kind))).await;
            // The condition says the same.
            if let Err(error) = published {
                tracing::warn!("an event could not be written: {}", said(&error));
            }
        }
        Ok(())
    }

    async fn write_status(
        &self,
        kind: Kind,
        api: &Api<DynamicObject>,
        resource: &Resource,
        status: Value,
    ) -> Result<(), kube::Error> {
        if resource.status == status {
            return Ok(());
        }
        let patch = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": kind.name(),
            "metadata": {"name": resource.name, "namespace": resource.namespace},
            "status": status,
        });
        match api.patch_status(&resource.name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&patch)).await {
            // The resource is gone, and its status with it.
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
            written => written.map(drop),
        }
    }

    /// The time as Kubernetes writes it, to the second.
    fn now(&self) -> String {
        Timestamp::from_second(self.env.clock.wall().0 / 1_000_000).map(|now| now.to_string()).unwrap_or_default()
    }

    /// Counts a failure, and says how long to wait after it.
    fn pause(&self, object: &DynamicObject) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(uid(object)).or_default();
        *count = count.saturating_add(1);
        backoff::pause(*count)
    }

    fn forget(&self, object: &DynamicObject) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid(object));
    }
}

fn read(kind: Kind, object: &DynamicObject) -> Result<Resource, Problem> {
    let document = serde_json::to_value(object).map_err(|error| Problem::new(Reason::Invalid, error.to_string()))?;
    Resource::read(kind, &document)
}

fn without_spec(mut document: Value) -> Value {
    document["spec"] = json!({});
    document
}

fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}

fn name(object: &DynamicObject) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", text(&object.metadata.namespace), text(&object.metadata.name))
}
