//! Measures what options cost: tokens, encryption, telemetry and the export to PostgreSQL, each as a controller and a worker beside two without
//! them.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use atlas_package::{PackFile, pack_files};
use atlas_postgres::Postgres;
use futures::future::try_join_all;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use crate::figures::Row;
use crate::http::{Connection, request_with};
use crate::process::{Running, free_address, program};

/// Jobs in flight.
const CONCURRENCY: usize = 64;
/// Each pair takes turns, so that other load on the machine affects both alike; the first round is not counted.
const ROUNDS: usize = 6;
const ROUND: Duration = Duration::from_secs(2);
/// What the cluster with tokens knows.
const TOKENS: usize = 10_000;
const BINDINGS: usize = 1_000;
/// Agents with a job each, for the size of the metrics. With the one that all jobs have, as many as a cluster may have.
const AGENTS: usize = 9_999;
/// Requests without and with a token, one after the other, and the limit for the difference of their medians.
const REQUESTS: usize = 4_000;
const TOKEN_MAX_US: f64 = 50.0;
const SCRAPES: usize = 20;
const SCRAPE_MAX_US: f64 = 50_000.0;
const SCRAPE_BYTES_MAX: f64 = (2 << 20) as f64;
/// The node of a cluster with certificates.
const NODE: &str = "bench";
/// The root token of the cluster with tokens.
const ROOT: &str = "atl_root_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let plain = Site::start(env, &[], &[], None, None).await?;
        let mut rows = Vec::new();

        let (_folder, file) = root_token()?;
        let keys = Keys::make()?;
        let tokens = ["--auth", "tokens", "--root-token-file", &file];
        let unaudited = [&tokens[..], &["--audit-max", "0"]].concat();
        let sites: [(&str, &[&str], Option<&Keys>); 4] = [
            ("jobs_with_tokens", &tokens, None),
            ("jobs_with_tokens_unaudited", &unaudited, None),
            ("jobs_with_tls", &[], Some(&keys)),
            ("jobs_with_tokens_and_tls", &tokens, Some(&keys)),
        ];
        for (name, options, keys) in sites {
            let token = (!options.is_empty()).then_some(ROOT);
            let mut site = Site::start(env, options, &[], token, keys).await?;
            if token.is_some() {
                site = site.with_tokens().await?;
            }
            rows.push(beside(env, name, &plain, &site).await?);
            if name == "jobs_with_tokens" {
                rows.push(one_by_one(env, &plain, &site).await?);
            }
        }

        let receiver = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", receiver.local_addr()?);
        drop(env.spawn("receive telemetry", receive(env.clone(), receiver)));
        let variables = [("ATLAS_OTLP", address.as_str()), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")];
        let traced = Site::start(env, &[], &variables, None, None).await?;
        rows.push(beside(env, "jobs_with_otlp", &plain, &traced).await?);
        drop(traced);

        if let Some(postgres) = Postgres::start() {
            let exports = Site::start(env, &["--history", &postgres.url()], &[], None, None).await?;
            rows.push(beside(env, "jobs_with_postgresql", &plain, &exports).await?);
        }
        rows.extend(metrics(env, &plain).await?);
        Ok(rows)
    })
}

/// A controller and a worker as processes, and the request for a job.
struct Site {
    http: SocketAddr,
    token: Option<String>,
    encrypt: Option<TlsConnector>,
    _processes: [Running; 2],
    _folder: TempDir,
}

impl Site {
    async fn start(
        env: &Env,
        options: &[&str],
        variables: &[(&str, &str)],
        token: Option<&str>,
        keys: Option<&Keys>,
    ) -> Result<Self> {
        let folder = tempfile::tempdir_in(".")?;
        let (http, workers) = (free_address()?, free_address()?);
        let mut controller = Command::new(program("atlas-controller")?);
        controller.arg("--data-dir").arg(folder.path().join("controller")).args(["--http-listen", &http]);
        controller.args(["--worker-listen", &workers, "--peer-listen", "127.0.0.1:0"]).args(options);
        controller.envs(variables.iter().copied());
        let mut worker = Command::new(program("atlas-worker")?);
        worker.arg("--data-dir").arg(folder.path().join("worker")).args(["--controller", &workers]);
        worker.args(["--noop", "true", "--places", &(2 * CONCURRENCY).to_string()]).envs(variables.iter().copied());
        if let Some(keys) = keys {
            controller.arg("--tls-dir").arg(&keys.dir);
        }
        let mut controller = Running::start(&mut controller, |line| line.contains("controller started"))?;
        if let Some(keys) = keys {
            let file = folder.path().join("node.token");
            keys.node_token(&http, token, &file)?;
            worker.args(["--node", NODE, "--token-file"]).arg(file);
        }
        let mut worker = Running::start(&mut worker, |line| line.contains("session open"))?;
        controller.drain(env);
        worker.drain(env);
        let (token, encrypt) = (token.map(str::to_owned), keys.map(|keys| keys.trust.clone()));
        let site = Self { http: http.parse()?, token, encrypt, _processes: [controller, worker], _folder: folder };
        site.register(&mut site.open().await?, "noop").await?;
        Ok(site)
    }

