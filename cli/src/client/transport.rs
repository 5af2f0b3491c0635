//! Sends requests, over TLS where an address begins with `https://`.

use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Clock;
use atlas_http::{ConnectOptions, Connector, Dial, Proxy, Trust as Authorities, Versions, pool};
use bytes::Bytes;
use futures::FutureExt as _;
use http::Response;
use http::header::CONTENT_LENGTH;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::client::legacy;

use super::request::Request;
use crate::failure::Failure;

#[cfg(test)]
mod tests;

/// How long a controller may take to accept a connection, in each attempt. One address may lead to several controllers, as that of a
/// Service of Kubernetes, which names a controller for a moment after it is gone: another attempt finds another one.
const CONNECT_TIMEOUTS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(1), Duration::from_secs(3)];

/// How long an unused connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

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

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Sender = legacy::Client<Connector, Body>;

/// Sends requests: one sender for each attempt to connect. The first keeps the connections.
#[derive(Clone)]
pub(super) struct Transport {
    senders: [Sender; CONNECT_TIMEOUTS.len()],
    /// Whether the user gave the certificates to trust.
    trusts_given: bool,
}

/// Waits between the head of a request and its body.
pub(super) type Delay = Option<(Arc<dyn Clock>, Duration)>;

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    #[error("the request cannot be sent")]
    Request(#[source] http::uri::InvalidUri),
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
        let authorities = if tls { authorities(trust)? } else { Authorities::only([]) };
        let [first, second, third] = timeouts.map(|timeout| sender(&authorities, timeout));
        Ok(Self { senders: [first?, second?, third?], trusts_given: *trust != Trust::Machine })
    }

    /// Whether the user gave the certificates to trust.
    pub(super) fn trusts_given(&self) -> bool {
        self.trusts_given
    }

    /// Sends a request and waits for the head of its answer. With a delay, the body follows the head after that time.
    pub(super) async fn execute(&self, request: &Request, delay: &Delay) -> Result<Response<Incoming>, Unanswered> {
        let [hasty @ .., patient] = &self.senders;
        for sender in hasty {
            match send(sender, request, delay).await {
                Err(unanswered) if unanswered.is_silence() => {}
                answer => return answer,
            }
        }
        send(patient, request, delay).await
    }
}

fn sender(trust: &Authorities, timeout: Duration) -> Result<Sender, Failure> {
    // A proxy could not reach a controller on the loopback interface, so there is none.
    let (dial, proxy) = (Dial::machine(Some(timeout)), &Proxy::Direct);
    let connector = Connector::with(ConnectOptions { dial, proxy, trust, versions: Versions::One, limit: None });
    let connector = connector.map_err(|error| Failure::usage(format!("TLS could not be set up: {error}")))?;
    Ok(pool(connector, IDLE_TIMEOUT))
}

async fn send(sender: &Sender, request: &Request, delay: &Delay) -> Result<Response<Incoming>, Unanswered> {
    let body = request.body.clone();
    let (length, body) = match delay.clone() {
        None => (None, Full::new(body).boxed_unsync()),
        Some((clock, wait)) => {
            let length = body.len();
            let late = async move {
                clock.sleep(wait).await;
                Ok::<_, Infallible>(Frame::data(body))
            };
            (Some(length), StreamBody::new(late.into_stream()).boxed_unsync())
        }
    };
    let mut message = http::Request::new(body);
    *message.method_mut() = request.method.clone();
    *message.uri_mut() = request.uri().map_err(Unanswered::Request)?;
    *message.headers_mut() = request.headers.clone();
    if let Some(length) = length {
        message.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    sender.request(message).await.map_err(Unanswered::Send)
}

fn authorities(trust: &Trust) -> Result<Authorities, Failure> {
    let certificates = match trust {
        // Certificates that cannot be used are left out, as other programs do.
        Trust::Machine => return Ok(Authorities::default()),
        Trust::File(path) => {
            let certificates = certificates(path)?;
            for certificate in &certificates {
                let usable = Authorities::check(certificate);
                usable.map_err(|error| Failure::usage(format!("\"{}\": {error}", path.display())))?;
            }
            certificates
        }
        Trust::Text(text) => {
            let wrong =
                || Failure::usage("the certificate of the context cannot be used").with_next("add the context again");
            let certificates = atlas_tls::certificates_of(text).ok_or_else(wrong)?;
            if certificates.iter().any(|certificate| Authorities::check(certificate).is_err()) {
                return Err(wrong());
            }
            certificates
        }
    };
    Ok(Authorities::only(certificates))
}

fn certificates(path: &Path) -> Result<Vec<rustls::pki_types::CertificateDer<'static>>, Failure> {
    atlas_tls::certificates(path).map_err(|error| {
        let text = atlas_env::chain(&error);
        Failure::usage(text).with_next("give the certificate of the cluster, ca.pem: --ca-file FILE")
    })
}
