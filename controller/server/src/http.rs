//! The HTTP door: JSON, event streams and metrics on one port.
//!
//! A door translates and makes no decisions. Routing is a table over path segments, because every answer has our
//! format, even for an unknown path or method. There are no middleware layers, because each would add a cost to every
//! job.

mod access;
mod agents;
mod answer;
mod api;
mod audit;
mod batch;
mod chains;
mod cluster;
mod cluster_events;
mod conversations;
mod events;
mod frames;
mod front;
mod jobs;
mod linger;
mod logins;
mod logs;
mod mcp;
mod messages;
mod nodes;
mod objects;
mod orchestrator;
mod policies;
mod query;
mod questions;
mod request;
mod route;
mod secrets;
mod serve;
mod skills;
mod snapshot;
mod socket;
mod traces;
mod triggers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_gateway::Gateway;
use atlas_service::{Caller, Consistency, Error, Service, catalogue};
use http::{HeaderName, HeaderValue, Method};
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::identity;
use answer::{Answer, Problem, Response};
pub(crate) use frames::Frames;
use request::{Pages, Request};
use route::Route;

use crate::backup::Backups;

pub(crate) use front::Front;
pub(crate) use serve::serve;

/// Sent with every answer: how many entries its controller had applied. A client that sends the value back reads
/// nothing older, at any controller.
const INDEX: HeaderName = HeaderName::from_static("x-atlas-index");
/// Sent with an answer that may be stale.
const CONSISTENCY: HeaderName = HeaderName::from_static("atlas-consistency");
/// How long a controller may take to apply the entries that a client has already seen.
const BEHIND_MAX: Duration = Duration::from_secs(5);

/// The limits of the door. Each is an option of the controller.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// The largest body of a request, except packages.
    pub body_bytes_max: usize,
    /// The largest package.
    pub package_bytes_max: usize,
    /// The most connections at once.
    pub connections_max: usize,
    /// The time limit for receiving a request's headers.
    pub header_timeout: Duration,
    /// The time limit for receiving a request's body.
    pub body_timeout: Duration,
    /// The longest wait that a client may request.
    pub wait_max: Duration,
}

/// The data that all handlers share.
pub(crate) struct HttpDoor {
    pub(crate) service: Service,
    /// Answers questions about the cluster.
    pub(crate) cluster: Cluster,
    pub(crate) limits: HttpLimits,
    pub(crate) env: Env,
    /// Becomes true when the controller stops. Streams then end.
    pub(crate) stop: watch::Receiver<bool>,
    /// The address of the HTTP interface.
    pub(crate) address: SocketAddr,
    /// Whether metrics are shown under the names of Pallas as well.
    pub(crate) pallas_names: bool,
    /// The agents with ports of their own.
    pub(crate) agent_ports: Vec<(String, u16)>,
    /// Answers requests to `/mcp`.
    pub(crate) gateway: Gateway,
    /// Makes backups.
    pub(crate) backups: Backups,
    /// The SHA-256 of the cluster's certificate; none if TLS is off.
    pub(crate) authority: Option<[u8; 32]>,
    /// The answer of `/api/version`.
    pub(crate) about: serde_json::Value,
    /// The frames that event streams share.
    pub(crate) frames: Arc<Frames>,
}

impl HttpDoor {
    /// Answers one request.
    async fn answer(&self, mut request: Request) -> Response {
        let accepts_problem = request.accepts_problem();
        let stale = request.consistency() == Consistency::Stale;
        let answer = match Route::of(request.path()) {
            None if mcp::is_path(request.path()) => match request.check_site(Pages::None) {
                Err(problem) => Err((problem, false)),
                Ok(()) => mcp::answer(self, request).await.map_err(|problem| (problem, true)),
            },
            None if let Some(agent) = mcp::agent_of(request.path()) => match request.check_site(Pages::None) {
                Err(problem) => Err((problem, false)),
                Ok(()) => {
                    let answer = mcp::answer_agent(self, request, &agent, self.address.port()).await;
                    answer.map_err(|problem| (problem, true))
                }
            },
            Some(_) if let Err(problem) = request.check_site(Pages::Read) => Err((problem, false)),
            Some(route) => {
                let ours = route.is_ours();
                let answer = self.dispatch(route, &mut request).await;
                answer.map_err(|problem| (problem, ours))
            }
            None => Err((Error::UnknownPath.into(), false)),
        };
        let mut response = answer.unwrap_or_else(|(problem, ours)| problem.into_response(accepts_problem || ours));
        let applied = self.service.handle().applied_seq().0;
        response.headers_mut().insert(INDEX, HeaderValue::from(applied));
        if stale {
            response.headers_mut().insert(CONSISTENCY, HeaderValue::from_static("stale"));
        }
        response
    }

