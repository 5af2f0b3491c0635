//! `atlasctl top`: queue and nodes, refreshed on a terminal.

use std::convert::Infallible;
use std::future::pending;
use std::io::IsTerminal;
use std::time::Duration;

use atlas_api::types::{Job, Node};
use atlas_env::Env;
use serde_json::{Value, json};

use crate::answers;
use crate::client::Client;
use crate::command::node::state;
use crate::context::Context;
use crate::display::NodeDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::keys::Keys;
use crate::output::{Look, Shown, Table};
use crate::words;

/// Options of `atlasctl top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Print once and exit; the default without a terminal.
    #[arg(long)]
    once: bool,
    /// Show only the queue.
    #[arg(long, conflicts_with = "nodes")]
    queues: bool,
    /// Show only the nodes.
    #[arg(long)]
    nodes: bool,
    /// Also show the figures of each agent.
    #[arg(long)]
    agents: bool,
}

/// Refresh interval.
const EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let live = !options.once && context.form.is_text() && std::io::stdout().is_terminal();
    if !live {
        let seen = see(&client).await?;
        let (text, names) = (text(&seen, options, &context.look)?, names(&seen, options));
        context.show(&Shown { value: seen, text, names })?;
        return Ok(Exit::Done);
    }
    // Keys are read only from a terminal; piped input is left alone.
    let keys = Keys::of(std::io::stdin());
    tokio::select! {
        ended = show_again(context, options, &client) => ended.map(|never| match never {}),
        _ = tokio::signal::ctrl_c() => Ok(Exit::Done),
        () = async { match &keys { Some(keys) => keys.quit().await, None => pending().await } } => Ok(Exit::Done),
    }
}

async fn show_again(context: &Context, options: &Options, client: &Client) -> Result<Infallible, Failure> {
    let env = Env::system();
    loop {
        let seen = see(client).await?;
        let look = Look { now: env.clock.wall().0 as f64 / 1e6, ..context.look };
        // Move the cursor to the top, overwrite the page, then clear the rest: clearing first would flicker.
        clear(&text(&seen, options, &look)?);
        env.clock.sleep(EVERY).await;
    }
}

#[expect(clippy::print_stdout, reason = "a page on a terminal, written over the one before")]
fn clear(text: &str) {
    let lines = crate::output::visible(text).replace('\n', "\u{1b}[K\n");
    print!("\u{1b}[H{lines}\u{1b}[J");
}

/// Fetches everything that is shown. What the caller may not see is left out and named; only if nothing is left, it is refused.
async fn see(client: &Client) -> Result<Value, Failure> {
    let mut left_out = LeftOut::default();
    let figures = left_out.part("figures", client.get_if_allowed(&["api", "metrics"], &[]).await?);
    let nodes = left_out.part("nodes", client.get_if_allowed(&["api", "nodes"], &[]).await?);
    let queue = match (client.namespace(), &figures) {
        (None, Some(_)) => whole(client, &mut left_out).await?,
        // The counts of the cluster say nothing about one namespace.
        (namespace, _) => one(client, namespace.unwrap_or("default"), &mut left_out).await?,
    };
    if let (None, None, None, Some(denied)) = (&queue, &figures, &nodes, left_out.denied) {
        return Err(denied);
    }
    let agents = figures.as_ref().map(|figures| figures["agents"].clone());
    let mut seen = json!({"queues": queue.iter().collect::<Vec<_>>(), "nodes": nodes, "agents": agents});
    if let (Some(figures), None) = (figures, client.namespace())
        && let Some(queue) = seen["queues"].get_mut(0)
    {
        queue["figures"] = figures["global"].clone();
    }
    if !left_out.parts.is_empty() {
        seen["left_out"] = json!(left_out.parts);
    }
    Ok(seen)
}

/// The parts that a caller may not see, each with the reason.
#[derive(Default)]
struct LeftOut {
    parts: Vec<Value>,
    denied: Option<Failure>,
}

impl LeftOut {
    fn part(&mut self, what: &str, answer: Result<Value, Failure>) -> Option<Value> {
        answer
            .map_err(|denied| {
                self.parts.push(json!({"what": what, "why": denied.message}));
                self.denied.get_or_insert(denied);
            })
            .ok()
    }
}

/// The most jobs that are counted one by one.
const COUNTED_MAX: usize = 1_000;

