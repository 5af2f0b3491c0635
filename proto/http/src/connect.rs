//! Connections to other servers: by a network, through an optional proxy, and with TLS.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use atlas_env::{Clock, Env, Net};
use http::Uri;
use hyper::body::Body;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tower_service::Service;

use crate::{Proxy, Secret, Trust, limited, tunnel};

type BoxError = Box<dyn Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// The usual maximum time of a connection's set-up: name, TCP, proxy and TLS together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The errors of proxies of SOCKS.
type SocksError = <SocksV5<Dial> as Service<Uri>>::Error;

/// What a proxy of SOCKS says of servers behind it that it does not reach, and of itself when it is overloaded.
const SOCKS_OUTAGES: [&str; 5] =
    ["general server failure", "network unreachable", "host unreachable", "connection refused", "ttl expired"];

/// Whether a request without an answer would fail in the same way once more, because of settings and not of an outage: the proxy wants
/// a password or forbids the address, the two sides do not agree on TLS, the answer is not HTTP, or the system forbids the connection.
pub fn is_lasting(error: &(dyn Error + 'static)) -> bool {
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

/// Versions of HTTP that are spoken over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    One,
    Two,
    Both,
}

/// How connections are opened.
pub struct ConnectOptions<'a> {
    pub dial: Dial,
    pub proxy: &'a Proxy,
    /// Whose certificates are accepted.
    pub trust: &'a Trust,
    pub versions: Versions,
    /// Maximum time of a connection's set-up: name, TCP, proxy and TLS together. None if the caller limits more than that.
    pub limit: Option<(Arc<dyn Clock>, Duration)>,
}

/// A connector for one proxy setting.
#[derive(Clone)]
pub struct Connector {
    https: HttpsConnector<Route>,
    limit: Option<(Arc<dyn Clock>, Duration)>,
}

/// A client that keeps unused connections open for this time.
pub fn pool<B>(connector: Connector, idle: Duration) -> Client<Connector, B>
where
    B: Body + Send,
    B::Data: Send,
{
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_idle_timeout(idle).pool_timer(TokioTimer::new()).timer(TokioTimer::new());
    builder.build(connector)
}

impl Connector {
    /// Connections as servers outside the cluster are usually reached: by the network of the environment, within 10 s, in both versions.
    pub fn new(env: &Env, proxy: &Proxy, trust: &Trust) -> Result<Self, BoxError> {
        let limit = Some((Arc::clone(&env.clock), CONNECT_TIMEOUT));
        let dial = Dial::net(Arc::clone(&env.net), |_| Ok(()));
        Self::with(ConnectOptions { dial, proxy, trust, versions: Versions::Both, limit })
    }

    /// Connections as the options say.
    pub fn with(options: ConnectOptions<'_>) -> Result<Self, BoxError> {
        let ConnectOptions { dial, proxy, trust, versions, limit } = options;
        let route = Route::new(dial, proxy);
        let builder = HttpsConnectorBuilder::new().with_tls_config(trust.config()?).https_or_http();
        let https = match versions {
            Versions::One => builder.enable_http1().wrap_connector(route),
            Versions::Two => builder.enable_http2().wrap_connector(route),
            Versions::Both => builder.enable_http1().enable_http2().wrap_connector(route),
        };
        Ok(Self { https, limit })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
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
        let Some((clock, limit)) = self.limit.clone() else { return Box::pin(connecting) };
        Box::pin(async move {
            let timed_out =
                || io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {} s", limit.as_secs_f64()));
            limited(&*clock, limit, connecting).await.unwrap_or_else(|| Err(timed_out().into()))
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

/// Decides whether a connection to an address of a host and port may be opened.
pub type Check = dyn Fn(&str, u16, IpAddr) -> io::Result<()> + Send + Sync;

/// The addresses of a host that a check permits. Without one, the error is the first refusal.
pub async fn resolved(host: &str, port: u16, check: &Check) -> io::Result<Vec<SocketAddr>> {
    let (mut permitted, mut refusal) = (Vec::new(), None);
    for address in tokio::net::lookup_host(format!("{host}:{port}")).await? {
        match check(host, port, address.ip()) {
            Ok(()) => permitted.push(address),
            Err(error) => {
                refusal.get_or_insert(error);
            }
        }
    }
    match refusal {
        Some(refusal) if permitted.is_empty() => Err(refusal),
        _ if permitted.is_empty() => Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address")),
        _ => Ok(permitted),
    }
}

/// Opens TCP connections.
#[derive(Clone)]
pub struct Dial(Way);

#[derive(Clone)]
enum Way {
    Net { net: Arc<dyn Net>, screen: fn(IpAddr) -> io::Result<()> },
    Machine(HttpConnector),
    Checked(Arc<Check>),
}

impl Dial {
    /// By a network, also a simulated one. `screen` refuses addresses: it sees the address after its name was resolved and the connection was
    /// opened, so that no second resolution can lead elsewhere. Nothing has been sent then.
    pub fn net(net: Arc<dyn Net>, screen: fn(IpAddr) -> io::Result<()>) -> Self {
        Self(Way::Net { net, screen })
    }

    /// By the machine. If a name has several addresses, the next one is tried while one is silent; they share this time.
    pub fn machine(timeout: Option<Duration>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(timeout);
        connector.enforce_http(false);
        connector.set_nodelay(true);
        Self(Way::Machine(connector))
    }

    /// By the machine, to addresses that a check permits. It sees them before a connection is opened, and the name is not resolved again.
    pub fn checked(check: Arc<Check>) -> Self {
        Self(Way::Checked(check))
    }
}

impl Service<Uri> for Dial {
    type Response = Stream;
    type Error = BoxError;
    type Future = Connecting<Stream>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(())) // both are always ready
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let (net, screen) = match &mut self.0 {
            Way::Net { net, screen } => (Arc::clone(net), *screen),
            Way::Machine(connector) => {
                let connecting = connector.call(target);
                return Box::pin(async move {
                    let stream = connecting.await?.into_inner();
                    let peer = stream.peer_addr()?;
                    Ok(Stream(TokioIo::new(atlas_env::Connection::new(stream, peer))))
                });
            }
            Way::Checked(check) => {
                let check = Arc::clone(check);
                return Box::pin(async move { checked(&target, &*check).await });
            }
        };
        Box::pin(async move {
            let (host, port) = place(&target)?;
            let connection = net.connect(&format!("{host}:{port}")).await?;
            screen(connection.peer().ip())?;
            Ok(Stream(TokioIo::new(connection)))
        })
    }
}

fn place(target: &Uri) -> Result<(&str, u16), BoxError> {
    let host = target.host().ok_or("the address names no host")?;
    let port = target.port_u16().unwrap_or(match target.scheme_str() {
        Some("https") => 443,
        Some("socks5" | "socks5h") => 1080,
        _ => 80,
    });
    Ok((host, port))
}

/// Connects to the first address that answers.
async fn checked(target: &Uri, check: &Check) -> Result<Stream, BoxError> {
    let (host, port) = place(target)?;
    let mut last = None;
    for address in resolved(host, port, check).await? {
        match tokio::net::TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(Stream(TokioIo::new(atlas_env::Connection::new(stream, address))));
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| "the host has no address".into(), Into::into))
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

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
