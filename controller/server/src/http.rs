//! The HTTP door: JSON, event streams and metrics on one port.
//!
//! A door translates and makes no decisions. Routing is a table over path segments, because every answer has our
//! format, even for an unknown path or method. There are no middleware layers, because each would add a cost to every
//! job.

mod access;
mod agents;
mod answer;
mod audit;
mod bases;
mod batch;
mod chains;
mod cluster;
mod cluster_events;
mod conversations;
mod events;
mod frames;
mod front;
mod handlers;
mod jobs;
mod library;
mod linger;
mod logins;
mod logs;
mod mcp;
mod members;
mod messages;
mod names;
mod nodes;
mod objects;
mod openai;
mod orchestrator;
mod policies;
mod portions;
mod query;
mod questions;
mod request;
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

use atlas_api::Route;
use atlas_env::Env;
use atlas_gateway::Gateway;
use atlas_service::{Consistency, Error, Service};
use http::{HeaderName, HeaderValue};
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::http_limits::HttpLimits;
use crate::identity;
use answer::{Answer, Problem, Response};
pub(crate) use frames::Frames;
use request::{Pages, Request};

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
    pub(crate) about: atlas_api::types::Version,
    /// The frames that event streams share.
    pub(crate) frames: Arc<Frames>,
}

impl HttpDoor {
    /// Answers one request.
    async fn answer(&self, mut request: Request) -> Response {
        let accepts_problem = request.accepts_problem();
        let stale = request.consistency() == Consistency::Stale;
        let answer = match atlas_api::route(request.path()) {
            route if openai::is_path(request.path()) => {
                Ok(self.openai(route, &mut request).await.unwrap_or_else(openai::refused))
            }
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
                let ours = !route.has_plain_errors();
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

    /// Answers a request at OpenAI's interface.
    async fn openai(&self, route: Option<Route>, request: &mut Request) -> Answer {
        request.check_site(Pages::Read)?;
        let Some(route) = route else { return Err(Error::UnknownPath.into()) };
        self.dispatch(route, request).await
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
        let Some(operation) = route.operation(request.method()) else {
            return Err(Problem::NoMethod(route.methods()));
        };
        request.is_for(operation)?;
        if let Some(seq) = request.seen()?
            && !self.service.handle().wait_applied(seq, BEHIND_MAX).await
        {
            return Err(Error::Behind.into());
        }
        let (trace, request_id) = (request.trace(), request.request_id()?);
        let path = request.path().to_owned();
        let caller = match access::caller(self, request, operation.right).await {
            Ok(caller) => caller.with_trace(trace).with_request_id(request_id),
            Err(error) => {
                let problem: Problem = error.into();
                let nobody = identity::nobody().with_request_id(request_id);
                audit::note(self, &nobody, operation, &path, Some(&problem)).await?;
                return Err(problem);
            }
        };
        let project = || if operation.has_openai_errors() { openai::project(request) } else { None };
        let caller = match request.query().filled("namespace").or_else(project) {
            Some(namespace) if operation.in_namespace => caller.in_namespace(&namespace)?,
            _ => caller,
        };
        let answer = match caller.may(operation.id) {
            Ok(()) => {
                request.without_body(self).await?;
                handlers::call(self, operation.id, &caller, request, &route.names).await
            }
            Err(error) => Err(error.into()),
        };
        audit::note(self, &caller, operation, &path, answer.as_ref().err()).await?;
        answer
    }
}
