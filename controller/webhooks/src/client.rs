//! Sends requests to one receiver, over one connection that is kept open between them.

mod exchange;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, chain};
use atlas_http::{ConnectOptions, Connector, Dial, Proxy, Trust, Versions, body};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, USER_AGENT};
use http::uri::Scheme;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use tower::ServiceExt;

use crate::addresses::screen;
pub use exchange::{Exchange, HttpAnswer, OutgoingBody};

/// The most bytes of an answer that are read; a connection with a longer one is closed.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Why a request failed, for the status of the webhook. Neither the answer's body nor anything that was sent is part of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the URL cannot be used")]
    Url,
    #[error("could not connect: {0}")]
    Connect(String),
    #[error("the connection failed: {0}")]
    Exchange(String),
    #[error("no answer within {0} s")]
    Late(u64),
    #[error("the receiver answered {0}, and redirects are not followed")]
    Redirect(u16),
    #[error("the receiver answered {0}")]
    Refused(u16),
}

/// Connects to receivers by HTTP and by TLS. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    env: Env,
    trust: Trust,
}

impl Client {
    /// A client that trusts the certificates that the system trusts.
    pub(crate) fn new(env: &Env) -> Self {
        Self { env: env.clone(), trust: Trust::default() }
    }

    /// A receiver to which nothing is connected yet.
    pub(crate) fn receiver(&self, url: &str, timeout: Duration) -> Result<Receiver, SendError> {
        let uri: Uri = url.parse().map_err(|_| SendError::Url)?;
        let authority = uri.authority().ok_or(SendError::Url)?.as_str().to_owned();
        Ok(Receiver { client: self.clone(), uri, authority, timeout, open: None })
    }

    async fn connect(&self, uri: Uri) -> Result<Open, SendError> {
        let trust = match uri.scheme() == Some(&Scheme::HTTPS) {
            true => self.trusted().await?,
            // No certificate is looked at.
            false => Trust::only([]),
        };
        let options = ConnectOptions {
            dial: Dial::net(Arc::clone(&self.env.net), screen),
            proxy: &Proxy::Direct,
            trust: &trust,
            versions: Versions::One,
            limit: None,
        };
        let opened = match Connector::with(options) {
            Ok(connector) => connector.oneshot(uri).await,
            Err(error) => Err(error),
        };
        Open::over(opened.map_err(|error| SendError::Connect(chain(&*error)))?).await
    }

    /// Who is trusted, once that is read. A machine may have no root certificates, and then TLS is refused.
    async fn trusted(&self) -> Result<Trust, SendError> {
        let trust = self.trust.clone();
        let loaded = self.env.spawn_blocking("read-roots", move || trust.load()).join().await;
        match loaded {
            Ok(Ok(())) => Ok(self.trust.clone()),
            Ok(Err(error)) => Err(SendError::Connect(error.to_string())),
            Err(_) => Err(SendError::Connect("the system's root certificates cannot be read".to_owned())),
        }
    }
}

/// One receiver.
pub(crate) struct Receiver {
    client: Client,
    uri: Uri,
    authority: String,
    timeout: Duration,
    open: Option<Open>,
}

/// An open connection, which makes progress only while a request is under way.
struct Open {
    sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
}

impl Receiver {
    /// Sends a body and waits for an answer with a status of success.
    pub(crate) async fn post(&mut self, headers: &[(HeaderName, String)], body: Bytes) -> Result<(), SendError> {
        let late = SendError::Late(self.timeout.as_secs());
        let status = tokio::time::timeout(self.timeout, self.exchange(headers, body)).await.map_err(|_| late)??;
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(SendError::Redirect(status.as_u16())),
            status => Err(SendError::Refused(status.as_u16())),
        }
    }

    async fn exchange(&mut self, headers: &[(HeaderName, String)], body: Bytes) -> Result<StatusCode, SendError> {
        if let Some(open) = self.open.take() {
            // The receiver may have closed the connection since the last request.
            if let Ok((status, open)) = open.exchange(self.request(headers, body.clone())?).await {
                self.open = open;
                return Ok(status);
            }
        }
        let open = self.client.connect(self.uri.clone()).await?;
        let (status, open) = open.exchange(self.request(headers, body)?).await?;
        self.open = open;
        Ok(status)
    }

    fn request(&self, headers: &[(HeaderName, String)], body: Bytes) -> Result<Request<Full<Bytes>>, SendError> {
        let target = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder().method(Method::POST).uri(target);
        request = request.header(HOST, &self.authority).header(USER_AGENT, atlas_http::USER_AGENT);
        request = request.header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(Full::new(body)).map_err(|_| SendError::Url)
    }
}

