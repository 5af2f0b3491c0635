//! Decides on the jobs that wait for their orchestrator. Only the leader does; each namespace has a task, so a slow orchestrator delays no
//! other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_desk::on_behalf;
use atlas_env::Task;
use atlas_objects::{Fallback, RoutingSpec};
use atlas_raft::Leadership;
use atlas_state::{Routing, State};
use atlas_types::{
    AgentName, Command, Decider, Decision, EventSeq, Failure, FailureKind, Job, Micros, Namespace, Object, ObjectKind,
    Origin, Principal, Request, RouteJob, Verdict,
};
use bytes::Bytes;

use super::candidate::Candidate;
use super::teller::Teller;
use crate::service::Shared;
use crate::wish::{Will, Wish};
use crate::{Error, Service, Submission};

/// Most jobs that are decided on in one call.
pub(super) const WINDOW: usize = 16;

/// How long an orchestrator may take for one window if the jobs wait for it without a deadline.
pub(super) const PATIENCE: Micros = Micros::from_secs(10);

/// The pause after a decision failed that is to be made again.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// Runs for as long as the controller does.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut leadership = shared.handle.leadership();
    let leads = |leadership: &Leadership| matches!(leadership, Leadership::Leader { .. });
    while leadership.wait_for(leads).await.is_ok() {
        let mut routers = Routers { shared: Arc::clone(&shared), tasks: BTreeMap::new(), tellers: BTreeMap::new() };
        let mut watched = leadership.clone();
        tokio::select! {
            biased;
            lost = watched.wait_for(|leadership| !leads(leadership)) => if lost.is_err() { return },
            () = routers.lead() => return,
        }
    }
}

/// The tasks of one leader. Dropping it ends them.
struct Routers {
    shared: Arc<Shared>,
    tasks: BTreeMap<Namespace, Task<()>>,
    /// Those that tell orchestrators about ended jobs, by the selection that they serve.
    tellers: BTreeMap<(Namespace, EventSeq), Task<()>>,
}

impl Drop for Routers {
    fn drop(&mut self) {
        self.tasks.values().chain(self.tellers.values()).for_each(Task::abort);
    }
}