    /// The instruments as text.
    fn metrics(&self) -> String {
        let text = self.service.render_metrics();
        if self.pallas_names { atlas_telemetry::with_pallas_names(&text) } else { text }
    }

    /// A stream that ends when the controller stops.
    fn until_stopped<S: futures::Stream>(&self, stream: S) -> impl futures::Stream<Item = S::Item> + use<S> {
        let mut stop = self.stop.clone();
        let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
        futures::StreamExt::take_until(stream, Box::pin(stopped))
    }

    async fn dispatch(&self, route: Route, request: &mut Request) -> Answer {
        let path = route.template();
        let Some(operation) = api::find(path, request.method()) else {
            return Err(Problem::NoMethod(api::methods(path)));
        };
        request.is_for(operation)?;
        if let Some(seq) = request.seen()?
            && !self.service.handle().wait_applied(seq, BEHIND_MAX).await
        {
            return Err(Error::Behind.into());
        }
        let (trace, request_id) = (request.trace(), request.request_id()?);
        let path = request.path().to_owned();
        let caller = match access::caller(self, request, operation.right()).await {
            Ok(caller) => caller.with_trace(trace).with_request_id(request_id),
            Err(error) => {
                let problem: Problem = error.into();
                let nobody = identity::nobody().with_request_id(request_id);
                audit::note(self, &nobody, operation, &path, Some(&problem)).await?;
                return Err(problem);
            }
        };
        let caller = match request.query().filled("namespace") {
            Some(namespace) if operation.is_in_namespace() => caller.in_namespace(&namespace)?,
            _ => caller,
        };
        let answer = match access::check(&caller, operation) {
            // Boxed, because it is as large as all operations together.
            Ok(()) => Box::pin(self.carry_out(route, &caller, request)).await,
            Err(error) => Err(error.into()),
        };
        audit::note(self, &caller, operation, &path, answer.as_ref().err()).await?;
        answer
    }

