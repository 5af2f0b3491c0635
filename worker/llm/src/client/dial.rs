//! Connections to providers of models and to MCP servers: through the network of [`Env`], an optional proxy, and TLS.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use atlas_env::{Clock, Env, Net};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tower_service::Service;

use super::limited;
use super::proxy::Proxy;
use super::trust::Trust;
use super::tunnel;
use crate::Secret;

type BoxError = Box<dyn Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Maximum time of a connection's set-up: name, TCP, proxy and TLS together.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The errors of proxies of SOCKS.
type SocksError = <SocksV5<Dial> as Service<Uri>>::Error;

/// What a proxy of SOCKS says of servers behind it that it does not reach, and of itself when it is overloaded.
const SOCKS_OUTAGES: [&str; 5] =
    ["general server failure", "network unreachable", "host unreachable", "connection refused", "ttl expired"];

/// Whether a request without an answer would fail in the same way once more, because of settings and not of an outage: the proxy wants
/// a password or forbids the address, the two sides do not agree on TLS, the answer is not HTTP, or the system forbids the connection.
pub(super) fn is_lasting(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, PermissionDenied};
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error.downcast_ref::<io::Error>();
        let is_forbidden = io.is_some_and(|io| matches!(io.kind(), InvalidData | InvalidInput | PermissionDenied));
        let is_locked = error.downcast_ref::<tunnel::Refused>().is_some_and(|refused| refused.is_lasting());
        let is_unwanted = error.downcast_ref::<SocksError>().is_some_and(|error| match error {
            SocksError::Parsing(_) => true,
            // What it says has no type that can be named.
            SocksError::V5(said) => !SOCKS_OUTAGES.contains(&said.to_string().as_str()),
            _ => false,
        });
        let is_strange = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse);
        if is_forbidden || is_locked || is_unwanted || is_strange || error.is::<rustls::Error>() {
            return true;
        }
        // The source of an input error is that of the error within it.
        next = match io.and_then(io::Error::get_ref) {
            Some(within) => Some(within),
            None => error.source(),
        };
    }
    false
}

/// A connector for one proxy setting.
#[derive(Clone)]
pub struct Connector {
    https: HttpsConnector<Route>,
    clock: Arc<dyn Clock>,
}

impl Connector {
    /// Connections through `proxy`, to servers whose certificates `trust` accepts.
    pub fn new(env: &Env, proxy: &Proxy, trust: &Trust) -> Result<Self, BoxError> {
        let route = Route::new(Dial { net: Arc::clone(&env.net) }, proxy);
        let builder = HttpsConnectorBuilder::new().with_tls_config(trust.config()?).https_or_http();
        let https = builder.enable_http1().enable_http2().wrap_connector(route);
        Ok(Self { https, clock: Arc::clone(&env.clock) })
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Stream>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connecting = self.https.call(target);
        let clock = Arc::clone(&self.clock);
        Box::pin(async move {
            let timed_out = || io::Error::new(io::ErrorKind::TimedOut, "no connection within 10 s");
            limited(&*clock, CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|| Err(timed_out().into()))
        })
    }
}

#[derive(Clone)]
enum Route {
    Direct(Dial),
    Tunnel { dial: Dial, proxy: Uri, authorization: Option<Secret> },
    Socks(SocksV5<Dial>),
}

impl Route {
    fn new(dial: Dial, proxy: &Proxy) -> Self {
        match proxy {
            Proxy::Direct => Self::Direct(dial),
            Proxy::Http { address, authorization } => {
                Self::Tunnel { dial, proxy: address.clone(), authorization: authorization.clone() }
            }
            Proxy::Socks { address, user } => {
                let socks = SocksV5::new(address.clone(), dial);
                Self::Socks(match user {
                    Some((user, password)) => socks.with_auth(user.clone(), password.expose().to_owned()),
                    None => socks,
                })
            }
        }
    }
}

impl Service<Uri> for Route {
    type Response = Stream;
    type Error = BoxError;
    type Future = Connecting<Stream>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(())) // all three are always ready
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let target = with_port(target);
        match self {
            Self::Direct(dial) => dial.call(target),
            Self::Tunnel { dial, proxy, authorization } => {
                let (connecting, authorization) = (dial.call(proxy.clone()), authorization.clone());
                Box::pin(async move {
                    let mut stream = connecting.await?;
                    let authorization = authorization.as_ref().map(Secret::expose);
                    tunnel::open(stream.0.inner_mut(), &target, authorization).await?;
                    Ok(stream)
                })
            }
            Self::Socks(socks) => {
                let connecting = socks.call(target);
                Box::pin(async move { Ok(connecting.await?) })
            }
        }
    }
}

/// The address with its port: proxies take a missing one for that of HTTPS.
fn with_port(target: Uri) -> Uri {
    let (Some(host), None, Some("http")) = (target.host(), target.port(), target.scheme_str()) else { return target };
    Uri::builder().scheme("http").authority(format!("{host}:80")).path_and_query("/").build().unwrap_or(target)
}

/// Opens TCP connections.
#[derive(Clone)]
struct Dial {
    net: Arc<dyn Net>,
}

impl Service<Uri> for Dial {
    type Response = Stream;
    type Error = BoxError;
    type Future = Connecting<Stream>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let net = Arc::clone(&self.net);
        Box::pin(async move {
            let host = target.host().ok_or("the address names no host")?;
            let port = target.port_u16().unwrap_or(match target.scheme_str() {
                Some("https") => 443,
                Some("socks5" | "socks5h") => 1080,
                _ => 80,
            });
            let connection = net.connect(&format!("{host}:{port}")).await?;
            Ok(Stream(TokioIo::new(connection)))
        })
    }
}

/// A TCP connection in hyper's terms.
pub struct Stream(TokioIo<atlas_env::Connection>);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