impl Routers {
    /// Gives each namespace with undecided jobs a task. One that has none left ends by itself.
    async fn lead(&mut self) {
        let mut latest = self.shared.events.log().latest();
        loop {
            latest.borrow_and_update();
            let state = self.shared.handle.applied();
            self.tasks.retain(|_, task| !task.is_finished());
            for namespace in state.undecided_namespaces() {
                if !self.tasks.contains_key(namespace) {
                    let router =
                        Router { service: Service { shared: self.shared.clone() }, namespace: namespace.clone() };
                    self.tasks.insert(namespace.clone(), self.shared.env.spawn("route-jobs", router.run()));
                }
            }
            self.tell(&state);
            if latest.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Routers {
    /// Gives each selection a task that tells its orchestrator about ended jobs.
    fn tell(&mut self, state: &State) {
        let selections = selections(state);
        let over = self.tellers.extract_if(.., |key, _| !selections.contains(key));
        over.for_each(|(_, task)| task.abort());
        for key in selections {
            if self.tellers.contains_key(&key) {
                continue;
            }
            let (namespace, generation) = key.clone();
            let service = Service { shared: self.shared.clone() };
            let task = self.shared.env.spawn("tell-orchestrator", Teller { service, namespace, generation }.run());
            self.tellers.insert(key, task);
        }
    }
}

/// The selections that have an orchestrator or a candidate, by namespace and revision.
fn selections(state: &State) -> Vec<(Namespace, EventSeq)> {
    let Ok(kind) = ObjectKind::new("routing") else { return Vec::new() };
    let asks = |object: &&Arc<Object>| {
        RoutingSpec::read(&object.spec).is_ok_and(|spec| spec.orchestrator.is_some() || spec.shadow.is_some())
    };
    let selections = state.objects_of_kind(&kind).filter(asks);
    selections.map(|object| (object.key.namespace.clone(), object.revision)).collect()
}

/// The decisions of one namespace.
struct Router {
    service: Service,
    namespace: Namespace,
}

impl Router {
    /// Decides until no job waits for a decision. Its task begins again with the next that does.
    async fn run(self) {
        loop {
            let state = self.service.shared.handle.applied();
            let window: Vec<Arc<Job>> = state.undecided(&self.namespace).take(WINDOW).cloned().collect();
            let Some(routing) = state.routing(&self.namespace).filter(|_| !window.is_empty()) else { return };
            if let Err(why) = self.decide(&state, routing, &window).await {
                tracing::warn!(namespace = %self.namespace, orchestrator = routing.orchestrator, why, "jobs wait for their orchestrator");
                self.service.shared.env.clock.sleep(PAUSE).await;
            }
        }
    }

    /// Decides on a window of jobs. An error says why it must be tried again.
    async fn decide(&self, state: &State, routing: &Routing, window: &[Arc<Job>]) -> Result<(), String> {
        let mut requests = Vec::with_capacity(window.len());
        let generation = state.generation(&self.namespace);
        let mut again = None;
        for (job, wish) in window.iter().zip(self.wishes(state, routing, window).await) {
            let route = |decider, decision, priority, rule| {
                let command = RouteJob { job: job.id, generation, decider, decision: Some(decision), priority, rule };
                Request { origin: Origin::duty(self.namespace.clone()), command: Command::RouteJob(command) }
            };
            match wish {
                Ok(wish) => match self.decision(job, &wish).await {
                    Ok(decision) => {
                        requests.push(route(Decider::Orchestrator, decision, wish.priority, wish.rule.map(Into::into)))
                    }
                    Err(error) => again = Some(error.to_string()),
                },
                Err(why) => match fallback(routing.spec.fallback, &why) {
                    Some(decision) => requests.push(route(Decider::Fault, decision, None, None)),
                    None => again = Some(why),
                },
            }
        }
        if !requests.is_empty() {
            let answers = self.service.shared.handle.propose_here(requests).await.map_err(|error| error.to_string())?;
            // Another selection voids a decision, and a version may have been retired since. Both are decided on again.
            if let Some(Err(rejection)) = answers.into_iter().find(Result::is_err) {
                tracing::debug!(%rejection, "a decision was refused");
            }
        }
        again.map_or(Ok(()), Err)
    }

    /// What the orchestrator wants for each job.
    async fn wishes(&self, state: &State, routing: &Routing, window: &[Arc<Job>]) -> Vec<Result<Wish, String>> {
        let Some(candidate) = Candidate::of(state, &self.namespace, &routing.orchestrator) else {
            return vec![Err(format!("Orchestrator not found: {}", routing.orchestrator)); window.len()];
        };
        let timeout = routing.spec.deadline().map_or(PATIENCE, |deadline| deadline.min(PATIENCE));
        self.service.wishes(&candidate, window, timeout).await
    }

    /// The decision that a wish leads to. A redirected job is judged like one that is submitted for its new agent.
    async fn decision(&self, job: &Job, wish: &Wish) -> Result<Decision, Error> {
        let agent = match wish.will() {
            Will::Execute => return Ok(Decision::Execute),
            Will::Reject(reason) => return Ok(Decision::Reject(reason.into())),
            Will::Redirect(agent) => agent,
        };
        let input = self.service.bytes(&job.input).await?;
        let priority = wish.priority.unwrap_or(job.priority);
        let caller = (self.namespace.clone(), job.principal.clone());
        self.service.redirected(caller, input, priority, agent).await
    }
}

impl Service {
    /// The decision to run another agent with an input, for a principal in a namespace.
    pub(super) async fn redirected(
        &self,
        (namespace, principal): (Namespace, Principal),
        input: Bytes,
        priority: i64,
        agent: String,
    ) -> Result<Decision, Error> {
        let Ok(agent) = AgentName::new(&agent) else {
            let short: String = agent.chars().take(255).collect();
            return Ok(Decision::Reject(format!("Pool error: Agent not found or no implementation: {short}").into()));
        };
        let caller = on_behalf::principal(on_behalf::cluster_in(namespace), principal);
        let submission = Submission { priority, ..Submission::new(agent.clone(), input) };
        let verdict = match self.shared.jobs.judge(&caller, &submission, &self.shared.handle.applied()).await {
            Ok(verdict) => verdict,
            Err(Error::Malformed(why)) => {
                let failure =
                    Failure { kind: FailureKind::InputInvalid, error: format!("Input validation: {why}").into() };
                Verdict::Refused { pin: None, failure }
            }
            Err(error) => return Err(error),
        };
        Ok(Decision::Redirect(agent, verdict))
    }
}

/// What happens to a job whose orchestrator failed; none if it waits.
fn fallback(fallback: Fallback, why: &str) -> Option<Decision> {
    match fallback {
        Fallback::Allow => Some(Decision::Execute),
        Fallback::Reject => {
            let why: String = why.chars().take(1_000).collect();
            Some(Decision::Reject(format!("Rejected by orchestrator: it failed: {why}").into()))
        }
        Fallback::Wait => None,
    }
}
