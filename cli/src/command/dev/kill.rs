//! `atlasctl dev kill`: kills one process of a development cluster, and measures the consequences.

use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_api::types::{ClusterView, Job};
use atlas_dev::{Process, addresses};
use atlas_env::Env;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::answers;
use crate::client::Client;
use crate::command::dev::local;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Longest wait for another leader.
const LEADER_WITHIN: Duration = Duration::from_secs(30);
/// Interval between two questions for the leader.
const ASK_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum number of compared jobs.
const JOBS_MAX: &str = "1000";

/// The voters, and which of them are down.
pub(super) struct Quorum {
    pub(super) voters: usize,
    pub(super) down: Vec<String>,
}

impl Quorum {
    /// Computes the quorum from the cluster's voters and the running processes.
    pub(super) fn of(cluster: &ClusterView, processes: &[Process]) -> Self {
        let votes = |member: &&atlas_api::types::Member| member.role != "learner";
        let voters: Vec<&str> = cluster.members.iter().filter(votes).map(|member| member.name.as_str()).collect();
        let runs = |name: &&str| processes.iter().any(|process| process.name == *name);
        let mut down: Vec<String> = voters.iter().filter(|name| !runs(name)).map(|name| (*name).to_owned()).collect();
        down.sort();
        Self { voters: voters.len(), down }
    }

    pub(super) fn holds(&self) -> bool {
        (self.voters - self.down.len()) * 2 > self.voters
    }

    /// The message and the JSON result for a lost quorum.
    fn lost(&self, killed: &str) -> (String, Value) {
        let (down, first) = (self.down.len(), self.down.first().map_or(killed, String::as_str));
        let text = format!(
            "{killed} stopped · {down} of {} controllers are down: no quorum; requests are refused until one is restarted: atlasctl dev start {first}\n",
            self.voters
        );
        (text, json!({"stopped": killed, "leader": null, "quorum": false, "voters": self.voters, "down": self.down}))
    }
}

/// Options of `atlasctl dev kill`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A controller or a worker: c1, w2, … or controller/c1, worker/w2, node/w2 as -o name prints them.
    #[arg(value_name = "NAME", value_parser = names::process)]
    name: String,
    #[command(flatten)]
    folder: local::Folder,
}

/// The cluster and its jobs before the kill.
struct Before {
    cluster: ClusterView,
    jobs: Vec<Job>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (env, client) = (Env::system(), local::client(context, &options.folder).await?);
    let (root, mut processes) = running(&client).await?;
    let process = find(&root, &processes, &options.name)?;
    processes.retain(|other| *other != process);
    let cluster: ClusterView = answers::read(&client.get(&["api", "cluster"], &[]).await?)?;
    let quorum = Quorum::of(&cluster, &processes);
    let ends = process.controller && !quorum.holds();
    let jobs = match ends {
        // Without a quorum the cluster may not answer.
        true => Vec::new(),
        false => answers::read(&client.get(&["api", "jobs"], &[("limit", JOBS_MAX), ("view", "full")]).await?)?,
    };
    let before = Before { cluster, jobs };
    let from = env.clock.monotonic();
    let pid = i32::try_from(process.pid).unwrap_or(i32::MAX);
    kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(|error| not_killed(&format!("{}: {error}", process.name)))?;
    if ends {
        let (text, value) = quorum.lost(&process.name);
        context.show(&Shown { value, text, names: Vec::new() })?;
        return Ok(Exit::Short);
    }
    if process.controller {
        controller(context, &env, &process.name, &before, from).await
    } else {
        worker(context, &process.name, &before)
    }
}

/// The folder and the processes of a development cluster of several processes.
pub(super) async fn running(client: &Client) -> Result<(PathBuf, Vec<Process>), Failure> {
    let version = client.get(&["api", "version"], &[]).await?;
    let root = version["data_dir"].as_str().filter(|_| version["mode"] == "dev");
    let root = root.and_then(|path| addresses::root_of(Path::new(path)).map(Path::to_owned));
    let root = root.ok_or_else(|| not_killed("this is not a development cluster"))?;
    let processes = atlas_dev::processes(&root).map_err(|error| not_killed(&error.to_string()))?;
    if processes.is_empty() {
        return Err(not_killed("this development cluster is a single process, which cannot be killed"));
    }
    Ok((root, processes))
}

/// The process with this name.
fn find(root: &Path, processes: &[Process], name: &str) -> Result<Process, Failure> {
    let known: Vec<String> = processes.iter().map(|process| process.name.clone()).collect();
    processes.iter().find(|process| process.name == name).cloned().ok_or_else(|| {
        if had(root, name) {
            return Failure::new("E0114", Exit::Conflict, format!("{name} is not running"))
                .with_next(format!("start it again: atlasctl dev start {name}"));
        }
        let failure = Failure::new("E0114", Exit::NotFound, format!("this cluster has no process \"{name}\""));
        failure.with_next(format!("one of: {}", known.join(" ")))
    })
}

