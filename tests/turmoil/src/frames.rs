//! Streams between workers and members. As with questions, only the number of a frame crosses the simulated network.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Connection;
use atlas_types::{Assignment, FencingToken, Inventory, NodeEpoch, NodeId, Report, ReportResult, Seq};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use crate::cluster::Cluster;

/// The port for workers.
pub(crate) const PORT: u16 = 7401;

/// A frame from a worker.
#[derive(Debug, Clone)]
pub(crate) enum ToLeader {
    Hello { node: NodeId, boot: u128, inventory: Box<Inventory>, held: Vec<FencingToken> },
    Renew(u64),
    Report { number: u64, report: Arc<Report> },
}

/// A frame to a worker.
#[derive(Debug, Clone)]
pub(crate) enum ToWorker {
    Welcome { epoch: NodeEpoch, ttl: Duration, seq: Seq, leases: Vec<Assignment> },
    Grant(Box<Assignment>),
    Cancel(FencingToken),
    Revoke(FencingToken),
    RenewAck(u64),
    ReportAck { number: u64, result: ReportResult },
}

/// A frame in either direction.
#[derive(Debug, Clone)]
pub(crate) enum Frame {
    ToLeader(ToLeader),
    ToWorker(ToWorker),
}

/// The reading end of a stream.
pub(crate) struct Reader(Cluster, ReadHalf<Connection>);

impl Reader {
    /// The next frame; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let number = self.1.read_u64().await.ok()?;
        self.0.take_frame(number)
    }
}

/// Splits a connection: frames that are put into the channel are sent in order.
pub(crate) fn split(cluster: &Cluster, connection: Connection) -> (Reader, Writer) {
    let (read, write) = tokio::io::split(connection);
    (Reader(cluster.clone(), read), Writer(cluster.clone(), write))
}

/// The writing end of a stream.
pub(crate) struct Writer(Cluster, WriteHalf<Connection>);

impl Writer {
    /// Sends frames until the channel closes or the stream breaks.
    pub(crate) async fn run(mut self, mut frames: mpsc::UnboundedReceiver<Frame>) -> io::Result<()> {
        while let Some(frame) = frames.recv().await {
            let number = self.0.put_frame(frame);
            self.1.write_u64(number).await?;
            self.1.flush().await?;
        }
        self.1.shutdown().await
    }
}
