//! TLS over the environment's network: a [`Net`] that encrypts what it opens, and a [`Listener`] that encrypts what it
//! accepts.

use std::future::Future;
use std::io::{self, Error, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Connection, Env, Listener, Net, Proof};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ServerConfig};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::authority::{public_key_of, roots};
use crate::verify::{Controllers, Trust};
use crate::watch::Watched;
use crate::{Credentials, Refused, Subject, TlsError, Watch};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// The most handshakes at once. Further connections wait in the system's queue.
const HANDSHAKES_MAX: usize = 256;
/// The pause after a connection could not be accepted because of missing file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Controllers are not recognised by the name of their host, so all are called alike.
const CONTROLLER: &str = "controller.atlas";

/// Whom a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// Everybody: they show tokens. For HTTP.
    Anybody,
    /// Clients with a certificate, and others that have none, which the door tells apart. For workers, which join
    /// without one.
    Nodes,
    /// Controllers alone.
    Controllers,
    /// Everybody, over HTTP/2: they show nothing. For autoscalers.
    Scalers,
}

/// A network whose connections lead to controllers of the cluster.
pub struct TlsNet {
    net: Arc<dyn Net>,
    connector: TlsConnector,
}

impl TlsNet {
    /// Shows a certificate, and accepts controllers whose certificates the cluster's authority issued.
    pub fn new(net: Arc<dyn Net>, credentials: &Credentials) -> Result<Self, TlsError> {
        Self::with(net, Trust::Held(credentials.clone()), Some(credentials))
    }

    /// Shows no certificate, and accepts controllers that show an authority with this fingerprint.
    pub fn pinned(net: Arc<dyn Net>, authority: [u8; 32]) -> Result<Self, TlsError> {
        Self::with(net, Trust::Pinned(authority), None)
    }

    /// Shows no certificate, and accepts controllers whose certificates these authorities issued. Certificates with another name than that
    /// of an authority count for nothing.
    pub fn trusting(net: Arc<dyn Net>, authorities: &[CertificateDer<'static>]) -> Result<Self, TlsError> {
        Self::with(net, Trust::Roots(roots(authorities)?), None)
    }

    pub(crate) fn with(net: Arc<dyn Net>, trust: Trust, own: Option<&Credentials>) -> Result<Self, TlsError> {
        let provider = provider();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13])?;
        let verifier = Arc::new(Controllers::new(trust, provider));
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match own {
            Some(own) => builder.with_client_cert_resolver(Arc::new(own.clone())),
            None => builder.with_no_client_auth(),
        };
        config.enable_sni = false;
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self { net, connector: TlsConnector::from(Arc::new(config)) })
    }
}

impl Net for TlsNet {
    fn listen(&self, addr: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        self.net.listen(addr)
    }

    fn connect<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let plain = self.net.connect(authority).await?;
            let peer = plain.peer();
            let name = ServerName::try_from(CONTROLLER).map_err(Error::other)?;
            let stream = self.connector.connect(name, plain).await?;
            let proof = proof(stream.get_ref().1.peer_certificates());
            Ok(Connection::encrypted(stream, peer, proof))
        })
    }
}

/// Encrypts what a listener accepts. Handshakes run beside each other, so that a slow client delays no other. Must run
/// in the runtime that serves the connections. The watch is told of clients that are refused because of their certificates.
pub fn listener(
    inner: Box<dyn Listener>,
    credentials: &Credentials,
    clients: Clients,
    watch: &Watch,
    env: &Env,
) -> Result<Box<dyn Listener>, TlsError> {
    let address = inner.local_addr();
    let acceptor = TlsAcceptor::from(Arc::new(server_config(credentials, clients, watch)?));
    let (ready, accepted) = mpsc::channel(1);
    env.spawn("tls-accept", accept(inner, acceptor, (clients, watch.clone()), ready, env.clone()));
    Ok(Box::new(TlsListener { address, accepted: Mutex::new(accepted) }))
}

struct TlsListener {
    address: io::Result<SocketAddr>,
    accepted: Mutex<mpsc::Receiver<io::Result<Connection>>>,
}

impl Listener for TlsListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let next = self.accepted.lock().await.recv().await;
            next.unwrap_or_else(|| Err(Error::new(ErrorKind::NotConnected, "the listener has ended")))
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.address.as_ref().copied().map_err(|error| Error::new(error.kind(), error.to_string()))
    }
}

async fn accept(
    inner: Box<dyn Listener>,
    acceptor: TlsAcceptor,
    (clients, watch): (Clients, Watch),
    ready: mpsc::Sender<io::Result<Connection>>,
    env: Env,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = handshakes.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = inner.accept() => accepted,
            () = ready.closed() => return,
        };
        match accepted {
            Ok(plain) => {
                let (acceptor, ready, limit) = (acceptor.clone(), ready.clone(), env.clock.sleep(HANDSHAKE_MAX));
                let watch = watch.clone();
                env.spawn("tls-handshake", async move {
                    let peer = plain.peer();
                    let done = tokio::select! {
                        done = handshake(plain, &acceptor, clients, &watch) => done,
                        () = limit => Err(ErrorKind::TimedOut.into()),
                    };
                    match done {
                        // A door at its limit takes no connection, and then further handshakes wait.
                        Ok(connection) => drop(ready.send(Ok(connection)).await),
                        Err(error) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                env.clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn handshake(
    plain: Connection,
    acceptor: &TlsAcceptor,
    clients: Clients,
    watch: &Watch,
) -> io::Result<Connection> {
    let peer = plain.peer();
    let stream = acceptor.accept(plain).await.inspect_err(|error| {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        if matches!(cause, Some(rustls::Error::NoCertificatesPresented)) {
            watch.tell(Refused { claimed: None, proven: false });
        }
    })?;
    let proof = proof(stream.get_ref().1.peer_certificates());
    let subject = proof.as_ref().and_then(|proof| Subject::of(&proof.name));
    if clients == Clients::Controllers && !matches!(subject, Some(Subject::Controller(_))) {
        watch.tell(Refused { claimed: subject, proven: true });
        return Err(Error::new(ErrorKind::PermissionDenied, "the client is no controller"));
    }
    Ok(Connection::encrypted(stream, peer, proof))
}

fn server_config(credentials: &Credentials, clients: Clients, watch: &Watch) -> Result<ServerConfig, TlsError> {
    let provider = provider();
    let open = matches!(clients, Clients::Anybody | Clients::Scalers);
    let versions: &[_] = if open { &[&TLS13, &TLS12] } else { &[&TLS13] };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions)?;
    let builder = if open {
        builder.with_no_client_auth()
    } else {
        let verifier = WebPkiClientVerifier::builder_with_provider(credentials.trusted(), provider);
        let verifier = if clients == Clients::Nodes { verifier.allow_unauthenticated() } else { verifier };
        let verifier = verifier.build().map_err(|error| TlsError::Verifier(error.to_string()))?;
        builder.with_client_cert_verifier(Arc::new(Watched { verifier, watch: watch.clone() }))
    };
    let mut config = builder.with_cert_resolver(Arc::new(credentials.clone()));
    // A resumed session would not show its certificate again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    let protocol: &[u8] = if clients == Clients::Anybody { b"http/1.1" } else { b"h2" };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// What the certificate of the other end says; none if it shows none that names a subject.
fn proof(shown: Option<&[CertificateDer<'_>]>) -> Option<Proof> {
    let certificate = shown?.first()?;
    let name = Subject::of_certificate(certificate)?.uri();
    Some(Proof { name, key: Sha256::digest(public_key_of(certificate)?).into() })
}