/// Whether the cluster has a process of this name, running or not.
pub(super) fn had(root: &Path, name: &str) -> bool {
    let is_worker = || {
        name.strip_prefix('w').is_some_and(|number| number.parse::<u16>().is_ok())
            && root.join("workers").join(name).is_dir()
    };
    let controllers = addresses::load(root).unwrap_or_default();
    controllers.iter().any(|controller| controller.name == name) || is_worker()
}

fn not_killed(why: &str) -> Failure {
    Failure::new("E0114", Exit::Usage, why.to_owned())
        .with_next("start a cluster of several processes: atlasctl dev --controllers 3 --workers 2")
}

/// Measures the effects of a killed controller: the time without a leader, lost jobs, renewed leases.
async fn controller(
    context: &Context,
    env: &Env,
    name: &str,
    before: &Before,
    from: Duration,
) -> Result<Exit, Failure> {
    let led = before.cluster.leader.as_deref() == Some(name);
    let others: Vec<&str> =
        before.cluster.members.iter().filter(|member| member.name != name).map(|member| member.http.as_str()).collect();
    let Some((leader, client)) = leader(env, &others, name).await? else {
        let left = before.cluster.members.iter().filter(|member| member.name != name && member.reachable).count();
        let text = format!("{name} stopped · no leader: {left} of {} controllers remain", before.cluster.quorum.voters);
        context.show(&Shown {
            value: json!({"stopped": name, "leader": null}),
            text: text + "\n",
            names: Vec::new(),
        })?;
        return Ok(Exit::Short);
    };
    let took = env.clock.monotonic().saturating_sub(from);
    let took_ms = took.as_secs_f64() * 1e3;
    let (mut lost, mut renewed) = (0, 0);
    for job in &before.jobs {
        match client.get(&["api", "jobs", &job.id], &[("view", "full")]).await {
            Ok(now) => {
                let now: Job = answers::read(&now)?;
                // The same attempt continues: the new leader has restarted the full term of its lease.
                renewed += u64::from(job.status == "running" && now.attempt == job.attempt && now.node == job.node);
            }
            Err(failure) if failure.exit == Exit::NotFound => lost += 1,
            Err(failure) => return Err(failure),
        }
    }
    let who = match led {
        true => format!("new leader {leader} in {}", words::milliseconds(took_ms)),
        false => format!("leader {leader} unchanged"),
    };
    let leases = words::count(renewed, "lease");
    let text = format!("{name} stopped · {who} · {} lost, {leases} renewed\n", words::count(lost, "job"));
    let value = json!({
        "stopped": name, "leader": leader, "leader_changed": led, "took_ms": took_ms, "jobs": before.jobs.len(),
        "jobs_lost": lost, "leases_renewed": renewed,
    });
    context.show(&Shown { value, text, names: vec![format!("controller/{leader}")] })?;
    Ok(if lost == 0 { Exit::Done } else { Exit::Short })
}

/// Waits for a leader other than `without`; returns its name and a client of a controller that serves consistent reads.
pub(super) async fn leader(env: &Env, others: &[&str], without: &str) -> Result<Option<(String, Client)>, Failure> {
    let deadline = env.clock.monotonic() + LEADER_WITHIN;
    while env.clock.monotonic() < deadline {
        for address in others {
            let client = Client::new(address)?;
            let asked = tokio::time::timeout(Duration::from_secs(2), client.get(&["api", "cluster"], &[])).await;
            let Ok(Ok(answer)) = asked else { continue };
            let cluster: ClusterView = answers::read(&answer)?;
            let Some(leader) = cluster.leader.filter(|leader| leader != without) else { continue };
            // A leader counts once it answers a read, which a majority must confirm.
            let read = client.get(&["api", "jobs"], &[("limit", "1")]);
            if let Ok(Ok(Value::Array(_))) = tokio::time::timeout(Duration::from_secs(5), read).await {
                return Ok(Some((leader, client)));
            }
        }
        env.clock.sleep(ASK_INTERVAL).await;
    }
    Ok(None)
}

/// Reports a killed worker; its jobs continue on other nodes after its session ends.
fn worker(context: &Context, name: &str, before: &Before) -> Result<Exit, Failure> {
    let held = before.jobs.iter().filter(|job| job.status == "running" && job.node == name).count() as u64;
    let end = if held == 1 { "ends" } else { "end" };
    let text = format!("{name} stopped · {} {end} with its session, within 10 s\n", words::count(held, "lease"));
    context.show(&Shown {
        value: json!({"stopped": name, "leases": held}),
        text,
        names: vec![format!("node/{name}")],
    })?;
    Ok(Exit::Done)
}