    async fn open(&self) -> Result<Connection> {
        Connection::open_with(self.http, self.encrypt.as_ref()).await
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        request_with(method, path, &headers, body)
    }

    async fn ask(&self, connection: &mut Connection, method: &str, path: &str, body: &Value) -> Result<Value> {
        let request = self.request(method, path, body.to_string().as_bytes());
        serde_json::from_slice(connection.send(&request).await?).context("the answer is not JSON")
    }

    async fn register(&self, connection: &mut Connection, agent: &str) -> Result<()> {
        let contract =
            format!("agent:\n  name: {agent}\n  version: 1.0.0\n  provider: {{ type: exec, command: [\"@noop\"] }}\n");
        let contract = PackFile { path: "agent.yaml".to_owned(), bytes: contract.into_bytes(), executable: false };
        let package = pack_files(vec![contract]).context("could not pack an agent")?;
        connection.send(&self.request("POST", "/api/agents", &package.bytes)).await?;
        Ok(())
    }

    fn job(&self, agent: &str) -> Vec<u8> {
        self.request("POST", "/api/jobs?wait=30", json!({"agent": agent, "input": {}}).to_string().as_bytes())
    }

    /// The same cluster with many tokens and bindings, as one who may submit jobs.
    async fn with_tokens(self) -> Result<Self> {
        let many = try_join_all((0..CONCURRENCY).map(|client| self.make_tokens(client))).await?;
        let token = many.into_iter().flatten().next().context("a token")?;
        Ok(Self { token: Some(token), ..self })
    }

    /// Makes every so-manieth token, and its binding. Returns the last one with a binding.
    async fn make_tokens(&self, client: usize) -> Result<Option<String>> {
        let mut connection = self.open().await?;
        let mut last = None;
        for number in (client..TOKENS).step_by(CONCURRENCY) {
            let name = format!("user-{number}");
            let made = self.ask(&mut connection, "POST", "/api/auth/tokens", &json!({ "name": name })).await?;
            if number < BINDINGS {
                let binding = json!({"spec": {"grants": [{"role": "submitter"}]}});
                self.ask(&mut connection, "PUT", &format!("/api/objects/binding/{name}"), &binding).await?;
                last = made["token"].as_str().map(str::to_owned);
            }
        }
        Ok(last)
    }
}

/// The certificate of a cluster, and who trusts it.
struct Keys {
    dir: PathBuf,
    trust: TlsConnector,
    _folder: TempDir,
}

impl Keys {
    fn make() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let dir = folder.path().join("keys");
        succeed(Command::new(program("atlasctl")?).args(["operator", "init"]).arg(&dir))?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(dir.join("ca.pem"))?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { dir, trust: TlsConnector::from(Arc::new(config)), _folder: folder })
    }

    /// Writes a token with which the node joins.
    fn node_token(&self, http: &str, token: Option<&str>, to: &Path) -> Result<()> {
        let mut command = Command::new(program("atlasctl")?);
        command.args(["node", "token", NODE, "--to"]).arg(to).env("ATLAS_SERVER", format!("https://{http}"));
        command.env("ATLAS_CA_FILE", self.dir.join("ca.pem")).envs(token.map(|token| ("ATLAS_TOKEN", token)));
        succeed(&mut command)
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A file with the root token, which only its owner reads.
fn root_token() -> Result<(TempDir, String)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("root.token");
    fs::write(&file, ROOT)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    let file = file.to_str().context("a path that is text")?.to_owned();
    Ok((folder, file))
}

