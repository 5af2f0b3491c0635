//! `atlasctl doctor`: checks the cluster, one line per check.

mod bundle;
mod upkeep;

use std::collections::BTreeSet;
use std::path::PathBuf;

use atlas_api::types::{ClusterView, Job, Node};
use serde_json::{Value, json};

use crate::answers;
use crate::client::{Client, allowed};
use crate::context::Context;
use crate::display::{ClusterDisplay as _, RivalDisplay as _};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, screen};
use crate::words;

/// Disk syncs above this latency delay every job.
const SYNC_SLOW_MS: f64 = 100.0;
/// Free disk space below this is reported.
const ROOM_LOW: u64 = 2 << 30;
/// Jobs that have waited longer than this are reported.
const WAIT_LONG_S: f64 = 600.0;
/// Maximum number of waiting jobs that are checked.
const JOBS_LOOKED_AT: &str = "1000";

/// Options of `atlasctl doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Also write a tar.gz file for support: findings, members, nodes, agents, figures and jobs, without inputs,
    /// outputs, errors or labels.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
}

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Well,
    Warning,
    /// The caller may not see what the check looks at.
    LeftOut,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Warning => "warn",
            Self::LeftOut => "skip",
        }
    }
}

/// The result of one check.
struct Finding {
    state: State,
    about: &'static str,
    text: String,
}

fn ok(about: &'static str, text: impl Into<String>) -> Finding {
    Finding { state: State::Well, about, text: text.into() }
}

fn warn(about: &'static str, text: impl Into<String>) -> Finding {
    Finding { state: State::Warning, about, text: text.into() }
}

fn left_out(about: &'static str, denied: &Failure) -> Finding {
    Finding { state: State::LeftOut, about, text: format!("not checked: {}", denied.message) }
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let cluster = match client.get_if_allowed(&["api", "cluster"], &[]).await? {
        Ok(cluster) => Ok(answers::read::<ClusterView>(&cluster)?),
        Err(denied) => Err(denied),
    };
    // Without a majority nothing can be confirmed, and what this controller knows is better than nothing.
    let has_majority = cluster.as_ref().map_or(true, ClusterView::has_majority);
    let client = if has_majority { client } else { client.reading_stale(true) };
    let findings = examine(&client, cluster, context.look.now).await?;
    let warnings = findings.iter().filter(|finding| finding.state == State::Warning).count() as u64;
    let line = |finding: &Finding| {
        let word = finding.state.word();
        let room = " ".repeat(4_usize.saturating_sub(word.len()));
        format!("{}{room}  {:<12}  {}\n", screen::state(word), finding.about, finding.text)
    };
    let value = findings
        .iter()
        .map(|finding| json!({"state": finding.state.word(), "about": finding.about, "text": finding.text}));
    let value: Value = value.collect();
    if let Some(path) = &options.bundle {
        bundle::write(context, &client, &value, path).await?;
    }
    let warned = findings.iter().filter(|finding| finding.state == State::Warning);
    let names = warned.map(|finding| format!("warning/{}", finding.about));
    context.show(&Shown { value, names: names.collect(), text: findings.iter().map(line).collect() })?;
    if warnings > 0 {
        context.note(&words::count(warnings, "warning"));
        return Ok(Exit::Short);
    }
    Ok(Exit::Done)
}

