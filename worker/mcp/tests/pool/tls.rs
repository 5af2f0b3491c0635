//! Servers with certificates.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use atlas_http::Trust;
use atlas_mcp::{McpErrorKind, ServerSpec};
use base64::Engine as _;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::server::{Mood, Server};
use crate::support::{LIMIT, arguments, pool, target, trusting};

/// Accepts connections whose handshake succeeds.
struct Secure {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Secure {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.listener.accept().await.expect("a connection");
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A server with a certificate for this name that it signed itself, and the certificate.
async fn secure(name: &str, protocols: &[&[u8]]) -> (Server, Trust) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth();
    let mut config = config.with_single_cert(vec![made.cert.der().clone()], key).expect("a key");
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::serve(format!("https://localhost:{port}/mcp"), Secure { listener, acceptor });
    (server, Trust::with(pem(made.cert.der()).as_bytes()).expect("a certificate"))
}

fn pem(certificate: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

#[tokio::test]
async fn tools_are_called_over_tls() {
    for protocols in [&[][..], &[&b"http/1.1"[..]], &[&b"h2"[..]]] {
        let (server, trust) = secure("localhost", protocols).await;
        let (pool, target) = (trusting(trust), target(&ServerSpec::http(&server.url), Some("Bearer canary")));
        assert_eq!(pool.tools(&target).await.unwrap_or_else(|error| panic!("{protocols:?}: {error}")).len(), 2);
        let sum = pool.call(&target, "add", arguments(&json!({"a": 1, "b": 2})), LIMIT).await.expect("a sum");
        assert_eq!(sum.value()["sum"], 3.0);
        pool.close_idle().await;
        server.hears("DELETE", 1).await;
        assert!(server.inner().authorizations.is_empty());
    }
}

#[tokio::test]
async fn certificates_that_nobody_vouches_for_are_refused() {
    let (server, _) = secure("localhost", &[]).await;
    let spec = ServerSpec { forward_inbound_auth: true, ..ServerSpec::http(&server.url) };
    let error = pool().tools(&target(&spec, Some("Bearer canary"))).await.expect_err("refused");
    assert_eq!(error.kind, McpErrorKind::Unreachable, "{error}");
    assert!(error.text.contains("invalid peer certificate: UnknownIssuer"), "{error}");
    // Neither a request nor a credential went out.
    assert!(server.inner().heard.is_empty() && server.inner().authorizations.is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let (server, trust) = secure("example.com", &[]).await;
    let error = trusting(trust).tools(&target(&ServerSpec::http(&server.url), None)).await.expect_err("refused");
    assert!(error.text.contains("certificate not valid for name \"localhost\""), "{error}");
}

#[tokio::test]
async fn a_redirect_that_gives_up_encryption_is_not_followed() {
    let (server, trust) = secure("localhost", &[]).await;
    server.mood(Mood::Redirects);
    let error = trusting(trust).tools(&target(&ServerSpec::http(&server.url), None)).await.expect_err("refused");
    assert!(error.text.contains("redirects to 192.0.2.1"), "{error}");
}
