//! Measures the limits of the machine itself: one sync, and one round trip over HTTP, a gRPC stream and a pipe.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use atlas_env::Env;
use atlas_wire::proto::worker::v1 as wire;
use futures::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request};

/// How often each is repeated.
const TIMES: usize = 2000;

/// The pause before each line: the duration of a job.
const ASLEEP: Duration = Duration::from_micros(500);

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    Ok(vec![
        fsync(env)?,
        pipe(env, "limit_pipe", None)?,
        pipe(env, "limit_pipe_asleep", Some(ASLEEP))?,
        http(env)?,
        stream(env)?,
    ])
}

/// Overwrites one block of a file with allocated blocks, and syncs it.
fn fsync(env: &Env) -> Result<Row> {
    const BLOCK: usize = 4096;
    const BLOCKS: usize = 1024;
    let folder = tempfile::tempdir_in(".")?;
    let mut file = File::create(folder.path().join("blocks"))?;
    file.write_all(&vec![0; BLOCK * BLOCKS])?;
    file.sync_all()?;
    let block = vec![7; BLOCK];
    times("limit_fsync", env, |number| {
        file.write_all_at(&block, (number % BLOCKS * BLOCK) as u64)?;
        Ok(file.sync_data()?)
    })
}

/// Sends one line through `cat` and back: the minimal cost of a warm agent in another process. With a pause before each
/// line, the other process and its core are asleep, as they are for sequential jobs.
fn pipe(env: &Env, name: &str, pause: Option<Duration>) -> Result<Row> {
    let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cat starts")?;
    let mut input = cat.stdin.take().context("piped")?;
    let mut output = BufReader::new(cat.stdout.take().context("piped")?);
    let mut line = String::new();
    let mut latencies = Vec::with_capacity(TIMES);
    let begun = env.clock.monotonic();
    for _ in 0..TIMES {
        if let Some(pause) = pause {
            std::thread::sleep(pause);
        }
        let started = env.clock.monotonic();
        input.write_all(b"{}\n")?;
        line.clear();
        output.read_line(&mut line)?;
        latencies.push(env.clock.monotonic() - started);
    }
    drop(input);
    cat.wait()?;
    Ok(Row::rate(name, 1, latencies, env.clock.monotonic() - begun))
}

/// Measures a request without any decision at the doors of a running controller.
fn http(env: &Env) -> Result<Row> {
    let runtime = atlas_dev::runtime()?;
    let cluster = runtime.block_on(cluster::start(env, 1))?;
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let version = request("GET", "/api/version", b"");
    let row = client.block_on(async {
        let mut connection = Connection::open(cluster.http()).await?;
        let mut latencies = Vec::with_capacity(TIMES);
        let begun = env.clock.monotonic();
        for _ in 0..TIMES {
            let sent = env.clock.monotonic();
            connection.send(&version).await?;
            latencies.push(env.clock.monotonic() - sent);
        }
        anyhow::Ok(Row::rate("limit_http", 1, latencies, env.clock.monotonic() - begun))
    });
    runtime.block_on(cluster.shutdown());
    row
}

/// Measures a frame of the workers' stream to a server that only sends it back.
fn stream(env: &Env) -> Result<Row> {
    let server = atlas_dev::runtime()?;
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let service = wire::worker_service_server::WorkerServiceServer::new(Echo);
    let serving = env.clone();
    server.block_on(async move {
        let serve = tonic::transport::Server::builder().tcp_nodelay(true).add_service(service).serve(address);
        serving.spawn("echo", serve)
    });
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    client.block_on(async {
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
        let channel = loop {
            match endpoint.connect().await {
                Ok(channel) => break channel,
                Err(_) => env.clock.sleep(Duration::from_millis(5)).await,
            }
        };
        let (sender, frames) = tokio::sync::mpsc::channel(1);
        let frames = tokio_stream::wrappers::ReceiverStream::new(frames);
        let mut worker = wire::worker_service_client::WorkerServiceClient::new(channel);
        let renew =
            |number| wire::SessionRequest { kind: Some(wire::session_request::Kind::Renew(wire::Renew { number })) };
        sender.send(renew(0)).await?;
        let mut answers = worker.session(frames).await?.into_inner();
        answers.next().await.context("an answer")??;
        let mut latencies = Vec::with_capacity(TIMES);
        let begun = env.clock.monotonic();
        for number in 1..=TIMES as u64 {
            let sent = env.clock.monotonic();
            sender.send(renew(number)).await?;
            answers.next().await.context("an answer")??;
            latencies.push(env.clock.monotonic() - sent);
        }
        Ok(Row::rate("limit_stream", 1, latencies, env.clock.monotonic() - begun))
    })
}

/// A controller that can only answer a renewal.
struct Echo;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl wire::worker_service_server::WorkerService for Echo {
    type SessionStream = Answers<wire::SessionResponse>;
    type FetchPackageStream = Answers<wire::FetchPackageResponse>;
    type FetchPayloadStream = Answers<wire::FetchPayloadResponse>;

    async fn session(
        &self,
        request: Request<Streaming<wire::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let answers = request.into_inner().map(|frame| {
            let number = match frame?.kind {
                Some(wire::session_request::Kind::Renew(renew)) => renew.number,
                _ => 0,
            };
            let kind = wire::session_response::Kind::RenewAck(wire::RenewAck { number });
            Ok(wire::SessionResponse { kind: Some(kind) })
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn fetch_package(
        &self,
        _request: Request<wire::FetchPackageRequest>,
    ) -> Result<Response<Self::FetchPackageStream>, Status> {
        Err(Status::unimplemented("only renewals"))
    }

    async fn fetch_payload(
        &self,
        _request: Request<wire::FetchPayloadRequest>,
    ) -> Result<Response<Self::FetchPayloadStream>, Status> {
        Err(Status::unimplemented("only renewals"))
    }

    async fn store_payload(
        &self,
        _request: Request<Streaming<wire::StorePayloadRequest>>,
    ) -> Result<Response<wire::StorePayloadResponse>, Status> {
        Err(Status::unimplemented("only renewals"))
    }
}

fn times(name: &str, env: &Env, mut one: impl FnMut(usize) -> Result<()>) -> Result<Row> {
    let mut latencies = Vec::with_capacity(TIMES);
    let begun = env.clock.monotonic();
    for number in 0..TIMES {
        let started = env.clock.monotonic();
        one(number)?;
        latencies.push(env.clock.monotonic() - started);
    }
    Ok(Row::rate(name, 1, latencies, env.clock.monotonic() - begun))
}