impl Open {
    async fn over(stream: impl hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static) -> Result<Self, SendError> {
        let (sender, connection) = handshake(stream).await.map_err(|error| SendError::Exchange(chain(&error)))?;
        Ok(Self { sender, connection: Box::pin(connection) })
    }

    /// Sends one request. The connection is returned if another one may follow.
    async fn exchange(self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Option<Self>), SendError> {
        let Self { mut sender, mut connection } = self;
        let answered = {
            let mut answer = Box::pin(answer(&mut sender, request));
            let answered = tokio::select! {
                biased;
                answered = &mut answer => Some(answered),
                _ = &mut connection => None,
            };
            match answered {
                Some(answered) => answered.map(|(status, complete)| (status, complete.then_some(connection))),
                None => {
                    // A receiver may close the connection with its answer, which has arrived then. A missing answer
                    // becomes an error once the connection is dropped.
                    drop(connection);
                    answer.await.map(|(status, _)| (status, None))
                }
            }
        };
        let (status, connection) = answered.map_err(|error| SendError::Exchange(chain(&error)))?;
        Ok((status, connection.map(|connection| Self { sender, connection })))
    }
}

/// The status of an answer, and whether all of it was read.
async fn answer(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, bool), hyper::Error> {
    sender.ready().await?;
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let complete = body::whole(&mut answer.into_body(), ANSWER_BYTES_MAX).await.is_ok();
    Ok((status, complete))
}

#[cfg(test)]
mod tests {
    use atlas_env::Listener;
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// A receiver that accepts one request by TLS for `localhost`, and what a client needs to trust it.
    async fn secure() -> (String, Trust) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let server = server.expect("versions").with_no_client_auth();
        let server = server.with_single_cert(vec![certificate.clone()], key).expect("a key");

        let env = Env::system();
        let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let _serving = env.spawn("receiver", serve(listener, TlsAcceptor::from(Arc::new(server))));
        (format!("https://localhost:{port}/"), Trust::only([certificate]))
    }

    async fn serve(listener: Box<dyn Listener>, acceptor: TlsAcceptor) {
        while let Ok(connection) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(connection).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    }

    async fn post(client: &Client, url: &str) -> Result<(), SendError> {
        let mut receiver = client.receiver(url, Duration::from_secs(30)).expect("a URL");
        receiver.post(&[], Bytes::from_static(b"{}")).await
    }

    #[tokio::test]
    async fn tls_is_used_with_certificates_that_are_trusted() {
        let (url, trust) = secure().await;
        let env = Env::system();
        let trusting = Client { env: env.clone(), trust };
        post(&trusting, &url).await.expect("it is trusted");
        let error = post(&Client::new(&env), &url).await.expect_err("nobody vouches for it");
        assert!(error.to_string().contains("certificate"), "{error}");
        let plain = post(&Client::new(&env), &url.replace("https", "http")).await;
        plain.expect_err("it does not speak plain HTTP");
    }

    #[tokio::test]
    async fn without_certificates_tls_is_refused_and_plain_http_is_not() {
        let client = Client { env: Env::system(), trust: Trust::only([]) };
        let listener = client.env.net.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let _serving = client.env.spawn("receiver", async move {
            while let Ok(mut stream) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            }
        });
        let error = post(&client, &format!("https://localhost:{port}/")).await.expect_err("nobody is trusted");
        assert_eq!(error.to_string(), "could not connect: none of the certificates that were given can be used");
        post(&client, &format!("http://localhost:{port}/")).await.expect("no certificate is needed");
    }

    #[tokio::test]
    async fn addresses_and_urls_that_cannot_be_used_are_refused() {
        let client = Client::new(&Env::system());
        assert!(client.receiver("/nowhere", Duration::ZERO).is_err());
        let listener = Env::system().net.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let error = post(&client, &format!("http://{address}")).await.expect_err("nobody listens");
        assert!(error.to_string().starts_with("could not connect: "), "{error}");
    }
}
