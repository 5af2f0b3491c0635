//! Tunnels through proxies of HTTP. A proxy that refuses one says with its status why.

use std::io;

use http::Uri;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The largest head of a proxy's answer.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// The answer of a proxy that opens no tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proxy answered CONNECT with the status {status}")]
pub(crate) struct Refused {
    status: u16,
}

impl Refused {
    /// Whether the proxy refuses in the same way until somebody changes its settings or those of the server: it wants a password or forbids
    /// the address. Statuses of an overload, and of a server behind it that does not answer, pass by themselves.
    pub(crate) fn is_lasting(self) -> bool {
        !matches!(self.status, 408 | 425 | 429 | 500..)
    }
}

/// Asks the proxy at the other end of a connection for a tunnel. What follows goes to the target.
pub(crate) async fn open(
    connection: &mut (impl AsyncRead + AsyncWrite + Unpin),
    target: &Uri,
    authorization: Option<&str>,
) -> io::Result<()> {
    let host = target.host().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the address names no host"))?;
    let authority = format!("{host}:{}", target.port_u16().unwrap_or(443));
    let authorization = authorization.map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    // The target says nothing before it is asked, so nothing of it follows the head.
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX {
            return Err(strange());
        }
        match connection.read(&mut piece).await? {
            0 => {
                let text = "the proxy closed the connection before it answered";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            read => head.extend_from_slice(&piece[..read]),
        }
    }
    match status(&head).ok_or_else(strange)? {
        200..=299 => Ok(()),
        status => Err(io::Error::other(Refused { status })),
    }
}

/// The status in the first line of an answer.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let (version, rest) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let status = rest.split(' ').next()?;
    let is_one = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    (version.starts_with("HTTP/1.") && is_one).then(|| status.parse().ok())?
}

fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer of the proxy is not HTTP")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_has_the_status() {
        let of = |head: &str| status(head.as_bytes());
        assert_eq!(of("HTTP/1.1 403 Forbidden\r\nVia: x\r\n\r\n"), Some(403));
        assert_eq!(of("HTTP/1.0 200\r\n\r\n"), Some(200));
        let strange = [
            "",
            "\r\n\r\n",
            "HTTP/1.1\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 +20 OK\r\n\r\n",
            "SSH-2.0 200\r\n\r\n",
        ];
        assert_eq!(strange.map(of), [None; 6]);
    }

    #[test]
    fn settings_do_not_pass_by_themselves() {
        let lasting = [100, 199, 301, 400, 401, 403, 404, 405, 407, 408, 425, 429, 500, 502, 503, 504];
        let lasting = lasting.map(|status| (status, Refused { status }.is_lasting()));
        let passing = lasting.iter().filter(|(_, lasting)| !lasting).map(|(status, _)| *status).collect::<Vec<_>>();
        assert_eq!(passing, [408, 425, 429, 500, 502, 503, 504]);
    }
}
