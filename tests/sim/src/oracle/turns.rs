//! B.13: a job that waits through an entry is passed by none that would come later. Jobs of one class are granted in their turn, and a
//! namespace that runs less for its weight comes first.

use std::collections::{BTreeMap, BTreeSet};

use atlas_state::{Class, State};
use atlas_types::{Event, EventRecord, Job, JobChange, JobStatus, Namespace, ObjectKey, Reason};

use super::Oracle;
use crate::coverage::Coverage;

impl Oracle {
    /// An entry led from the state `before` to the present one.
    pub(super) fn check_turns(&mut self, before: &State, events: &[EventRecord], coverage: &mut Coverage) {
        let mut touched = BTreeSet::new();
        let mut granted = Vec::new();
        for record in events {
            let Event::Job { change, job, .. } = &record.event else { continue };
            touched.insert(job.id);
            // A job that fails while it waits is granted for a moment, without a lease.
            granted.extend((*change == JobChange::Granted && job.lease.is_some()).then_some(job));
        }
        if granted.is_empty() {
            return;
        }
        let after = self.truth.state();
        let waits = |job: &&std::sync::Arc<Job>| matches!(job.reason, Reason::Queued | Reason::Lost);
        let waiting: Vec<_> = [crate::workload::team(), Namespace::default_namespace()]
            .iter()
            .flat_map(|namespace| before.jobs(namespace, Some(JobStatus::Pending), None))
            .filter(|job| waits(job) && !touched.contains(&job.id) && after.job(job.id).is_some())
            .filter_map(|job| Some((job, Class::of(job)?)))
            .collect();
        let mut wrong = None;
        for job in granted {
            let Some(class) = Class::of(job) else { continue };
            for (passed, of_passed) in &waiting {
                if *of_passed == class && aging(before, &job.namespace) == aging(after, &job.namespace) {
                    coverage.count("jobs that waited for their turn");
                    // Before the grant it had the priority that it was queued with.
                    let priority = before.job(job.id).map_or(job.priority, |job| job.priority);
                    let job = Job { priority, ..(**job).clone() };
                    if after.turn(passed) < after.turn(&job) {
                        wrong = Some(format!("{} was granted before {}", job.id, passed.id));
                    }
                }
                let other = Class { namespace: class.namespace.clone(), ..of_passed.clone() };
                if of_passed.namespace != class.namespace
                    && other == class
                    && is_free(before, after, &of_passed.namespace)
                {
                    let (least, most) =
                        (running(before, after, &class.namespace).0, running(before, after, &passed.namespace).1);
                    let weight = |namespace| weights(before, after, namespace);
                    coverage.count("namespaces that waited for their turn");
                    if least * u64::from(weight(&passed.namespace).0) > most * u64::from(weight(&class.namespace).1) {
                        wrong = Some(format!(
                            "{} of {} was granted before {}, of which less ran",
                            job.id, job.namespace, passed.id
                        ));
                    }
                }
            }
        }
        wrong.into_iter().for_each(|wrong| self.violate(wrong));
    }
}

fn spec(state: &State, namespace: &Namespace) -> Option<atlas_objects::NamespaceSpec> {
    let key = ObjectKey {
        namespace: Namespace::default_namespace(),
        kind: "namespace".parse().ok()?,
        name: namespace.as_str().parse().ok()?,
    };
    atlas_objects::NamespaceSpec::read(&state.object(&key)?.spec).ok()
}

fn aging(state: &State, namespace: &Namespace) -> Option<u64> {
    spec(state, namespace)?.aging_seconds
}

/// No limit of the namespace can hold a job back.
fn is_free(before: &State, after: &State, namespace: &Namespace) -> bool {
    [before, after]
        .into_iter()
        .filter_map(|state| spec(state, namespace))
        .all(|spec| spec.jobs_running_max.is_none() && spec.jobs_rate.is_none())
}

/// The lowest and highest weight that it may have had.
fn weights(before: &State, after: &State, namespace: &Namespace) -> (u32, u32) {
    let (a, b) = (before.weight(namespace), after.weight(namespace));
    (a.min(b), a.max(b))
}

/// How many jobs of a namespace ran throughout, and how many may have run at a time.
fn running(before: &State, after: &State, namespace: &Namespace) -> (u64, u64) {
    let of = |state: &State| -> BTreeMap<_, bool> {
        let leases =
            state.nodes().flat_map(|node| node.leases()).filter_map(|(token, job)| Some((token, state.job(job)?)));
        let own = leases.filter(|(_, job)| job.namespace == *namespace);
        own.map(|(token, job)| (token, state.children_awaited(job.id) == 0)).collect()
    };
    let (before, after) = (of(before), of(after));
    let throughout = before.iter().filter(|(token, active)| **active && after.get(token) == Some(&true)).count();
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    (throughout as u64, all.len() as u64)
}
