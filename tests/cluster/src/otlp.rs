//! Traces from a caller through Atlas into an agent, with a receiver of OTLP that Atlas did not make.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::api::Api;
use crate::patience::{LONG, eventually};
use crate::{Agent, Dev, write_agent};

/// The environment variable with the path of oteltap; `cargo xtask test` sets it.
const PROGRAM: &str = "ATLAS_TEST_OTELTAP";

/// Returns the trace context that it finds in its environment.
const TOLD: Agent<'static> =
    Agent { name: "told", version: "1.0.0", contract: "", script: r#"printf '{"context": "%s"}' "$TRACEPARENT""# };

/// The same in Python, in a process that serves many jobs.
const WARM: &str = r#"
import os
from atlas.runtime.base import AgentBase

class Warm(AgentBase):
    async def execute(self, input_data):
        return {"context": os.environ.get("TRACEPARENT"), "job": os.environ["ATLAS_JOB_ID"], "pid": os.getpid()}
"#;

/// A running oteltap, and the lines of JSON that it printed.
struct Tap {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    port: u16,
}

impl Tap {
    fn start(program: &Path) -> Self {
        // Another program can take the port until oteltap does; then oteltap ends, and the test fails visibly.
        let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).expect("a free port").port();
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string()]).env("PYTHONUNBUFFERED", "1");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("oteltap starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let read = move || stdout.lines().map_while(Result::ok).for_each(|line| sink.lock().expect("whole").push(line));
        std::thread::Builder::new().name("oteltap".to_owned()).spawn(read).expect("a thread");
        eventually("oteltap listens", LONG, || TcpStream::connect(("127.0.0.1", port)).ok());
        Self { child, lines, port }
    }

    /// Waits for a span of this name in this trace; returns all that was said about it.
    fn span(&self, name: &str, trace: &str) -> String {
        eventually(&format!("a span {name} of {trace}"), LONG, || {
            let lines = self.lines.lock().expect("not poisoned");
            lines.iter().find(|line| line.contains(name) && line.contains(trace)).cloned()
        })
    }

    /// Whether anything was said about a trace.
    fn knows(&self, trace: &str) -> bool {
        self.lines.lock().expect("not poisoned").iter().any(|line| line.contains(trace))
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Submits a job with a trace context and returns its output.
async fn run(dev: &Dev, agent: &str, context: &str) -> Value {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let request = client.post(format!("{}/api/jobs", dev.server())).header("traceparent", context);
    let answer = request.json(&json!({"agent": agent})).send().await.expect("an answer");
    let job: Value = answer.error_for_status().expect("a job").json().await.expect("JSON");
    let id = job["id"].as_str().expect("an id");
    let job = Api::new(dev.server()).wait(id).await;
    assert_eq!(job["status"], json!("completed"), "{job}");
    job["output_data"].clone()
}

fn context(trace: u32, flags: &str) -> String {
    format!("00-{trace:032x}-00000000000000aa-{flags}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_goes_from_the_caller_to_the_agent_and_to_a_receiver() {
    let Some(program) = std::env::var_os(PROGRAM) else {
        atlas_notice::skip(format_args!("{PROGRAM} does not name oteltap; `cargo xtask test` installs it"));
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let agents = folder.path().join("agents");
    write_agent(&agents, &TOLD);
    let warm = agents.join("warm");
    std::fs::create_dir(&warm).expect("a folder");
    std::fs::write(warm.join("agent.py"), WARM).expect("written");
    std::fs::write(warm.join("agent.yaml"), "agent: { name: warm, version: 1.0.0 }").expect("written");
    let tap = Tap::start(program.as_ref());
    let address = format!("http://127.0.0.1:{}", tap.port);
    let dev = Dev::start_with(
        folder.path(),
        ["--ephemeral", "--agents", "./agents", "--otlp", &address],
        [("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), ("OTEL_BSP_SCHEDULE_DELAY", "1")],
    );

    // The agent gets the trace of the caller, and the id of the span that Atlas sends for its execution.
    let given = run(&dev, "told", &context(0xA1, "01")).await;
    let given = given["context"].as_str().expect("text");
    let [version, trace, span, flags] = given.split('-').collect::<Vec<_>>().try_into().expect("four parts");
    assert_eq!((version, trace, flags), ("00", &*format!("{:032x}", 0xA1), "01"));
    assert_ne!(span, "00000000000000aa", "it is a span of Atlas");
    let sent = tap.span("execute told", trace);
    assert!(sent.contains(span), "{sent} is not the span {span} that the agent was given");

    // A process that serves many jobs sees the trace and the id of each.
    let first = run(&dev, "warm", &context(0xB1, "01")).await;
    let second = run(&dev, "warm", &context(0xB2, "01")).await;
    let third = run(&dev, "warm", "none").await;
    assert_eq!((&first["pid"], &first["pid"]), (&second["pid"], &third["pid"]), "one process");
    for (output, trace) in [(&first, 0xB1), (&second, 0xB2)] {
        assert!(output["context"].as_str().is_some_and(|told| told.contains(&format!("-{trace:032x}-"))), "{output}");
    }
    assert_eq!(third["context"], json!(null), "its caller gave none");
    assert_ne!(first["job"], second["job"]);

    // A caller that does not sample its trace is not sampled here either. The job after it shows that it was not sent late.
    run(&dev, "told", &context(0xC1, "00")).await;
    run(&dev, "told", &context(0xC2, "01")).await;
    tap.span("execute told", &format!("{:032x}", 0xC2));
    assert!(!tap.knows(&format!("{:032x}", 0xC1)), "the caller did not sample it");
    assert_eq!(dev.interrupt(), Some(0), "it stops in order");
}