    /// Calls the function behind an operation that the caller may use.
    async fn carry_out(&self, route: Route, caller: &Caller, request: &mut Request) -> Answer {
        let path = route.template();
        // HEAD is handled like GET. The answer to HEAD is sent without a body.
        let method = if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
        match (route, &method) {
            (Route::Jobs, &Method::POST) => jobs::submit(self, caller, request).await,
            (Route::Jobs, &Method::GET) => jobs::list(self, caller, request).await,
            (Route::JobBatch, &Method::POST) => batch::submit(self, caller, request).await,
            (Route::Job(id), &Method::GET) => jobs::get(self, caller, request, &id).await,
            (Route::Job(id), &Method::DELETE) => jobs::delete(self, caller, &id).await,
            (Route::JobWait(id), &Method::GET) => jobs::wait(self, caller, request, &id).await,
            (Route::JobCancel(id), &Method::POST) => jobs::cancel(self, caller, &id).await,
            (Route::JobResolve(id), &Method::POST) => jobs::resolve(self, caller, request, &id).await,
            (Route::JobMessages(id), &Method::POST) => messages::send(self, caller, request, &id).await,
            (Route::JobRetry(id), &Method::POST) => jobs::retry(self, caller, request, &id).await,
            (Route::JobErase(id), &Method::POST) => jobs::erase(self, caller, request, &id).await,
            (Route::JobsErase, &Method::POST) => jobs::erase_all(self, caller, request).await,
            (Route::JobFork(id), &Method::POST) => jobs::fork(self, caller, request, &id).await,
            (Route::JobEvents(id), &Method::GET) => events::job(self, caller, request, &id).await,
            (Route::JobTree(id), &Method::GET) => jobs::tree(self, caller, request, &id).await,
            (Route::JobPolicies(id), &Method::GET) => policies::of_job(self, caller, &id).await,
            (Route::JobExplain(id), &Method::GET) => jobs::explain(self, caller, request, &id).await,
            (Route::JobSteps(id), &Method::GET) => jobs::steps(self, caller, request, &id).await,
            (Route::JobReceipt(id), &Method::GET) => jobs::receipt(self, caller, request, &id).await,
            (Route::JobLogs(id), &Method::GET) => logs::get(self, caller, request, &id).await,
            (Route::ClusterEvents, &Method::GET) => cluster_events::all(self, caller, request).await,
            (Route::Events | Route::Socket, &Method::GET) => events::all(self, caller, request).await,
            (Route::Agents, &Method::GET) => agents::list(self, caller, request).await,
            (Route::Agents, &Method::POST) => agents::register(self, caller, request).await,
            (Route::Agent(name), &Method::GET) => agents::get(self, caller, request, &name).await,
            (Route::AgentVersions(name), &Method::GET) => agents::versions(self, caller, request, &name).await,
            (Route::AgentVersion(name, version), &Method::GET) => {
                agents::version(self, caller, request, &name, &version).await
            }
            (Route::AgentVersion(name, version), &Method::DELETE) => {
                agents::retire(self, caller, &name, &version).await
            }
            (Route::AgentDelete(name, version), &Method::POST) => agents::delete(self, caller, &name, &version).await,
            (Route::AgentResume(name, version), &Method::POST) => agents::resume(self, caller, &name, &version).await,
            (Route::AgentRollback(name, version), &Method::POST) => {
                agents::roll_back(self, caller, request, &name, &version).await
            }
            (Route::AgentDeprecate(name, version), &Method::POST) => {
                agents::deprecate(self, caller, request, &name, &version).await
            }
            (Route::Nodes, &Method::GET) => nodes::list(self, caller, request).await,
            (Route::Node(name), &Method::GET) => nodes::get(self, caller, request, &name).await,
            (Route::Node(name), &Method::DELETE) => nodes::remove(self, caller, &name).await,
            (Route::NodeAction(name, action), &Method::POST) => nodes::act(self, caller, request, &name, action).await,
            (Route::NodeLabels(name), &Method::POST) => nodes::label(self, caller, request, &name).await,
            (Route::ObjectKinds, &Method::GET) => objects::kinds(self, caller),
            (Route::Objects(kind), &Method::GET) => Box::pin(objects::list(self, caller, request, &kind)).await,
            (Route::Object(kind, name), &Method::GET) => {
                Box::pin(objects::get(self, caller, request, &kind, &name)).await
            }
            (Route::Object(kind, name), &Method::PUT) => {
                Box::pin(objects::put(self, caller, request, &kind, &name)).await
            }
            (Route::Object(kind, name), &Method::DELETE) => {
                Box::pin(objects::delete(self, caller, request, &kind, &name)).await
            }
            (Route::ModelLogin(name), &Method::POST) => Box::pin(logins::log_in(self, caller, request, &name)).await,
            (Route::ModelLogin(name), &Method::DELETE) => logins::log_out(self, caller, &name).await,
            (Route::ServerLogin(name), &Method::POST) => {
                Box::pin(logins::log_in_to_server(self, caller, request, &name)).await
            }
            (Route::ServerLogin(name), &Method::DELETE) => logins::log_out_of_server(self, caller, &name).await,
            (Route::Secret(name), &Method::PUT) => secrets::set(self, caller, request, &name).await,
            (Route::Triggers, &Method::POST) => Box::pin(triggers::create(self, caller, request)).await,
            (Route::Triggers, &Method::GET) => Box::pin(triggers::list(self, caller, request)).await,
            (Route::Trigger(id), &Method::GET) => Box::pin(triggers::get(self, caller, request, &id)).await,
            (Route::Trigger(id), &Method::PUT) => Box::pin(triggers::change(self, caller, request, &id)).await,
            (Route::Trigger(id), &Method::DELETE) => triggers::delete(self, caller, &id).await,
            (Route::TriggerFire(id), &Method::POST) => triggers::fire(self, caller, &id).await,
            (Route::TriggerDeliveries(id), &Method::GET) => {
                Box::pin(triggers::deliveries(self, caller, request, &id)).await
            }
            (Route::TriggerNext(id), &Method::GET) => Box::pin(triggers::next(self, caller, request, &id)).await,
            (Route::TriggerTest(id), &Method::POST) => Box::pin(triggers::test(self, caller, request, &id)).await,
            (Route::TriggerBackfill(id), &Method::POST) => {
                Box::pin(triggers::backfill(self, caller, request, &id)).await
            }
            (Route::Hook(id), &Method::POST) => Box::pin(triggers::call(self, caller, request, &id)).await,
            (Route::Cluster, &Method::GET) => cluster::status(self),
            (Route::Members, &Method::GET) => cluster::members(self, request),
            (Route::Member(name), &Method::DELETE) => cluster::remove(self, &name).await,
            (Route::JoinTokens, &Method::POST) => cluster::create_token(self, caller, request).await,
            (Route::JoinTokenRevoke, &Method::POST) => cluster::revoke_token(self, caller, request).await,
            (Route::TransferLeader, &Method::POST) => cluster::transfer_leader(self, request).await,
            (Route::Health, &Method::GET) => nodes::health(self, caller, request).await,
            (Route::Ready, &Method::GET) => nodes::ready(self, request).await,
            (Route::Snapshot, &Method::GET) => snapshot::get(self).await,
            (Route::Version, &Method::GET) => Ok(answer::json(http::StatusCode::OK, &self.about)),
            (Route::Figures, &Method::GET) => Ok(answer::json(http::StatusCode::OK, &self.service.figures(caller))),
            (Route::FiguresOf(agent), &Method::GET) => {
                Ok(answer::json(http::StatusCode::OK, &self.service.figures_of(caller, &agent)?))
            }
            (Route::Chains, &Method::POST) => Box::pin(chains::start(self, caller, request)).await,
            (Route::Chains, &Method::GET) => Box::pin(chains::list(self, caller, request)).await,
            (Route::ChainCheck, &Method::POST) => Box::pin(chains::check(self, caller, request)).await,
            (Route::Chain(id), &Method::GET) => Box::pin(chains::get(self, caller, request, &id)).await,
            (Route::ChainCancel(id), &Method::POST) => chains::cancel(self, caller, &id).await,
            (Route::ChainTree(id), &Method::GET) => Box::pin(chains::tree(self, caller, request, &id)).await,
            (Route::Conversations, &Method::GET) => conversations::list(self, caller, request).await,
            (Route::Conversation(id), &Method::GET) => conversations::get(self, caller, request, &id).await,
            (Route::Conversation(id), &Method::DELETE) => conversations::delete(self, caller, &id).await,
            (Route::McpRegistry, &Method::GET) => mcp::registry(self, caller, request).await,
            (Route::McpResource | Route::McpResourceOf(_), &Method::GET) => mcp::resource(self, request).await,
            (Route::Traces, &Method::GET) => traces::list(self, caller, request).await,
            (Route::Trace(id), &Method::GET) => traces::get(self, caller, request, &id).await,
            (Route::Questions, &Method::GET) => questions::list(self, caller, request).await,
            (Route::Question(id), &Method::GET) => questions::get(self, caller, request, &id).await,
            (Route::QuestionAnswer(id), &Method::POST) => questions::answer(self, caller, request, &id).await,
            (Route::Orchestrator, &Method::GET) => orchestrator::get(self, caller, request).await,
            (Route::Orchestrator, &Method::POST) => orchestrator::select(self, caller, request).await,
            (Route::Skills, &Method::GET) => skills::list(self, caller, request).await,
            (Route::Skills, &Method::POST) => skills::deploy(self, caller, request).await,
            (Route::Skill(name), &Method::GET) => skills::get(self, caller, request, &name).await,
            (Route::SkillTest(name), &Method::POST) => skills::test(self, caller, request, &name).await,
            (Route::Skill(name), &Method::DELETE) => {
                Box::pin(objects::delete(self, caller, request, "skill", &name)).await
            }
            (Route::ExplainPolicies, &Method::POST) => policies::explain(self, caller, request).await,
            (Route::Audit, &Method::GET) => audit::read(self, request).await,
            (Route::Whoami, &Method::GET) => access::whoami(self, request).await,
            (Route::Tokens, &Method::POST) => access::create(self, caller, request).await,
            (Route::SecurityPolicy, &Method::GET) => Err(Error::NotConfigured("No security policy configured").into()),
            (Route::ErrorPage(code), &Method::GET) => {
                let page = catalogue::page(&code).ok_or(Error::UnknownPath)?;
                Ok(answer::text_page(http::StatusCode::OK, page))
            }
            (Route::Metrics, &Method::GET) => Ok(answer::metrics(self.metrics())),
            (Route::OpenApi, &Method::GET) => Ok(answer::json(http::StatusCode::OK, api::document())),
            _ => Err(Problem::NoMethod(api::methods(path))),
        }
    }
}
