//! Measures three members of Atlas and three of Debian's etcd: on the same machine, with the same disk and the same
//! kind of client, in the same run.
//!
//! The two are measured alternately in short turns, so that a busy host affects both equally.
//!
//! The comparison uses commands of 256 bytes at the peer door and puts of 256 bytes, each at the leader and durable on
//! a majority before it is answered. A second ratio uses durable submissions over HTTP. Without `etcd`, only Atlas is
//! measured.

mod client;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use atlas_cluster_tests::chaos::Rig;
use atlas_env::Env;
use atlas_format::encode_requests;
use atlas_types::{BootId, Cordon, Door, Inventory, Namespace, NodeId, Origin, Principal, RegisterNode, Request};
use atlas_wire::proto::peer::v1 as wire;
use futures::future::try_join_all;
use tonic::transport::{Channel, Endpoint};

use self::client::Client;
use crate::failover::{start, submit};
use crate::figures::Row;
use crate::http::Connection;

/// The numbers of concurrent clients.
const CONCURRENCIES: [usize; 3] = [1, 64, 256];

/// The number of concurrent clients for the latency of a submission.
const FEW: usize = 4;

/// The most connections that the clients share.
const CHANNELS_MAX: usize = 8;

/// How long a leader must lead before it is measured, the interval of this check, and its time limit.
const SETTLED: Duration = Duration::from_millis(300);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// How often a measurement is repeated until the leader is the same at its end.
const ATTEMPTS: usize = 4;

/// The number of turns of each system, and the duration of one turn.
const TURNS: u32 = 8;
const WARM_UP: Duration = Duration::from_millis(100);
const MEASURED: Duration = Duration::from_millis(500);

/// The size of a command and of a put.
const BYTES: usize = 256;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir_in(".")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rig = start(&folder.path().join("atlas"))?;
    let version = rig.get(0, "/api/version").context("no version")?;
    let cluster = version["cluster_id"].as_str().context("no cluster id")?;
    let cluster = u128::from_str_radix(cluster, 16)?.to_be_bytes().to_vec();
    at_leader(env, &rig, |which| runtime.block_on(register(rig.peers()[which], &cluster)))?;
    ensure!(rig.get(0, "/api/nodes/bench").is_some(), "the node was not registered");
    let etcd = runtime.block_on(Etcd::start(env, folder.path()))?;
    let submitted =
        |concurrency| at_leader(env, &rig, |which| runtime.block_on(submits(env, rig.addresses()[which], concurrency)));
    let committed = |concurrency| {
        at_leader(env, &rig, |which| runtime.block_on(commits(env, rig.peers()[which], &cluster, concurrency)))
    };
    let row = |name, concurrency, latencies| Row::rate(name, concurrency, latencies, MEASURED * TURNS);
    let mut rows = Vec::new();
    for concurrency in CONCURRENCIES {
        let (mut put, mut commits, mut submits) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            if let Some(etcd) = &etcd {
                put.extend(runtime.block_on(puts(env, etcd.leader, concurrency))?);
            }
            commits.extend(committed(concurrency)?);
            submits.extend(submitted(concurrency)?);
        }
        let puts = etcd.is_some().then(|| row("etcd_put", concurrency, put));
        let against = |row: Row| match &puts {
            Some(puts) => row.value_against("etcd's puts", puts.value),
            None => row,
        };
        rows.extend(
            [row("cluster_commit", concurrency, commits), row("cluster_submit", concurrency, submits)].map(against),
        );
        rows.extend(puts);
    }
    let few: Vec<_> = (0..TURNS).map(|_| submitted(FEW)).collect::<Result<_>>()?;
    rows.push(row("cluster_submit", FEW, few.concat()));
    Ok(rows)
}