/// The queue of the whole cluster.
async fn whole(client: &Client, left_out: &mut LeftOut) -> Result<Option<Value>, Failure> {
    let health = client.get(&["api", "health"], &[]).await?;
    let pending = health["pending"].as_u64().unwrap_or(0);
    let mut oldest = Value::Null;
    if pending > 0 {
        // Jobs are listed newest first, so the oldest job is the last one.
        let last = (pending - 1).to_string();
        let query = [("status", "pending"), ("view", "full"), ("limit", "1"), ("offset", last.as_str())];
        let jobs = left_out.part("jobs", client.get_if_allowed(&["api", "jobs"], &query).await?);
        oldest = jobs.and_then(|mut jobs| jobs.get_mut(0).map(Value::take)).unwrap_or_default();
    }
    Ok(Some(json!({"name": "default", "pending": pending, "running": health["running"], "oldest": oldest})))
}

/// The waiting and running jobs of one namespace.
async fn one(client: &Client, namespace: &str, left_out: &mut LeftOut) -> Result<Option<Value>, Failure> {
    let limit = COUNTED_MAX.to_string();
    let mut lists = Vec::new();
    for status in ["pending", "running"] {
        let query = [("status", status), ("view", "full"), ("limit", limit.as_str())];
        match left_out.part("jobs", client.get_if_allowed(&["api", "jobs"], &query).await?) {
            Some(Value::Array(jobs)) => lists.push(jobs),
            _ => return Ok(None),
        }
    }
    let [pending, running] = &lists[..] else { return Ok(None) };
    let oldest = pending.last().filter(|_| pending.len() < COUNTED_MAX);
    Ok(Some(json!({
        "name": namespace, "pending": pending.len(), "running": running.len(), "oldest": oldest,
        "more": lists.iter().any(|jobs| jobs.len() >= COUNTED_MAX),
    })))
}

/// The names of the shown objects; a queue has no name that other verbs take.
fn names(seen: &Value, options: &Options) -> Vec<String> {
    let nodes = seen["nodes"].as_array().filter(|_| !options.queues).into_iter().flatten();
    let nodes = nodes.filter_map(|node| node["id"].as_str()).map(|name| format!("node/{name}"));
    let agents = seen["agents"].as_object().filter(|_| options.agents).into_iter().flatten();
    nodes.chain(agents.map(|(name, _)| format!("agent/{name}"))).collect()
}

fn text(seen: &Value, options: &Options, look: &Look) -> Result<String, Failure> {
    let ms = |value: &Value| value.as_f64().filter(|ms| *ms > 0.0).map(words::milliseconds).unwrap_or_default();
    let number = |value: &Value| value.as_u64().map(|number| number.to_string()).unwrap_or_default();
    let mut parts = Vec::new();
    if !options.nodes {
        let mut table = Table::new(&["QUEUE", "WAITING", "RUNNING", "OLDEST", "RATE/MIN", "P50", "P99"]);
        for queue in seen["queues"].as_array().into_iter().flatten() {
            let figures = &queue["figures"];
            let oldest = match &queue["oldest"] {
                Value::Null => String::new(),
                job => words::age(look.now - answers::read::<Job>(job)?.created_at),
            };
            table.row([
                queue["name"].as_str().unwrap_or_default().to_owned(),
                counted(queue, "pending"),
                counted(queue, "running"),
                oldest,
                number(&figures["throughput_per_min"]),
                ms(&figures["latency_p50_ms"]),
                ms(&figures["latency_p99_ms"]),
            ]);
        }
        parts.push(table.text());
    }
    if !options.queues && !seen["nodes"].is_null() {
        let nodes: Vec<Node> = answers::read(&seen["nodes"])?;
        let mut table = Table::new(&["NODE", "STATE", "CORES", "MEM", "GPU", "PLACES (busy/warm/max)", "LLM"]);
        for node in &nodes {
            let gpus = node.gpus.iter().filter(|gpu| gpu.free_bytes < gpu.memory_bytes);
            let gpu =
                if node.gpus.is_empty() { String::new() } else { format!("{}/{}", gpus.count(), node.gpus.len()) };
            let memory = node.memory_bytes.saturating_sub(node.memory_bytes_free) as f64 / (1_u64 << 30) as f64;
            table.row([
                node.id.clone(),
                state(node),
                format!("{}/{}", node.cores.saturating_sub(node.cores_free), node.cores),
                format!("{memory:.1}/{}", words::bytes(node.memory_bytes)),
                gpu,
                node.slots(),
                node.llm(),
            ]);
        }
        parts.push(if nodes.is_empty() { "no nodes\n".to_owned() } else { table.text() });
    }
    if options.agents && !seen["agents"].is_null() {
        let mut table = Table::new(&["AGENT", "WAITING", "RUNNING", "RATE/MIN", "P50", "P99", "ERRORS", "WARM"]);
        let percent = |value: &Value| format!("{:.0} %", value.as_f64().unwrap_or(0.0) * 100.0);
        for (name, figures) in seen["agents"].as_object().into_iter().flatten() {
            table.row([
                name.clone(),
                number(&figures["jobs_by_status"]["pending"]),
                number(&figures["jobs_by_status"]["running"]),
                number(&figures["throughput_per_min"]),
                ms(&figures["latency_p50_ms"]),
                ms(&figures["latency_p99_ms"]),
                percent(&figures["error_rate"]),
                percent(&figures["warm_hit_rate"]),
            ]);
        }
        parts.push(table.text());
    }
    let text = |part: &Value, member: &str| part[member].as_str().unwrap_or_default().to_owned();
    let left_out = seen["left_out"].as_array().into_iter().flatten();
    let left_out: String =
        left_out.map(|part| format!("left out: {}: {}\n", text(part, "what"), text(part, "why"))).collect();
    parts.extend(Some(left_out).filter(|left_out| !left_out.is_empty()));
    Ok(parts.join("\n"))
}

