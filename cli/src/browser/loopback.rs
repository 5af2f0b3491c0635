//! The listener on this machine that a browser is sent back to. It serves one request.

use std::net::{Ipv4Addr, SocketAddr};

use atlas_env::{Connection, Env, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use atlas_oauth::{CALLBACK_PATH, Code, Login, OauthError};
use futures::stream::{FuturesUnordered, StreamExt};

/// Longest head of a request that is read.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Most connections at a time.
const CONNECTIONS_MAX: usize = 16;

/// A listener that waits for the browser.
pub(crate) struct Loopback {
    listener: Box<dyn Listener>,
    /// The address that the login names.
    pub(crate) redirect_uri: String,
}

/// Why the browser brought no code.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoopbackError {
    #[error(transparent)]
    Login(#[from] OauthError),
    #[error("the request of the browser cannot be read")]
    Request,
    #[error("could not listen for the browser: {0}")]
    Listen(String),
}

impl Loopback {
    /// Listens on a port of this machine alone; on a free one if none is asked for.
    pub(crate) async fn listen(env: &Env, port: Option<u16>) -> Result<Self, LoopbackError> {
        let failed = |error: std::io::Error| LoopbackError::Listen(error.to_string());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
        let listener = env.net.listen(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, redirect_uri: format!("http://127.0.0.1:{port}{CALLBACK_PATH}") })
    }

    /// Waits for the browser, and tells the person in it how the login went. The caller sets the time limit.
    pub(crate) async fn code(self, login: &Login) -> Result<Code, LoopbackError> {
        // Browsers open connections ahead that carry no request, so several are read at a time.
        let mut heads = FuturesUnordered::new();
        loop {
            let read = tokio::select! {
                biased;
                Some(read) = heads.next() => read,
                accepted = self.listener.accept(), if heads.len() < CONNECTIONS_MAX => {
                    let failed = |error: std::io::Error| LoopbackError::Listen(error.to_string());
                    heads.push(head(accepted.map_err(failed)?));
                    continue;
                }
            };
            let Some((mut connection, head)) = read else { continue };
            let result = target(&head).and_then(|target| Ok(login.callback(target)?));
            let (status, text) = match &result {
                Ok(_) => ("200 OK", "The login is complete. You can close this window.".to_owned()),
                Err(error) => ("400 Bad Request", format!("The login failed: {error}.")),
            };
            let length = text.len();
            let response = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
            );
            // The login does not depend on what the browser shows.
            let _ = connection.write_all(response.as_bytes()).await;
            let _ = connection.shutdown().await;
            return result;
        }
    }
}

/// The head of the request, as far as it fits. None if the connection ended before.
async fn head(mut connection: Connection) -> Option<(Connection, Vec<u8>)> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while head.len() < HEAD_BYTES_MAX && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = connection.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        head.extend_from_slice(piece.get(..read)?);
    }
    Some((connection, head))
}

/// The target of a GET request.
fn target(head: &[u8]) -> Result<&str, LoopbackError> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = str::from_utf8(line).map_err(|_| LoopbackError::Request)?;
    let mut words = line.split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some("GET"), Some(target), Some(version), None) if version.starts_with("HTTP/1.") => Ok(target),
        _ => Err(LoopbackError::Request),
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::io;
    use std::pin::Pin;
    use std::sync::Mutex;

    use expect_test::{Expect, expect};
    use tokio::io::DuplexStream;

    use super::*;

    /// A listener whose connections are there from the beginning.
    struct Prepared(Mutex<Vec<DuplexStream>>);

    impl Listener for Prepared {
        fn accept(&self) -> Pin<Box<dyn Future<Output = io::Result<Connection>> + Send + '_>> {
            let next = self.0.lock().expect("a lock").pop().ok_or_else(|| io::Error::other("no browser came"));
            let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
            Box::pin(async move { Ok(Connection::new(next?, peer)) })
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 2)))
        }
    }

    fn check(requests: &[&str], expected: &Expect) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let log = runtime.block_on(async {
            let mut browsers = Vec::new();
            let mut connections = Vec::new();
            for request in requests {
                let (mut near, far) = tokio::io::duplex(64 << 10);
                near.write_all(request.as_bytes()).await.expect("written");
                near.shutdown().await.expect("ended");
                browsers.push(near);
                connections.insert(0, far);
            }
            let loopback =
                Loopback { listener: Box::new(Prepared(Mutex::new(connections))), redirect_uri: String::new() };
            let result = loopback.code(&Login::begin("", &[0; 64])).await;
            let mut log = vec![result.map_or_else(|error| error.to_string(), |_| "a code".to_owned())];
            for mut browser in browsers {
                let mut shown = String::new();
                browser.read_to_string(&mut shown).await.expect("read");
                log.extend(
                    shown.lines().filter(|line| line.starts_with("HTTP") || line.starts_with("The")).map(str::to_owned),
                );
            }
            log.join("\n")
        });
        expected.assert_eq(&log);
    }

    const STATE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    #[test]
    fn the_browser_brings_the_code() {
        let good = format!("GET /callback?code=c&state={STATE} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
        check(
            &[&good],
            &expect![[r#"
            a code
            HTTP/1.1 200 OK
            The login is complete. You can close this window."#]],
        );
        check(
            &["", "GET /call", &good],
            &expect![[r#"
            a code
            HTTP/1.1 200 OK
            The login is complete. You can close this window."#]],
        );
    }

    #[test]
    fn the_listener_is_on_this_machine_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let env = Env::system();
            let loopback = Loopback::listen(&env, None).await.expect("a free port");
            let authority = loopback.redirect_uri.strip_prefix("http://").and_then(|uri| uri.strip_suffix("/callback"));
            let authority = authority.expect("an address").to_owned();
            assert!(authority.starts_with("127.0.0.1:"));
            let login = Login::begin(loopback.redirect_uri.clone(), &[0; 64]);
            let mut browser = env.net.connect(&authority).await.expect("connected");
            let request = format!("GET /callback?code=c&state={STATE} HTTP/1.1\r\n\r\n");
            browser.write_all(request.as_bytes()).await.expect("written");
            assert!(loopback.code(&login).await.is_ok());
        });
    }

    #[test]
    fn other_requests_end_the_login() {
        check(
            &["GET /favicon.ico HTTP/1.1\r\n\r\n"],
            &expect![[r#"
            the browser came back to another path than /callback
            HTTP/1.1 400 Bad Request
            The login failed: the browser came back to another path than /callback."#]],
        );
        check(
            &["POST /callback HTTP/1.1\r\n\r\n"],
            &expect![[r#"
            the request of the browser cannot be read
            HTTP/1.1 400 Bad Request
            The login failed: the request of the browser cannot be read."#]],
        );
        check(
            &["\u{0}\r\n\r\n"],
            &expect![[r#"
            the request of the browser cannot be read
            HTTP/1.1 400 Bad Request
            The login failed: the request of the browser cannot be read."#]],
        );
        check(
            &["GET /callback?code=c&state=x HTTP/1.1\r\n\r\n"],
            &expect![[r#"
            the state is not that of this login
            HTTP/1.1 400 Bad Request
            The login failed: the state is not that of this login."#]],
        );
        check(
            &[&format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000))],
            &expect![[r#"
            the request of the browser cannot be read
            HTTP/1.1 400 Bad Request
            The login failed: the request of the browser cannot be read."#]],
        );
        check(&[], &expect!["could not listen for the browser: no browser came"]);
    }
}