/// Measures at the leader, and repeats the measurement if the leader has changed. A host that takes the processor away
/// for long enough ends a leadership, which makes the measurement useless.
fn at_leader<T>(env: &Env, rig: &Rig, measure: impl Fn(usize) -> Result<T>) -> Result<T> {
    for _ in 1..ATTEMPTS {
        let led = settled(env, rig)?;
        let measured = measure(led.0);
        if leadership(rig) == Some(led) {
            return measured;
        }
        eprintln!("the leader changed: measuring again");
    }
    measure(settled(env, rig)?.0)
}

/// The leader and its term, once they have not changed for [`SETTLED`]. A new group may change its leader.
fn settled(env: &Env, rig: &Rig) -> Result<(usize, u64)> {
    let deadline = env.clock.monotonic() + SETTLE_MAX;
    let mut found = leadership(rig);
    let mut since = env.clock.monotonic();
    while env.clock.monotonic() < deadline {
        let now = leadership(rig);
        if now.is_none() || now != found {
            (found, since) = (now, env.clock.monotonic());
        } else if let Some(led) = found
            && env.clock.monotonic() - since >= SETTLED
        {
            return Ok(led);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    bail!("nobody leads for long")
}

fn leadership(rig: &Rig) -> Option<(usize, u64)> {
    let which = rig.leader()?;
    Some((which, rig.get(which, "/api/cluster")?["term"].as_u64()?))
}

/// Sends commands to the leader's peer door, as another member forwards them. Returns the latencies.
async fn commits(env: &Env, peers: SocketAddr, cluster_id: &[u8], concurrency: usize) -> Result<Vec<Duration>> {
    let channels = channels(peers, concurrency).await?;
    let commands = [cordon(true)?, cordon(false)?];
    let one = |number: usize| {
        let channel = channels[number % channels.len()].clone();
        let commands = &commands;
        async move {
            let mut client = wire::peer_service_client::PeerServiceClient::new(channel);
            let mut next = commands.iter().cycle().skip(number % 2);
            repeat(env, async || match next.next() {
                Some(command) => propose(&mut client, cluster_id, command).await,
                None => Ok(()),
            })
            .await
        }
    };
    Ok(try_join_all((0..concurrency).map(one)).await?.concat())
}

/// The smallest command that changes the state each time, padded with the name of the principal.
fn cordon(cordoned: bool) -> Result<Vec<u8>> {
    let cordon = Cordon { node: NodeId::new("bench")?, cordoned };
    let of = |padding: usize| -> Result<Vec<u8>> {
        let principal = Principal::new(&"p".repeat(padding))?;
        Ok(encode_requests(&[by(principal, atlas_types::Command::Cordon(cordon.clone()))]))
    };
    // The value of the flag takes one byte or none.
    let bare = of(BYTES / 2)?.len();
    let padded = of((BYTES + BYTES / 2).saturating_sub(bare))?;
    ensure!(padded.len() == BYTES, "a command has {} bytes", padded.len());
    Ok(padded)
}

fn by(principal: Principal, command: atlas_types::Command) -> Request {
    let namespace = Namespace::default_namespace();
    Request {
        origin: Origin { namespace, principal, door: Door::Http, request_id: None, body_hash: 0, trace: None },
        command,
    }
}

/// Registers the node that is cordoned and uncordoned.
async fn register(peers: SocketAddr, cluster_id: &[u8]) -> Result<()> {
    let hello = RegisterNode { node: NodeId::new("bench")?, boot_id: BootId(1), inventory: Inventory::default() };
    let requests = encode_requests(&[by(Principal::local(), atlas_types::Command::RegisterNode(hello))]);
    let mut client = wire::peer_service_client::PeerServiceClient::new(channels(peers, 1).await?.remove(0));
    propose(&mut client, cluster_id, &requests).await
}

async fn propose(
    client: &mut wire::peer_service_client::PeerServiceClient<Channel>,
    cluster_id: &[u8],
    requests: &[u8],
) -> Result<()> {
    let ask =
        wire::ProposeRequest { cluster_id: cluster_id.to_vec().into(), requests: requests.to_vec().into(), from: 0 };
    let answer = client.propose(ask).await?.into_inner();
    ensure!(answer.result() == wire::ForwardResult::Done, "a command was not applied: {answer:?}");
    Ok(())
}

/// Submits jobs over HTTP at the leader. Each is answered when the job is durable.
async fn submits(env: &Env, http: SocketAddr, concurrency: usize) -> Result<Vec<Duration>> {
    let submit = submit();
    let one = |_| async {
        let mut connection = Connection::open(http).await?;
        repeat(env, async || connection.send(&submit).await.map(drop)).await
    };
    Ok(try_join_all((0..concurrency).map(one)).await?.concat())
}

/// Repeats an operation for the measured time. Returns the latencies.
async fn repeat(env: &Env, mut once: impl AsyncFnMut() -> Result<()>) -> Result<Vec<Duration>> {
    let warm = env.clock.monotonic() + WARM_UP;
    let until = warm + MEASURED;
    let mut latencies = Vec::new();
    loop {
        let begun = env.clock.monotonic();
        if begun > until {
            return Ok(latencies);
        }
        once().await?;
        if begun >= warm {
            latencies.push(env.clock.monotonic() - begun);
        }
    }
}

async fn channels(at: SocketAddr, concurrency: usize) -> Result<Vec<Channel>> {
    let endpoint = Endpoint::from_shared(format!("http://{at}"))?.tcp_nodelay(true);
    try_join_all((0..concurrency.min(CHANNELS_MAX)).map(|_| async { Ok(endpoint.connect().await?) })).await
}

/// Puts values of the same size at etcd's leader.
async fn puts(env: &Env, leader: SocketAddr, concurrency: usize) -> Result<Vec<Duration>> {
    let channels = channels(leader, concurrency).await?;
    let one = |number: usize| {
        let channel = channels[number % channels.len()].clone();
        async move {
            let mut client = Client::new(channel);
            let key = format!("key-{number}").into_bytes();
            repeat(env, async || client.put(&key, &[7; BYTES]).await).await
        }
    };
    Ok(try_join_all((0..concurrency).map(one)).await?.concat())
}

/// Three running members of etcd with Debian's settings except for their addresses.
struct Etcd {
    _members: Vec<Member>,
    leader: SocketAddr,
}

/// A member that is killed when dropped.
struct Member(Child);

impl Drop for Member {
    fn drop(&mut self) {
        // The member may have ended on its own.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Etcd {
    /// None, with a message, if `etcd` is not installed.
    async fn start(env: &Env, folder: &Path) -> Result<Option<Self>> {
        let found = Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            eprintln!("skipped: etcd is not installed (Debian: etcd-server); nothing to hold the figures against");
            return Ok(None);
        }
        let ports = free_ports(6)?;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let cluster: Vec<String> = (0..3).map(|member| format!("e{member}={}", url(ports[member]))).collect();
        let mut members = Vec::new();
        for member in 0..3 {
            let (peers, clients) = (url(ports[member]), url(ports[3 + member]));
            let mut command = Command::new("etcd");
            command.args(["--name", &format!("e{member}"), "--initial-cluster", &cluster.join(",")]);
            command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
            command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
            command.arg("--data-dir").arg(folder.join(format!("e{member}")));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            members.push(Member(command.spawn().context("etcd starts")?));
        }
        let clients: Vec<SocketAddr> = ports[3..].iter().map(|port| ([127, 0, 0, 1], *port).into()).collect();
        let deadline = env.clock.monotonic() + Duration::from_secs(30);
        loop {
            for at in &clients {
                if leads(*at).await.unwrap_or(false) {
                    return Ok(Some(Self { _members: members, leader: *at }));
                }
            }
            ensure!(env.clock.monotonic() < deadline, "etcd elected no leader");
            env.clock.sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn leads(at: SocketAddr) -> Result<bool> {
    let channel = channels(at, 1).await?.remove(0);
    Client::new(channel).leads().await
}

/// Ports that are currently free.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    let listeners = (0..count).map(|_| std::net::TcpListener::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}