/// The rate of jobs of a cluster against that of a plain one.
async fn beside(env: &Env, name: &str, plain: &Site, other: &Site) -> Result<Row> {
    let (mut rates, mut latencies) = ([0.0; 2], Vec::new());
    for round in 0..ROUNDS {
        for (site, rate) in [plain, other].into_iter().zip(&mut rates) {
            let found = load(env, site).await?;
            if round > 0 {
                *rate += found.len() as f64 / ROUND.as_secs_f64() / (ROUNDS - 1) as f64;
            }
            latencies = found;
        }
    }
    let row = Row::rate(name, CONCURRENCY, latencies, ROUND);
    Ok(Row { value: rates[1], ..row }.value_against("without", rates[0]))
}

/// How long each job took that ended in a round.
async fn load(env: &Env, site: &Site) -> Result<Vec<Duration>> {
    let job = site.job("noop");
    let until = env.clock.monotonic() + ROUND;
    let one = || async {
        let mut connection = site.open().await?;
        let mut latencies = Vec::new();
        loop {
            let begun = env.clock.monotonic();
            if begun > until {
                return anyhow::Ok(latencies);
            }
            let answer: Value = serde_json::from_slice(connection.send(&job).await?)?;
            ensure!(answer["status"] == "completed", "a job did not complete: {answer}");
            latencies.push(env.clock.monotonic() - begun);
        }
    };
    Ok(try_join_all((0..CONCURRENCY).map(|_| one())).await?.concat())
}

/// What a token adds to the latency of a request that only reads.
async fn one_by_one(env: &Env, plain: &Site, tokens: &Site) -> Result<Row> {
    let mut connections = [plain.open().await?, tokens.open().await?];
    let requests = [plain, tokens].map(|site| site.request("GET", "/api/agents/noop", b""));
    let mut latencies = [Vec::new(), Vec::new()];
    for _ in 0..REQUESTS {
        for ((connection, request), latencies) in connections.iter_mut().zip(&requests).zip(&mut latencies) {
            let begun = env.clock.monotonic();
            connection.send(request).await?;
            latencies.push(env.clock.monotonic() - begun);
        }
    }
    let [without, with] = latencies.map(|mut latencies| {
        latencies.sort_unstable();
        latencies[REQUESTS / 2].as_secs_f64() * 1e6
    });
    Ok(Row::amount("token_of_a_request", with - without, "µs").value_against("50 µs", TOKEN_MAX_US))
}

/// The time and the size of the metrics after a job of each of many agents.
async fn metrics(env: &Env, site: &Site) -> Result<Vec<Row>> {
    let one = |client: usize| async move {
        let mut connection = site.open().await?;
        for number in (client..AGENTS).step_by(CONCURRENCY) {
            let name = format!("agent-{number}");
            site.register(&mut connection, &name).await?;
            connection.send(&site.job(&name)).await?;
        }
        anyhow::Ok(())
    };
    try_join_all((0..CONCURRENCY).map(one)).await?;
    let mut connection = site.open().await?;
    let scrape = site.request("GET", "/metrics", b"");
    let (mut latencies, mut bytes) = (Vec::new(), 0);
    for _ in 0..SCRAPES {
        let begun = env.clock.monotonic();
        bytes = connection.send(&scrape).await?.len();
        latencies.push(env.clock.monotonic() - begun);
    }
    let took = latencies.iter().sum();
    let time = Row::rate("metrics_of_10k_agents", 1, latencies, took).median_against("50 ms", Some(SCRAPE_MAX_US));
    let size = Row::amount("metrics_of_10k_agents_size", bytes as f64 / f64::from(1 << 20), "MiB");
    Ok(vec![time, size.value_against("2 MiB", SCRAPE_BYTES_MAX / f64::from(1 << 20))])
}

/// A receiver of OTLP over HTTP that takes everything and keeps nothing.
async fn receive(env: Env, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        drop(env.spawn("take telemetry", async move {
            // It fails when the sender has ended.
            let _ = take_all(stream).await;
        }));
    }
}

async fn take_all(mut stream: TcpStream) -> Result<()> {
    let mut buffer = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            ensure!(stream.read_buf(&mut buffer).await? > 0, "the sender has ended");
        };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let end = head + length.unwrap_or(0);
        while buffer.len() < end {
            ensure!(stream.read_buf(&mut buffer).await? > 0, "the sender has ended");
        }
        buffer.drain(..end);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
    }
}
