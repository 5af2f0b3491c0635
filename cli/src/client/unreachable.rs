//! Why a controller gave no answer, in words with what to do: nobody listens, TLS does not fit, or the port is another one.

use std::error::Error;
use std::io;
use std::time::Duration;

use rustls::CertificateError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::words;

#[cfg(test)]
mod tests;

/// How long a port may take to show what it speaks.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// The preface of HTTP/2 with empty settings: a port for gRPC answers with its own settings, a port with TLS with an alert.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// What a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Tls,
    Grpc,
    Unknown,
}

/// The failure of a request that a controller at `url` did not answer. `trusts_file` says whether the user gave the certificates to trust.
pub(super) async fn explain(error: &(dyn Error + 'static), url: &Url, trusts_file: bool) -> Option<Failure> {
    let is_https = url.scheme() == "https";
    let at = address(url);
    let why = match inner::<rustls::Error>(error) {
        Some(error) => Some(error.clone()),
        None if is_connect(error) => return None,
        None => None,
    };
    if let Some(rustls::Error::InvalidCertificate(error)) = &why {
        return Some(certificate(error, url, trusts_file));
    }
    let failure = match (probe(url).await, is_https) {
        (Speaks::Tls, false) => failure(format!("{at} speaks TLS, and the address begins with http://"))
            .with_next(format!("use: --server https://{at} --ca-file ca.pem")),
        (Speaks::Grpc, _) => failure(format!("{at} is a port for workers or controllers, not the HTTP port"))
            .with_next("use the HTTP port of the controller, by default 7400: --server URL"),
        (Speaks::Unknown, true) if is_plain(why.as_ref()) => {
            failure(format!("{at} does not speak TLS, and the address begins with https://"))
                .with_next(format!("use: --server http://{at}"))
        }
        (_, true) => match why? {
            rustls::Error::AlertReceived(alert) => failure(format!(
                "{at} refused the TLS connection ({alert:?}): a port for workers or controllers wants a certificate"
            ))
            .with_next("use the HTTP port of the controller, by default 7400: --server URL"),
            other => failure(format!("TLS with {at} failed: {other}")).with_next(explained()),
        },
        (Speaks::Unknown, false) => return None,
    };
    Some(failure)
}

/// The failure of a request to an address where nobody answers.
pub(super) fn nobody(error: &(dyn Error + 'static), base: &str, is_here: bool) -> Failure {
    // The innermost cause is the useful one ("connection refused"); the outer causes repeat the address.
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let failure = Failure::new("E4002", Exit::Unreachable, format!("could not reach Atlas at {base}: {cause}"));
    failure.with_next(match is_here {
        true => "start one: atlasctl dev   or use another: --server URL",
        false => "check the address, and that a controller runs there   or use another: --server URL",
    })
}

/// A certificate that is not accepted.
fn certificate(error: &CertificateError, url: &Url, trusts_file: bool) -> Failure {
    let at = address(url);
    match error {
        // An authority of the same name, as that of another cluster, shows in the signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature if trusts_file => {
            failure(format!("the certificate of {at} is from another authority than those in the given file"))
                .with_next("give the ca.pem of this cluster: --ca-file FILE")
        }
        CertificateError::UnknownIssuer => {
            failure(format!("the certificate of {at} is from an authority that this machine does not trust"))
                .with_next("give the certificate of the cluster: --ca-file ca.pem")
        }
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let names: Vec<String> = presented.iter().map(|name| name_of(name)).collect();
            let host = url.host_str().unwrap_or_default();
            failure(format!("the certificate of {at} is not for \"{host}\", but for {}", names.join(", ")))
                .with_next("use one of these names in --server, or start atlas-controller with --tls-names NAME")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            failure(format!("the certificate of {at} is for another name"))
                .with_next("use its name in --server, or start atlas-controller with --tls-names NAME")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => failure(format!(
            "the certificate of {at} has ended"
        ))
        .with_next("compare the clocks of both machines; the log of the controller says why it has no new certificate"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            failure(format!("the certificate of {at} is not valid yet"))
                .with_next("compare the clocks of both machines: date -u")
        }
        other => failure(format!("the certificate of {at} is not accepted: {other}")).with_next(explained()),
    }
}

/// `DnsName("c1")` as `c1`.
fn name_of(presented: &str) -> String {
    let inner = presented.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    words::short(inner.unwrap_or(presented).trim_matches('"'), 100)
}

fn explained() -> &'static str {
    "what it means: atlasctl explain-error E4013"
}

fn failure(message: String) -> Failure {
    Failure::new("E4013", Exit::Unreachable, message)
}

/// Whether the other end sent something else than TLS.
fn is_plain(why: Option<&rustls::Error>) -> bool {
    matches!(why, Some(rustls::Error::InvalidMessage(_)))
}

/// `127.0.0.1:7400`
fn address(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

/// Asks a port what it speaks, in the way that gives a recognisable answer from each.
async fn probe(url: &Url) -> Speaks {
    let asked = async {
        let mut stream = TcpStream::connect(address(url)).await?;
        stream.write_all(PREFACE).await?;
        let mut head = [0; 9];
        let read = stream.read(&mut head).await?;
        Ok::<_, io::Error>(spoken(head.get(..read).unwrap_or_default()))
    };
    tokio::time::timeout(PROBE_MAX, asked).await.map_or(Speaks::Unknown, |asked| asked.unwrap_or(Speaks::Unknown))
}

/// What the first bytes of an answer to [`PREFACE`] are: an alert of TLS, or a frame with settings.
fn spoken(head: &[u8]) -> Speaks {
    match head {
        [0x15, 3, ..] => Speaks::Tls,
        [0, _, _, 4, 0, 0, 0, 0, 0] => Speaks::Grpc,
        _ => Speaks::Unknown,
    }
}

/// Whether no connection was made.
fn is_connect(error: &(dyn Error + 'static)) -> bool {
    inner::<super::transport::Unanswered>(error).is_some_and(super::transport::Unanswered::is_connect)
}

/// The error of a type among an error and its causes; I/O errors contain others that they do not name as their cause.
fn inner<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