/// A count of jobs, which may be more than were counted.
fn counted(queue: &Value, member: &str) -> String {
    let count = queue[member].as_u64().unwrap_or(0);
    let more = queue["more"] == true && count >= COUNTED_MAX as u64;
    format!("{count}{}", if more { "+" } else { "" })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn queue_nodes_and_agents_are_tables() {
        let figures = json!({
            "throughput_per_min": 3, "latency_p50_ms": 9.2, "latency_p99_ms": 61.0, "error_rate": 0.25, "warm_hit_rate": 0.5,
            "jobs_by_status": {"pending": 2, "running": 1},
        });
        let gpus = json!([{"memory_bytes": 8, "free_bytes": 8}, {"memory_bytes": 8, "free_bytes": 2}]);
        let seen = json!({
            "queues": [{"name": "default", "pending": 2, "running": 1, "oldest": {"created_at": 10.0}, "figures": figures}],
            "nodes": [
                {"id": "laptop", "health": "ready", "cores": 12, "cores_free": 10, "memory_bytes": 34359738368_u64,
                 "memory_bytes_free": 33285996544_u64, "places": 12, "llm_places": 256, "llm_places_free": 253, "running": 4, "warm": 1},
                {"id": "gpu-a", "health": "down", "cordoned": true, "cores": 64, "cores_free": 64, "gpus": gpus, "places": 64},
            ],
            "agents": {"hello": figures},
        });
        let options = Options { once: true, queues: false, nodes: false, agents: true };
        let look = Look { now: 145.0, ..Look::default() };
        expect![[r#"
            QUEUE    WAITING  RUNNING  OLDEST  RATE/MIN  P50   P99
            default  2        1        2 min   3         9 ms  61 ms

            NODE    STATE           CORES  MEM           GPU  PLACES (busy/warm/max)  LLM
            laptop  ready           2/12   1.0/32.0 GiB  -    1/1/12                  3/256
            gpu-a   down, cordoned  0/64   0.0/0 B       1/2  0/0/64                  0/0

            AGENT  WAITING  RUNNING  RATE/MIN  P50   P99    ERRORS  WARM
            hello  2        1        3         9 ms  61 ms  25 %    50 %
        "#]]
        .assert_eq(&text(&seen, &options, &look).expect("readable"));
        let seen_by_some = json!({
            "queues": [{"name": "team-a", "pending": 1000, "running": 3, "oldest": null, "more": true}], "nodes": null, "agents": null,
            "left_out": [{"what": "nodes", "why": "ann lacks the right nodes.read in the cluster"}],
        });
        expect![[r#"
            QUEUE   WAITING  RUNNING  OLDEST  RATE/MIN  P50  P99
            team-a  1000+    3        -       -         -    -

            left out: nodes: ann lacks the right nodes.read in the cluster
        "#]]
        .assert_eq(&text(&seen_by_some, &options, &look).expect("readable"));
        assert_eq!(names(&seen, &options), ["node/laptop", "node/gpu-a", "agent/hello"]);
        assert_eq!(names(&seen, &Options { queues: true, ..options }), ["agent/hello"]);
    }
}
