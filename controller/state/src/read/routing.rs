//! Which orchestrator is selected, and the jobs that wait for a decision.

use std::sync::Arc;

use atlas_types::{EventSeq, Job, Namespace, Object, ObjectKey, ObjectKind, ObjectName};

use crate::index::Routing;
use crate::state::State;

impl State {
    /// The selected orchestrator of a namespace; none if it is the default one.
    pub fn routing(&self, namespace: &Namespace) -> Option<&Routing> {
        self.index.objects.routing(namespace)
    }

    /// The selection under which the jobs of a namespace are decided now; 0 is the default one. It rises with each change of the
    /// selection, and of the rules that are selected.
    pub fn generation(&self, namespace: &Namespace) -> EventSeq {
        let Some(routing) = self.routing(namespace) else { return EventSeq(0) };
        let rules = self.orchestrator_object(namespace, &routing.orchestrator);
        rules.map_or(routing.revision, |rules| rules.revision.max(routing.revision))
    }

    /// The orchestrator of a name that is an object.
    pub fn orchestrator_object(&self, namespace: &Namespace, name: &str) -> Option<&Arc<Object>> {
        let (kind, name) = (ObjectKind::new("orchestrator").ok()?, ObjectName::new(name).ok()?);
        self.object(&ObjectKey { namespace: namespace.clone(), kind, name })
    }

    /// The namespaces with jobs that wait for a decision.
    pub fn undecided_namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.index.undecided.namespaces()
    }

    /// The jobs of a namespace that wait for a decision, in the order of the queue.
    pub fn undecided(&self, namespace: &Namespace) -> impl Iterator<Item = &Arc<Job>> {
        self.index.undecided.of(namespace).filter_map(|job| self.jobs.get(job))
    }

    /// Whether a job must be decided on, or again, before it gets a lease: a decision holds as long as the selection under which it
    /// was made, and for the whole family of a job once it has run.
    pub fn needs_route(&self, job: &Job) -> bool {
        let route = job.route.as_deref();
        if route.is_none() && self.routing(&job.namespace).is_none() {
            return false;
        }
        let family = job.original.is_some() && route.is_some_and(|route| route.action.runs());
        let begun = job.attempt.0 > 0 || family;
        let exempt = begun || job.is_system() || job.is_for_a_run();
        !exempt && route.map_or(EventSeq(0), |route| route.generation) != self.generation(&job.namespace)
    }

    /// Jobs of the cluster itself that have not ended.
    pub fn system_jobs(&self) -> u64 {
        self.index.system
    }
}
