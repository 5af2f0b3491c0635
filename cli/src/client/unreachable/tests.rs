//! Mistakes with TLS and ports, against real listeners.

#![expect(clippy::disallowed_methods, reason = "the listeners of tests end with them")]

use std::sync::Arc;

use base64::Engine as _;
use expect_test::expect;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::net::TcpListener;

use super::*;
use crate::client::{Client, Trust};

/// A listener that answers the first bytes of every connection with these.
async fn listener(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 1024];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(answer).await;
            });
        }
    });
    port
}

/// A listener with TLS and a certificate for these names.
async fn tls_listener(names: &[&str], expired: bool) -> (u16, String) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(names.clone()).expect("names");
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("{names:?} {expired}"));
    if expired {
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
    }
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth();
    let private = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let config = config.with_single_cert(vec![certificate.der().clone()], private).expect("fits");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move { acceptor.accept(stream).await.map(drop) });
        }
    });
    let base64 = base64::engine::general_purpose::STANDARD.encode(certificate.der());
    (port, format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n"))
}

async fn told(scheme: &str, port: u16, trust: Trust) -> String {
    let client = Client::trusting(&format!("{scheme}://127.0.0.1:{port}"), &trust).expect("a client");
    let failure = client.get(&["api", "version"], &[]).await.expect_err("no answer");
    format!("{failure}\n").replace(&format!(":{port}"), ":PORT")
}

#[tokio::test]
async fn a_mistake_with_tls_says_what_to_use() {
    let (tls, pem) = tls_listener(&["127.0.0.1"], false).await;
    let (named, other) = tls_listener(&["c1.example"], false).await;
    let (old, ended) = tls_listener(&["127.0.0.1"], true).await;
    let plain = listener(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    let grpc = listener(b"\0\0\0\x04\0\0\0\0\0").await;
    let all = [
        told("http", tls, Trust::Machine).await,
        told("https", plain, Trust::Text(pem.clone())).await,
        told("https", tls, Trust::Machine).await,
        told("https", tls, Trust::Text(other.clone())).await,
        told("https", named, Trust::Text(other)).await,
        told("https", old, Trust::Text(ended)).await,
        told("http", grpc, Trust::Machine).await,
        told("https", grpc, Trust::Text(pem)).await,
    ];
    expect![[r#"
        error[E4013]: 127.0.0.1:PORT speaks TLS, and the address begins with http://
        use: --server https://127.0.0.1:PORT --ca-file ca.pem
        error[E4013]: 127.0.0.1:PORT does not speak TLS, and the address begins with https://
        use: --server http://127.0.0.1:PORT
        error[E4013]: the certificate of 127.0.0.1:PORT is from an authority that this machine does not trust
        give the certificate of the cluster: --ca-file ca.pem
        error[E4013]: the certificate of 127.0.0.1:PORT is from another authority than those in the given file
        give the ca.pem of this cluster: --ca-file FILE
        error[E4013]: the certificate of 127.0.0.1:PORT is not for "127.0.0.1", but for c1.example
        use one of these names in --server, or start atlas-controller with --tls-names NAME
        error[E4013]: the certificate of 127.0.0.1:PORT has ended
        compare the clocks of both machines; the log of the controller says why it has no new certificate
        error[E4013]: 127.0.0.1:PORT is a port for workers or controllers, not the HTTP port
        use the HTTP port of the controller, by default 7400: --server URL
        error[E4013]: 127.0.0.1:PORT is a port for workers or controllers, not the HTTP port
        use the HTTP port of the controller, by default 7400: --server URL
    "#]]
    .assert_eq(&all.concat());
}

#[test]
fn only_alerts_and_settings_are_recognised() {
    assert_eq!(spoken(&[0x15, 3, 3, 0, 2]), Speaks::Tls);
    assert_eq!(spoken(&[0, 0, 6, 4, 0, 0, 0, 0, 0]), Speaks::Grpc);
    assert_eq!(spoken(b"HTTP/1.1 "), Speaks::Unknown);
    assert_eq!(spoken(b""), Speaks::Unknown);
}
