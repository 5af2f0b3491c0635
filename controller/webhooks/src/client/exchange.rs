//! One request outside of deliveries, whose answer is read: to issuers of access tokens, and to who names them.

use std::time::Duration;

use atlas_env::{Env, chain};
use atlas_http::body;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT, WWW_AUTHENTICATE};
use http::request::Builder;
use http::{Method, Request, Uri};
use http_body_util::Full;

use super::{Client, Open, SendError};

/// What an address answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    pub status: u16,
    /// The header `WWW-Authenticate`.
    pub challenge: Option<String>,
    pub body: Bytes,
}

/// A body to send.
pub struct OutgoingBody<'a> {
    pub url: &'a str,
    pub content_type: &'a str,
    pub headers: &'a [(String, String)],
    pub body: Bytes,
}

/// Sends requests to the addresses of webhooks' rules, each over a connection of its own. Redirects are not followed.
#[derive(Clone)]
pub struct Exchange {
    client: Client,
    timeout: Duration,
    answer_bytes_max: usize,
}

impl Exchange {
    /// Requests that take at most `timeout`, and whose answers have at most `answer_bytes_max` bytes.
    pub fn new(env: &Env, timeout: Duration, answer_bytes_max: usize) -> Self {
        Self { client: Client::new(env), timeout, answer_bytes_max }
    }

    /// Sends a body. The status and the body of the answer, or why there is none; the text shows nothing that was sent.
    pub async fn post(&self, outgoing: OutgoingBody<'_>) -> Result<(u16, Bytes), String> {
        let answered = self.ask(outgoing).await?;
        Ok((answered.status, answered.body))
    }

    /// Sends a body, and reads the challenge in the answer too.
    pub async fn ask(&self, outgoing: OutgoingBody<'_>) -> Result<HttpAnswer, String> {
        let mut request = Request::builder().method(Method::POST).header(CONTENT_TYPE, outgoing.content_type);
        for (name, value) in outgoing.headers {
            request = request.header(name, value);
        }
        self.within(outgoing.url, request, outgoing.body).await
    }

    /// Reads an address.
    pub async fn get(&self, url: &str) -> Result<HttpAnswer, String> {
        self.within(url, Request::builder().method(Method::GET), Bytes::new()).await
    }

    async fn within(&self, url: &str, request: Builder, body: Bytes) -> Result<HttpAnswer, String> {
        let late = SendError::Late(self.timeout.as_secs());
        let sent = tokio::time::timeout(self.timeout, self.send(url, request, body)).await;
        sent.map_err(|_| late).flatten().map_err(|error| error.to_string())
    }

    async fn send(&self, url: &str, request: Builder, body: Bytes) -> Result<HttpAnswer, SendError> {
        let uri: Uri = url.parse().map_err(|_| SendError::Url)?;
        let authority = uri.authority().ok_or(SendError::Url)?.as_str().to_owned();
        let target = uri.path_and_query().map_or("/", |path| path.as_str());
        let request = request.uri(target).header(HOST, authority).header(USER_AGENT, atlas_http::USER_AGENT);
        let request = request.header(ACCEPT, "application/json");
        let request = request.body(Full::new(body)).map_err(|_| SendError::Url)?;
        let Open { mut sender, connection } = self.client.connect(uri).await?;
        let failed = |error: hyper::Error| SendError::Exchange(chain(&error));
        let answer = async {
            let answer = sender.send_request(request).await.map_err(failed)?;
            let status = answer.status().as_u16();
            let challenge = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            let challenge = challenge.map(str::to_owned);
            let streams = answer
                .headers()
                .get(CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
            if streams {
                // It may have no end, and nobody asked for events.
                return Ok(HttpAnswer { status, challenge, body: Bytes::new() });
            }
            let body = body::whole(&mut answer.into_body(), self.answer_bytes_max).await;
            let body = body.map_err(|error| SendError::Exchange(chain(&error)))?;
            Ok(HttpAnswer { status, challenge, body: body.into() })
        };
        tokio::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            // The answer may have arrived with the end of the connection.
            _ = connection => {}
        }
        answer.await
    }
}

#[cfg(test)]
mod tests {
    use atlas_env::Env;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Sends a request to a server that answers with these bytes.
    async fn post(answer: &'static str) -> Result<(u16, Bytes), String> {
        let env = Env::system();
        let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let url = format!("http://{}/token", listener.local_addr().expect("an address"));
        let _serving = env.spawn("issuer", async move {
            let Ok(mut connection) = listener.accept().await else { return };
            let _ = connection.read(&mut [0; 4096]).await;
            let _ = connection.write_all(answer.as_bytes()).await;
        });
        let exchange = Exchange::new(&env, Duration::from_secs(30), 64);
        let body = Bytes::from_static(b"grant_type=x");
        exchange.post(OutgoingBody { url: &url, content_type: "text/plain", headers: &[], body }).await
    }

    #[tokio::test]
    async fn answers_are_read_whatever_their_status() {
        let answered = post("HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}").await;
        assert_eq!(answered, Ok((400, Bytes::from_static(b"{}"))));
        let answered = post("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil the end").await;
        assert_eq!(answered, Ok((200, Bytes::from_static(b"until the end"))));
    }

    #[tokio::test]
    async fn a_refusal_says_what_is_wanted() {
        let env = Env::system();
        let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let _serving = env.spawn("server", async move {
            let Ok(mut connection) = listener.accept().await else { return };
            let _ = connection.read(&mut [0; 4096]).await;
            let answer = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer x=1\r\ncontent-length: 0\r\n\r\n";
            let _ = connection.write_all(answer.as_bytes()).await;
        });
        let answered = Exchange::new(&env, Duration::from_secs(30), 64).get(&url).await.expect("an answer");
        assert_eq!((answered.status, answered.challenge.as_deref()), (401, Some("Bearer x=1")));
    }

    #[tokio::test]
    async fn answers_that_are_too_long_or_broken_are_errors() {
        let long = "HTTP/1.1 200 OK\r\ncontent-length: 70\r\n\r\n0123456789012345678901234567890123456789012345678901234567890123456789";
        assert!(post(long).await.is_err());
        assert!(post("hello\r\n\r\n").await.is_err());
        assert!(post("").await.is_err());
    }
}
