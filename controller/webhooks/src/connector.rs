//! Opens connections to receivers by the environment's network, and refuses addresses that are no receivers.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use atlas_env::{Connection, Net};
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection as Connectable};
use hyper_util::rt::TokioIo;
use tower::Service;

/// Connects to the host and port of a URL.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) net: Arc<dyn Net>,
}

/// An open connection.
pub(crate) struct Open(TokioIo<Connection>);

impl Service<Uri> for Connector {
    type Response = Open;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Open, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let net = Arc::clone(&self.net);
        Box::pin(async move {
            let host = uri.host().ok_or_else(|| io::Error::other("the URL names no host"))?;
            let default = if uri.scheme() == Some(&http::uri::Scheme::HTTPS) { 443 } else { 80 };
            let connection = net.connect(&format!("{host}:{}", uri.port_u16().unwrap_or(default))).await?;
            // The address is checked after its name was resolved and the connection was opened, so that no second
            // resolution can lead elsewhere. Nothing has been sent yet.
            let address = connection.peer().ip();
            if is_refused(address) {
                return Err(io::Error::other(format!("{address} is not an address to which events are sent")));
            }
            Ok(Open(TokioIo::new(connection)))
        })
    }
}

/// Whether an address can be no receiver: link-local addresses serve a machine's cloud credentials.
fn is_refused(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_link_local() || address.is_unspecified() || address.is_multicast() || address.is_broadcast()
        }
        IpAddr::V6(address) => match mapped(address) {
            Some(address) => is_refused(address),
            None => address.is_unicast_link_local() || address.is_unspecified() || address.is_multicast(),
        },
    }
}

/// The IPv4 address inside an IPv6 address: mapped into it, or behind NAT64.
fn mapped(address: Ipv6Addr) -> Option<IpAddr> {
    let inside = match address.octets() {
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => Some([a, b, c, d].into()),
        _ => address.to_ipv4_mapped(),
    };
    inside.map(IpAddr::V4)
}

impl Connectable for Open {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Open {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl Write for Open {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_no_receivers_are_refused() {
        let refused = |text: &str| is_refused(text.parse().expect("an address"));
        for text in [
            "169.254.169.254",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "fe80::1",
            "::",
            "ff02::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
        ] {
            assert!(refused(text), "{text}");
        }
        for text in ["127.0.0.1", "10.0.0.1", "192.0.2.1", "::1", "2001:db8::1", "::ffff:10.0.0.1"] {
            assert!(!refused(text), "{text}");
        }
    }
}
