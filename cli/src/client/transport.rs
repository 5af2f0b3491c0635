//! Sends requests, over TLS where an address begins with `https://`.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use reqwest::{Body, Request, Response};
use rustls::{ClientConfig, RootCertStore};

use crate::failure::Failure;

#[cfg(test)]
mod tests;

/// How long a controller may take to accept a connection, in each attempt. One address may lead to several controllers, as that of a
/// Service of Kubernetes, which names a controller for a moment after it is gone: another attempt finds another one.
const CONNECT_TIMEOUTS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(1), Duration::from_secs(3)];

/// Which certificates of controllers are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those that this machine trusts.
    #[default]
    Machine,
    /// Those in this file alone.
    File(PathBuf),
    /// Those in this text alone, from a context.
    Text(String),
}

type Sender = legacy::Client<HttpsConnector<HttpConnector>, Body>;

/// Sends requests: one sender for each attempt to connect. The first keeps the connections.
#[derive(Clone)]
pub(super) struct Transport {
    senders: [Sender; CONNECT_TIMEOUTS.len()],
    /// Whether the user gave the certificates to trust.
    trusts_given: bool,
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    #[error("the request cannot be sent")]
    Request(#[source] reqwest::Error),
    #[error("the request was not answered")]
    Send(#[source] legacy::Error),
}

impl Unanswered {
    /// Whether no part of the request has reached a controller.
    pub(super) fn is_connect(&self) -> bool {
        matches!(self, Self::Send(error) if error.is_connect())
    }

    /// Whether nobody accepted or refused the connection in time.
    fn is_silence(&self) -> bool {
        let Self::Send(error) = self else { return false };
        let mut cause = error.source().filter(|_| error.is_connect());
        while let Some(error) = cause {
            if error.downcast_ref().is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::TimedOut) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

impl Transport {
    /// A transport to controllers, some of which may need TLS.
    pub(super) fn new(trust: &Trust, tls: bool) -> Result<Self, Failure> {
        Self::with_timeouts(trust, tls, CONNECT_TIMEOUTS)
    }

    fn with_timeouts(trust: &Trust, tls: bool, timeouts: [Duration; CONNECT_TIMEOUTS.len()]) -> Result<Self, Failure> {
        let roots = if tls { roots(trust)? } else { RootCertStore::empty() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| Failure::usage(format!("TLS could not be set up: {error}")))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let senders = timeouts.map(|timeout| sender(config.clone(), timeout));
        Ok(Self { senders, trusts_given: *trust != Trust::Machine })
    }

    /// Whether the user gave the certificates to trust.
    pub(super) fn trusts_given(&self) -> bool {
        self.trusts_given
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn execute(&self, request: Request) -> Result<Response, Unanswered> {
        let [hasty @ .., patient] = &self.senders;
        for sender in hasty {
            // A body that is made as it is sent exists once.
            let Some(request) = request.try_clone() else { break };
            match send(sender, request).await {
                Err(unanswered) if unanswered.is_silence() => {}
                answer => return answer,
            }
        }
        send(patient, request).await
    }
}

fn sender(config: ClientConfig, timeout: Duration) -> Sender {
    // A proxy could not reach a controller on the loopback interface, so there is none.
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(timeout));
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(connector);
    legacy::Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector)
}

async fn send(sender: &Sender, request: Request) -> Result<Response, Unanswered> {
    let request = http::Request::try_from(request).map_err(Unanswered::Request)?;
    let answer = sender.request(request).await.map_err(Unanswered::Send)?;
    Ok(Response::from(answer.map(Body::wrap)))
}

fn roots(trust: &Trust) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::File(path) => {
            for certificate in certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| Failure::usage(format!("\"{}\": {error}", path.display())))?;
            }
        }
        Trust::Text(text) => {
            let wrong =
                || Failure::usage("the certificate of the context cannot be used").with_next("add the context again");
            for certificate in atlas_tls::certificates_of(text).ok_or_else(wrong)? {
                roots.add(certificate).map_err(|_| wrong())?;
            }
        }
        Trust::Machine => {
            // Certificates that cannot be used are left out, as other programs do.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<rustls::pki_types::CertificateDer<'static>>, Failure> {
    atlas_tls::certificates(path).map_err(|error| {
        let text = atlas_env::chain(&error);
        Failure::usage(text).with_next("give the certificate of the cluster, ca.pem: --ca-file FILE")
    })
}