/// Makes the checks whose subjects the caller may see. Only if it may see none, it is refused.
async fn examine(client: &Client, cluster: Result<ClusterView, Failure>, now: f64) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let mut denied = None;
    let mut skip = |about, failure: Failure| {
        let finding = left_out(about, &failure);
        denied.get_or_insert(failure);
        finding
    };
    let is_dev = cluster.as_ref().is_ok_and(|cluster| cluster.mode == "dev");
    let cluster = match cluster {
        Ok(cluster) => {
            findings.extend([quorum(&cluster), versions(&cluster)]);
            Some(cluster)
        }
        Err(failure) => {
            findings.push(skip("cluster", failure));
            None
        }
    };
    match allowed(metrics(client).await)? {
        Ok(page) => findings.extend(measured(&page, cluster.as_ref())),
        Err(failure) => findings.push(skip("metrics", failure)),
    }
    if let Some(cluster) = &cluster {
        findings.extend(upkeep::certificates(cluster, now));
        findings.extend((!is_dev).then(|| upkeep::backups(cluster, now)));
    }
    if !is_dev {
        findings.extend(upkeep::identity(client, now).await);
    }
    match client.get_if_allowed(&["api", "nodes"], &[]).await? {
        Ok(nodes) => {
            let nodes = answers::read::<Vec<Node>>(&nodes)?;
            findings.push(workers(&nodes));
            findings.extend(names(&nodes, now));
        }
        Err(failure) => findings.push(skip("workers", failure)),
    }
    let query = [("status", "pending"), ("view", "full"), ("limit", JOBS_LOOKED_AT)];
    match client.get_if_allowed(&["api", "jobs"], &query).await? {
        Ok(waiting) => {
            let waiting: Vec<Job> = answers::read(&waiting)?;
            findings.extend([queue(&waiting, now), doubts(&waiting)]);
        }
        Err(failure) => findings.push(skip("queue", failure)),
    }
    if is_dev {
        findings.push(ok("mode", "development: no authentication, loopback only"));
    }
    match denied {
        Some(failure) if findings.iter().all(|finding| finding.state == State::LeftOut) => Err(failure),
        _ => Ok(findings),
    }
}

fn quorum(cluster: &ClusterView) -> Finding {
    let (voters, here) = (cluster.quorum.voters, cluster.quorum.reachable);
    if !cluster.has_majority() {
        let (_, away) = cluster.voters_by_answer();
        let needed = voters / 2 + 1;
        let text = format!(
            "{here} of {voters} controllers answer, {needed} must: nothing is accepted, and the rest of this is what one of them knows; start {}",
            away.join(" or ")
        );
        return warn("quorum", text);
    }
    let Some(leader) = &cluster.leader else {
        return warn("quorum", format!("no leader; {here} of {voters} controllers are reachable"));
    };
    let applied = cluster.members.iter().filter(|member| member.reachable).filter_map(|member| member.applied);
    let lag = applied.map(|applied| cluster.commit.saturating_sub(applied)).max().unwrap_or(0);
    let text = format!("{here} of {voters} controllers, leader {leader}, apply lag {}", lag);
    let away: Vec<&str> =
        cluster.members.iter().filter(|member| !member.reachable).map(|member| member.name.as_str()).collect();
    if away.is_empty() {
        ok("quorum", text)
    } else {
        warn("quorum", format!("{text}; unreachable: {}", away.join(", ")))
    }
}

fn versions(cluster: &ClusterView) -> Finding {
    let versions: BTreeSet<&str> = cluster.members.iter().filter_map(|member| member.version.as_deref()).collect();
    let ours = env!("CARGO_PKG_VERSION");
    let all = versions.iter().copied().collect::<Vec<_>>().join(", ");
    match versions.len() {
        0 | 1 if cluster.version == ours => ok("versions", format!("{ours} everywhere")),
        0 | 1 => warn("versions", format!("the cluster runs {}, this program is {ours}", cluster.version)),
        _ => warn("versions", format!("controllers differ: {all}; finish the upgrade")),
    }
}

