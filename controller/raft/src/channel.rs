//! Connections to peers: HTTP/2 over the environment's network, with deadlines and keep-alives.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Connection, Env};
use http::Uri;
use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint, Error};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(2);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(4);

/// A channel to the peer door at `address`. It connects on first use and reconnects after a failure.
pub fn peer_channel(env: &Env, address: &str) -> Result<Channel, Error> {
    Ok(endpoint(address)?.connect_with_connector_lazy(connector(env)))
}

/// A channel that is already connected. On an error, no data has reached the peer.
pub(crate) async fn connected(env: &Env, address: &str) -> Result<Channel, Error> {
    endpoint(address)?.connect_with_connector(connector(env)).await
}

fn endpoint(address: &str) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_EVERY)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true))
}

type Opened = std::pin::Pin<Box<dyn Future<Output = std::io::Result<TokioIo<Connection>>> + Send>>;

fn connector(
    env: &Env,
) -> impl tower::Service<Uri, Response = TokioIo<Connection>, Error = std::io::Error, Future = Opened> + Send + use<> {
    let net = Arc::clone(&env.net);
    tower::service_fn(move |uri: Uri| {
        let net = Arc::clone(&net);
        let opened: Opened = Box::pin(async move {
            let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
            net.connect(authority).await.map(TokioIo::new)
        });
        opened
    })
}
