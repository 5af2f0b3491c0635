//! Three members whose networks can be cut.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use atlas_env::{Connection, Env, Listener, Net, SystemNet};
use atlas_types::{Level, MemberId};
use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tonic::transport::server::Connected;

use crate::error::Leadership;
use crate::handle::Handle;
use crate::member::Member;
use crate::options::Options;
use crate::start::{Service, start_on};
use crate::tests::soon;
use atlas_log::sim::SimDisk;

/// Three members of one group.
pub(super) struct Trio {
    pub(super) members: Vec<One>,
    _dir: TempDir,
}

/// One of the three members.
pub(super) struct One {
    pub(super) handle: Handle,
    service: Service,
    cable: watch::Sender<bool>,
}

impl Trio {
    pub(super) async fn start() -> Self {
        Self::start_knowing(Level::CURRENT).await
    }

    /// Three members that report this feature level.
    pub(super) async fn start_knowing(level: Level) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut listeners = Vec::new();
        for id in 1..=3 {
            let (cable, pulled) = watch::channel(false);
            let env = Env { net: Arc::new(Cabled(pulled)), ..Env::system() };
            let listener = env.net.listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a free port");
            listeners.push((MemberId(id), cable, env, listener));
        }
        let address = |listener: &dyn Listener| Member::at(listener.local_addr().expect("bound").to_string());
        let all: BTreeMap<_, _> =
            listeners.iter().map(|(member, _, _, listener)| (*member, address(listener.as_ref()))).collect();
        let mut members = Vec::new();
        for (member, cable, env, listener) in listeners {
            let data = dir.path().join(member.to_string());
            let (own, group) = (all[&member].clone(), all.clone());
            let options = Options {
                member,
                own,
                cluster_id: Some(7),
                members: group,
                level,
                history: false,
                ..Options::new(data)
            };
            let disk = Box::new(SimDisk::default().driver());
            let (handle, service) = soon(start_on(disk, options, env.clone())).await.expect("starts");
            let incoming = futures::stream::unfold(listener, |listener| async move {
                // If the test failed, the listener is shut down together with the runtime that polls it.
                let connection = listener.accept().await.ok()?;
                Some((Ok::<_, io::Error>(Plugged(connection)), listener))
            });
            let server = tonic::transport::Server::builder().add_service(handle.peer_door().into_service());
            handle.spawn_beside("peer-door", async move {
                server.serve_with_incoming(incoming).await.expect("serves");
            });
            members.push(One { handle, service, cable });
        }
        let trio = Self { members, _dir: dir };
        trio.leader().await;
        trio
    }

    /// The index of the leader.
    pub(super) async fn leader(&self) -> usize {
        let led = self.members.iter().map(|one| Box::pin(one.leads()));
        soon(futures::future::select_all(led)).await.1
    }

    /// The indexes of the followers.
    pub(super) async fn followers(&self) -> [usize; 2] {
        let leader = self.leader().await;
        [(leader + 1) % 3, (leader + 2) % 3]
    }

    pub(super) async fn stop(self) {
        for one in self.members {
            one.stop().await;
        }
    }
}

impl One {
    async fn leads(&self) {
        let mut leadership = self.handle.leadership();
        let leads = |leadership: &Leadership| matches!(leadership, Leadership::Leader { .. });
        leadership.wait_for(leads).await.expect("lives");
    }

    /// From now on this member sends and receives nothing.
    pub(super) fn pull_cable(&self) {
        self.cable.send_replace(true);
    }

    pub(super) fn plug_in(&self) {
        self.cable.send_replace(false);
    }

    pub(super) async fn stop(self) {
        soon(self.service.shutdown()).await;
    }
}

/// The machine's network behind a cable.
struct Cabled(watch::Receiver<bool>);

impl Net for Cabled {
    fn listen(&self, addr: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let inner = SystemNet.listen(addr).await?;
            Ok(Box::new(CabledListener { inner, pulled: self.0.clone() }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let mut pulled = self.0.clone();
            pulled.wait_for(|pulled| !pulled).await.map_err(io::Error::other)?;
            SystemNet.connect(authority).await.map(|connection| cabled(connection, &self.0))
        })
    }
}

struct CabledListener {
    inner: Box<dyn Listener>,
    pulled: watch::Receiver<bool>,
}

impl Listener for CabledListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move { self.inner.accept().await.map(|connection| cabled(connection, &self.pulled)) })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// A connection that breaks when the cable is pulled. Each end only notices that nothing arrives any more.
fn cabled(inner: Connection, pulled: &watch::Receiver<bool>) -> Connection {
    let peer = inner.peer();
    Connection::new(Wire { inner, pulled: pulled.clone(), broken: false }, peer)
}

struct Wire {
    inner: Connection,
    pulled: watch::Receiver<bool>,
    broken: bool,
}

impl Wire {
    /// True if bytes were lost on this connection.
    fn is_broken(&mut self) -> bool {
        self.broken |= *self.pulled.borrow();
        self.broken
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let lost = self.is_broken() && buf.filled().len() > before;
        if !lost {
            return read;
        }
        // The received bytes are dropped. The reader is woken to poll again, and stops at the end of the stream.
        buf.set_filled(before);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_broken() { Poll::Ready(Ok(buf.len())) } else { Pin::new(&mut self.inner).poll_write(cx, buf) }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// An accepted connection in the form that the gRPC server needs.
struct Plugged(Connection);

impl Connected for Plugged {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Plugged {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Plugged {
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