/// The metrics of the answering controller.
async fn metrics(client: &Client) -> Result<String, Failure> {
    let mut page = Vec::new();
    client
        .download(&["metrics"], |piece| {
            page.extend_from_slice(piece);
            Ok(())
        })
        .await?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Checks the disk, the clock and the idempotency keys by the metrics of the answering controller.
fn measured(page: &str, cluster: Option<&ClusterView>) -> Vec<Finding> {
    let gauge = |name: &str| gauge(page, name);
    let members = cluster.into_iter().flat_map(|cluster| &cluster.members);
    let slowest = members.filter_map(|member| member.fsync_p99_ms).max_by(f64::total_cmp);
    let sync = slowest.map(|ms| format!("fsync p99 {}", words::fine_milliseconds(ms)));
    let room = gauge("atlas_disk_free_bytes").map(|bytes| bytes as u64);
    let free = room.map(|bytes| format!("{} free", words::bytes(bytes)));
    let text = [sync, free].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let mut findings = Vec::new();
    findings.push(match (slowest, room) {
        (None, None) => ok("storage", "not measured yet"),
        (_, Some(room)) if room < ROOM_LOW => {
            warn("storage", format!("{text}: jobs are refused when the disk is full"))
        }
        (Some(ms), _) if ms > SYNC_SLOW_MS => warn("storage", format!("{text}: slow disk, which delays every job")),
        _ => ok("storage", text),
    });
    findings.push(match gauge("atlas_clock_doubt_count") {
        Some(count) if count > 0.0 => warn(
            "clocks",
            "the controller's clock jumped or differs from the others; it uses its monotonic clock meanwhile",
        ),
        _ => ok("clocks", "agree"),
    });
    findings.push(match gauge("atlas_request_forgets_total") {
        Some(count) if count > 0.0 => {
            let keys = words::count(count as u64, "idempotency key");
            let raise = "start atlas-controller with a higher --idempotency-keys-max";
            warn("keys", format!("{keys} dropped early: a repeat creates a second job; {raise}"))
        }
        _ => ok("keys", "none was dropped early"),
    });
    if gauge("atlas_history_export_failing_count").is_some_and(|failing| failing > 0.0) {
        let lag = words::count(gauge("atlas_history_export_lag").unwrap_or_default() as u64, "event");
        findings.push(warn(
            "export",
            format!("PostgreSQL does not take the history, {lag} behind; the leader's log says why"),
        ));
    }
    findings
}

/// The value of an instrument without attributes in an OpenMetrics page.
fn gauge(page: &str, name: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.split(' ').next()?.parse().ok())
}

fn workers(nodes: &[Node]) -> Finding {
    let of = |fits: fn(&&Node) -> bool| nodes.iter().filter(fits).map(|node| node.id.as_str()).collect::<Vec<_>>();
    let ready = of(|node| node.health == "ready");
    let down = of(|node| node.health != "ready");
    let closed = of(|node| node.health == "ready" && (node.cordoned || node.draining));
    if ready.is_empty() {
        return warn("workers", "none ready: jobs are waiting");
    }
    let gpus: usize = nodes.iter().map(|node| node.gpus.len()).sum();
    let mut text = format!("{} ready", ready.len());
    if gpus > 0 {
        text += &format!(", {}", words::count(gpus as u64, "GPU"));
    }
    if !closed.is_empty() {
        text += &format!("; not accepting jobs: {}", closed.join(", "));
    }
    if !down.is_empty() {
        return warn("workers", format!("{text}; down: {}", down.join(", ")));
    }
    if closed.len() == ready.len() { warn("workers", text) } else { ok("workers", text) }
}

