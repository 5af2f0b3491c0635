//! Answers calls on another runtime than that of their connection.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use atlas_env::Env;
use futures::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::{Service, ServiceExt};

/// The runtime of the doors.
#[derive(Clone)]
pub(super) struct Doors {
    runtime: Handle,
    env: Env,
}

impl Doors {
    /// The runtime of the caller.
    pub(super) fn here(env: &Env) -> Self {
        Self { runtime: Handle::current(), env: env.clone() }
    }

    /// Wraps `service`, so that its calls are answered on that runtime.
    pub(super) fn answer<S>(&self, service: S) -> Elsewhere<S> {
        Elsewhere { service, doors: self.clone() }
    }
}

/// A service whose calls and streamed answers are processed on the runtime of the doors. The connection's runtime only
/// forwards the results. A call ends when its caller disconnects.
#[derive(Clone)]
pub(super) struct Elsewhere<S> {
    service: S,
    doors: Doors,
}

impl<S: NamedService> NamedService for Elsewhere<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Elsewhere<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.service.clone();
        let (mut begun, beginning) = oneshot::channel();
        let (frames, coming) = mpsc::channel(1);
        let answer = async move {
            let answered = tokio::select! {
                biased;
                () = begun.closed() => return,
                answered = service.oneshot(request) => answered,
            };
            let Ok(answer) = answered;
            let (head, mut body) = answer.into_parts();
            if begun.send(head).is_err() {
                return;
            }
            loop {
                let frame = tokio::select! {
                    biased;
                    () = frames.closed() => return,
                    frame = body.frame() => frame,
                };
                let Some(frame) = frame else { return };
                if frames.send(frame).await.is_err() {
                    return;
                }
            }
        };
        {
            let _there = self.doors.runtime.enter();
            self.doors.env.spawn("peer-call", answer);
        }
        Box::pin(async move {
            let Ok(head) = beginning.await else { return Ok(Status::unavailable("the controller ends").into_http()) };
            let frames = stream::unfold(coming, |mut coming| async move { Some((coming.recv().await?, coming)) });
            Ok(Response::from_parts(head, Body::new(StreamBody::new(frames))))
        })
    }
}
