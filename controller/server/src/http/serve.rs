//! Connections: accepting, bounds, panics, shutdown.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Connection, Listener};
use atlas_telemetry::ByStatusCode;
use futures::FutureExt as _;
use http::StatusCode;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, watch};

use super::HttpDoor;
use super::answer::{Response, plain_error};
use super::front::Front;
use super::linger::{Lingering, Unread};
use super::request::Request;

/// The largest head of a request, and the most headers in it.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 100;
/// The pause after a connection could not be accepted because of missing file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The time limit for open requests once the controller stops.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Serves until `stop` becomes true, then gives open requests time to end.
pub(crate) async fn serve(
    door: Arc<HttpDoor>,
    front: Front,
    listener: Box<dyn Listener>,
    mut stop: watch::Receiver<bool>,
) {
    let loopback = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let connections = Arc::new(Semaphore::new(door.limits.connections_max));
    let all = u32::try_from(door.limits.connections_max).unwrap_or(u32::MAX);
    loop {
        // Beyond the limit, new connections wait in the system's queue.
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok(connection) => {
                let (served, front, stop) = (door.clone(), front.clone(), stop.clone());
                door.env.spawn("http-connection", async move {
                    connected(served, front, (connection, loopback), stop).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                door.env.clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(DRAIN_MAX, connections.acquire_many(all)).await;
}

/// Serves a connection; also takes whether its port listens on loopback only.
async fn connected(
    door: Arc<HttpDoor>,
    front: Front,
    (connection, loopback): (Connection, bool),
    mut stop: watch::Receiver<bool>,
) {
    let unread = Unread::default();
    let peer = connection.peer();
    let service = service_fn(|request: http::Request<Incoming>| {
        let (door, front) = (door.clone(), front.clone());
        let request = Request::new(request, unread.clone(), peer, loopback);
        async move { Ok::<_, Infallible>(answered(&door, &front, request).await) }
    });
    let builder = protocol(door.limits.header_timeout);
    let connection = Lingering::new(connection, unread.clone(), door.env.clone(), door.limits.body_timeout);
    let serving = builder.serve_connection(TokioIo::new(connection), service).with_upgrades();
    tokio::pin!(serving);
    let stopped = async { drop(stop.wait_for(|stop| *stop).await) };
    let ended = tokio::select! {
        ended = serving.as_mut() => Some(ended),
        () = stopped => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        // A client that disconnects or sends invalid data is not relevant to an operator.
        tracing::debug!(%error, "a connection ended early");
    }
}

/// HTTP/1.1 with its bounds. Not with `pipeline_flush`: what a slow client does not read would then be buffered without a limit, and every
/// body would be copied once more.
fn protocol(header_timeout: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(header_timeout);
    builder.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    builder
}

/// Answers one request, even if its handler panics.
async fn answered(door: &HttpDoor, front: &Front, request: Request) -> Response {
    let start = door.env.clock.monotonic();
    let answer = AssertUnwindSafe(front.answer(door, request)).catch_unwind().await;
    let response = answer.unwrap_or_else(|_| {
        tracing::error!("a request's handler panicked");
        plain_error(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
    });
    let took = door.env.clock.monotonic().saturating_sub(start);
    let attributes = ByStatusCode { http_response_status_code: response.status().as_u16() };
    door.service.metrics().http_request_duration.get_or_create(&attributes).observe(took.as_secs_f64());
    response
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::Body;
    use bytes::Bytes;
    use futures::{StreamExt as _, poll, stream};
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    const PIECES: usize = 1_000;
    const PIECE: &[u8] = &[b'x'; 16 << 10];

    #[tokio::test]
    async fn what_a_client_does_not_read_is_not_buffered() {
        let taken = Arc::new(AtomicUsize::new(0));
        let service = service_fn(|_: http::Request<Incoming>| {
            let taken = taken.clone();
            let pieces = stream::iter(0..PIECES).map(move |_| {
                taken.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(Bytes::from_static(PIECE))
            });
            async { Ok::<_, Infallible>(Response::new(Body::from_stream(pieces))) }
        });
        let (mut client, server) = tokio::io::duplex(4 << 10);
        client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("there is room");
        let builder = protocol(Duration::from_secs(60));
        let mut serving = std::pin::pin!(builder.serve_connection(TokioIo::new(server), service));
        for _ in 0..8 {
            assert!(poll!(&mut serving).is_pending(), "the answer waits for its reader");
        }
        let taken = taken.load(Ordering::Relaxed);
        assert!((1..PIECES / 10).contains(&taken), "{taken} pieces were taken of a body that nobody reads");
    }
}