/// Workers that ask for the name of another one.
fn names(nodes: &[Node], now: f64) -> Option<Finding> {
    let wanted =
        nodes.iter().filter_map(|node| Some((node, node.rival.as_ref().filter(|rival| rival.is_recent(now))?)));
    let told = wanted.map(|(node, rival)| {
        format!("two workers want the name {}: {} has it, {} is refused", node.id, rival.holder, rival.address)
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty())
        .then(|| warn("names", format!("{}; start one of them as atlas-worker with another --node", told.join("; "))))
}

fn queue(waiting: &[Job], now: f64) -> Finding {
    let never: Vec<&Job> = waiting.iter().filter(|job| job.reason == "unsatisfiable").collect();
    if let Some(job) = never.first() {
        let count = words::count(never.len() as u64, "job");
        return warn("queue", format!("{count} that no node can run: atlasctl job explain {}", job.id));
    }
    let asked = |job: &&Job| !["in_doubt", "delayed", "backoff", "parked", "approval"].contains(&job.reason.as_str());
    let Some(oldest) = waiting.iter().filter(asked).min_by(|a, b| a.created_at.total_cmp(&b.created_at)) else {
        return ok("queue", format!("{} waiting", waiting.len()));
    };
    let age = now - oldest.created_at;
    let text = format!("{} waiting, the oldest for {}: {}", waiting.len(), words::age(age), oldest.reason);
    if age > WAIT_LONG_S {
        return warn("queue", format!("{text}; atlasctl job explain {}", oldest.id));
    }
    ok("queue", text)
}

fn doubts(waiting: &[Job]) -> Finding {
    let doubts: Vec<&Job> = waiting.iter().filter(|job| job.reason == "in_doubt").collect();
    match doubts.first() {
        None => ok("doubts", "no jobs in doubt"),
        Some(job) => {
            let count = words::count(doubts.len() as u64, "job");
            warn("doubts", format!("{count} in doubt: atlasctl job resolve {} …", job.id))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn told(finding: &Finding) -> String {
        format!("{} {}", finding.state.word(), finding.text)
    }

    #[test]
    fn controllers_that_are_away_are_named() {
        let member =
            |name: &str, here: bool| json!({"name": name, "reachable": here, "applied": 40, "version": "0.1.0"});
        let mut cluster = json!({"leader": "c1", "commit": 42, "version": "0.1.0", "quorum": {"voters": 3, "reachable": 3},
            "members": [member("c1", true), member("c2", true), member("c3", true)]});
        let read = |cluster: &Value| answers::read::<ClusterView>(cluster).expect("readable");
        assert_eq!(told(&quorum(&read(&cluster))), "ok 3 of 3 controllers, leader c1, apply lag 2");
        cluster["members"][1] = member("c2", false);
        cluster["quorum"]["reachable"] = json!(2);
        assert_eq!(told(&quorum(&read(&cluster))), "warn 2 of 3 controllers, leader c1, apply lag 2; unreachable: c2");
        let lost = json!({"quorum": {"voters": 3, "reachable": 1}, "members": [member("c1", true), member("c2", false), member("c3", false)]});
        let text = "warn 1 of 3 controllers answer, 2 must: nothing is accepted, and the rest of this is what one of them knows; start c2 or c3";
        assert_eq!(told(&quorum(&read(&lost))), text);
        cluster["leader"] = Value::Null;
        assert_eq!(quorum(&read(&cluster)).state, State::Warning);
        cluster["members"][0]["version"] = json!("0.2.0");
        assert_eq!(versions(&read(&cluster)).state, State::Warning);
    }

    #[test]
    fn what_waits_for_ever_is_told() {
        let job = |reason: &str, created_at: f64| Job {
            id: "job-1".to_owned(),
            reason: reason.to_owned(),
            created_at,
            ..Job::default()
        };
        assert_eq!(told(&queue(&[], 0.0)), "ok 0 waiting");
        assert_eq!(told(&queue(&[job("queued", 90.0)], 100.0)), "ok 1 waiting, the oldest for 10 s: queued");
        assert_eq!(queue(&[job("no_room", 0.0)], 1000.0).state, State::Warning);
        assert_eq!(queue(&[job("unsatisfiable", 99.0)], 100.0).state, State::Warning);
        assert_eq!(doubts(&[job("queued", 0.0)]).state, State::Well);
        assert_eq!(doubts(&[job("in_doubt", 0.0)]).state, State::Warning);
    }

    #[test]
    fn workers_and_gauges() {
        let node = |id: &str, health: &str, cordoned| Node {
            id: id.to_owned(),
            health: health.to_owned(),
            cordoned,
            ..Node::default()
        };
        assert_eq!(told(&workers(&[])), "warn none ready: jobs are waiting");
        assert_eq!(
            told(&workers(&[node("a", "ready", false), node("b", "ready", true)])),
            "ok 2 ready; not accepting jobs: b"
        );
        assert_eq!(told(&workers(&[node("a", "ready", false), node("b", "down", false)])), "warn 1 ready; down: b");
        let rival = atlas_api::types::Rival { address: "b:1".to_owned(), holder: "a:1".to_owned(), at: 900.0 };
        let wanted = [Node { rival: Some(rival), ..node("a", "ready", false) }, node("b", "ready", false)];
        let told_at = |now| names(&wanted, now).map(|finding| told(&finding)).unwrap_or_default();
        assert_eq!(
            told_at(1_000.0),
            "warn two workers want the name a: a:1 has it, b:1 is refused; start one of them as atlas-worker with another --node"
        );
        assert_eq!(told_at(1_100.0), "", "it does not ask any more");
        let page = "# TYPE x gauge\natlas_disk_free_bytes_total 7\natlas_disk_free_bytes 12 1.0\n";
        assert_eq!(gauge(page, "atlas_disk_free_bytes"), Some(12.0));
        assert_eq!(gauge(page, "atlas_missing"), None);
    }
}
