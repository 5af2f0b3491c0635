//! A development cluster in the program of the test.

use anyhow::{Context as _, Result, ensure};
use atlas_dev::{Cluster, Options, Ports, runtime};
use atlas_env::Env;
use atlas_package::{PackFile, pack_files};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::client::{Client, contains, request, request_with};

/// A cluster, and a client of it.
pub(crate) struct Counted {
    pub(crate) client: Client,
    cluster: Option<Cluster>,
    runtime: Runtime,
}

impl Counted {
    /// Starts a cluster with an agent `noop`, whose jobs the worker itself answers, and waits until its node is ready.
    pub(crate) fn start() -> Result<Self> {
        let runtime = runtime()?;
        let options = Options { places: Some(64), noop: true, ..Options::new(Ports::choose(0)?) };
        let cluster = runtime.block_on(Cluster::start(options, Env::system()))?;
        let mut client = Client::connect(cluster.http())?;
        let contract = "agent: { name: noop, version: 1.0.0, description: Counted., provider: { type: exec, command: [\"@noop\"] } }\n";
        let contract =
            PackFile { path: "agent.yaml".to_owned(), bytes: contract.as_bytes().to_vec(), executable: false };
        client.send(&request("POST", "/api/agents", &pack_files(vec![contract])?.bytes))?;
        let nodes = request("GET", "/api/nodes", b"");
        while !contains(client.send(&nodes)?, "\"health\":\"ready\"") {
            std::thread::yield_now();
        }
        Ok(Self { client, cluster: Some(cluster), runtime })
    }

    /// Opens streams of all changes, which are read from then on without allocations.
    pub(crate) fn follow(&mut self, streams: usize) -> Result<()> {
        let address = self.cluster.as_ref().context("a cluster")?.http();
        let open = request_with("GET", "/api/events", "accept: text/event-stream\r\n", b"");
        self.runtime.block_on(async {
            for _ in 0..streams {
                let (mut stream, mut space) = (TcpStream::connect(address).await?, [0; 16 << 10]);
                stream.write_all(&open).await?;
                ensure!(stream.read(&mut space).await? > 0, "a stream was refused");
                Env::system().spawn("subscriber", async move {
                    while stream.read(&mut space).await.is_ok_and(|read| read > 0) {}
                });
            }
            anyhow::Ok(())
        })
    }

    /// A counter among the metrics of the controller.
    pub(crate) fn metric(&mut self, name: &str) -> Result<f64> {
        let metrics = self.client.send(&request("GET", "/metrics", b""))?;
        let metrics = std::str::from_utf8(metrics)?;
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.with_context(|| format!("no metric \"{name}\""))?.parse()?)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(cluster) = self.cluster.take() {
            self.runtime.block_on(cluster.shutdown());
        }
    }
}
