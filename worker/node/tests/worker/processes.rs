//! Agents that use processes, threads and signals as scripts do: the host of Python agents by itself with each start method and each
//! supported version of Python, and confined agents of a worker.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use atlas_worker::SandboxMode;
use serde_json::{Value, json};

use crate::sandbox::node;
use crate::support::without_python;

const AGENT: &str = include_str!("processes/agent.py");
const HELPER: &str = include_str!("processes/helper.py");
const HARNESS: &str = include_str!("processes/harness.py");

const METHODS: [&str; 3] = ["fork", "spawn", "forkserver"];

const NOT_OURS: &str = "OtherProcessError: the job's context belongs to the agent's own process; pass the value to that process, and let it call";

/// The uses of one process, in an order in which each can follow the others, and what they give with any start method.
fn uses() -> Vec<(&'static str, Value)> {
    vec![
        ("call_of_child", json!(NOT_OURS)),
        ("pool", json!([0, 1, 4, 9])),
        ("pool_of_method", json!([0, 7, 14])),
        ("pool_of_helper", json!([8])),
        ("executor_in_loop", json!([0, 1, 4])),
        ("nested_pools", json!(5)),
        ("process_with_queue", json!(["ok", 0])),
        ("manager", json!([1, 2])),
        ("exits_of_children", json!([3, 1])),
        ("daemon", json!([true, -15])),
        ("executor_kept", json!([true, 9])),
        ("descriptors_of_child", json!([])),
        ("threads", json!(["raised", "from the loop", [7], "own loop"])),
        ("thread_left", json!("left")),
        ("subprocesses", json!(["printed by a script\n", "WARNING:root:of a script\n", "through a pipe", 4, 5])),
        ("descriptors_of_program", json!([])),
        ("signals", json!([[10, "too late"], [], true, true])),
        ("forks", json!([2, 3, 1, 1])),
        ("fork_that_calls", json!(1)),
        ("fork_that_returns", json!(70)),
        ("detached", json!(0)),
        ("exit", json!("error: 3")),
        ("closed_outputs", json!([2])),
    ]
}

/// The interpreter of a version: on the path, or among those of pyenv.
pub(crate) fn interpreter(version: &str) -> Option<PathBuf> {
    let name = format!("python{version}");
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| std::env::home_dir().map(|home| home.join(".pyenv")));
    let kept = pyenv.and_then(|root| std::fs::read_dir(root.join("versions")).ok()).into_iter().flatten().flatten();
    let kept = kept.map(|entry| entry.path().join("bin").join(&name)).filter(|program| program.is_file());
    let runs = |program: &PathBuf| {
        let mut command = Command::new(program);
        let status = command.args(["-c", ""]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    std::iter::once(PathBuf::from(&name)).chain(kept).find(runs)
}

/// What the host did for the uses, each a job.
fn told(python: &Path, folder: &Path, method: &str, uses: &[&str]) -> Value {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/sdk/python").canonicalize().expect("the SDK");
    let mut command = Command::new(python);
    command.args(["-B", "-c", HARNESS]).arg(sdk).arg(folder).arg(method).args(uses).stderr(Stdio::inherit());
    let output = command.output().expect("it starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{method}: {error}: {output:?}"))
}

fn check(version: &str) {
    let Some(python) = interpreter(version) else {
        atlas_notice::skip(format_args!("no Python {version} here"));
        return;
    };
    let folder = tempfile::Builder::new().prefix("agent.").tempdir().expect("a folder");
    for (name, text) in [("agent.py", AGENT), ("helper.py", HELPER)] {
        std::fs::write(folder.path().join(name), text).expect("writable");
    }
    let uses = uses();
    let names: Vec<_> = uses.iter().map(|(name, _)| *name).collect();
    for method in METHODS {
        let told = told(&python, folder.path(), method, &names);
        for (name, expected) in &uses {
            assert_eq!(told["answers"][name], *expected, "{name} with {method}: {told:#}");
        }
        assert_eq!(told["code"], 0, "{told:#}");
        let lines =
            |stream: &str| told[stream].as_str().expect("a text").lines().map(str::to_owned).collect::<Vec<_>>();
        let (stdout, stderr) = (lines("stdout"), lines("stderr"));
        let says = |lines: &[String], line: &str| lines.iter().any(|said| said == line);
        // Records of forked processes go where their output goes, with their level. Spawned ones are as bare as scripts.
        let forked = method == "fork";
        assert_eq!(says(&stdout, "WARNING: squares 3") && says(&stdout, "quietly"), forked, "{method}: {stdout:#?}");
        assert_eq!(says(&stderr, "squares 3"), !forked, "{method}: {stderr:#?}");
        assert!(says(&stdout, "WARNING: of a fork") && says(&stdout, "WARNING: of a daemon"), "{stdout:#?}");
        assert!(says(&stderr, "in words") && says(&stderr, "ValueError: of a child"), "{stderr:#?}");
        let returned = "a process that the agent forked returned from the agent's code, and what it returned was dropped; end it by os._exit(0)";
        assert!(says(&stderr, returned), "{stderr:#?}");
        let frames = json!(["log warning: of a thread", "progress : of a thread", "log warning: still there"]);
        assert_eq!(told["frames"], frames, "{method}");
    }
    // What a task or a signal's handler raises ends the loop, and with it the slot: the job says why.
    for (name, code, error) in [
        ("exit_in_task", 4, "error: SystemExit outside of execute: 4"),
        ("alarm_in_loop", 1, "error: TimeoutError outside of execute: too late"),
    ] {
        let told = told(&python, folder.path(), "fork", &[name]);
        assert_eq!((&told["answers"][name], &told["code"]), (&json!(error), &json!(code)), "{told:#}");
        assert_eq!(told["stdout"], "at exit\n");
    }
}

#[test]
fn python_3_11_does_what_scripts_do() {
    check("3.11");
}

#[test]
fn python_3_12_does_what_scripts_do() {
    check("3.12");
}

#[test]
fn python_3_13_does_what_scripts_do() {
    check("3.13");
}

#[test]
fn python_3_14_does_what_scripts_do() {
    check("3.14");
}

/// The agent keeps the processes of its executor from job to job, and Python keeps its own helpers; nothing else stays.
#[tokio::test]
async fn a_confined_agent_uses_pools_in_every_job() {
    if without_python() {
        return;
    }
    let contract = "agent:\n  name: processes\n  version: 1.0.0\n  permissions: {filesystem: [], network: []}\n";
    let files = [("agent.yaml", contract), ("agent.py", AGENT), ("helper.py", HELPER)];
    for method in METHODS {
        let (mut controller, node, mut session) = node(SandboxMode::BestEffort).await;
        let agent = controller.publish(&files);
        for (warm, name) in [
            "call_of_child",
            "executor_in_loop",
            "manager",
            "nested_pools",
            "executor_kept",
            "process_with_queue",
            "executor_kept",
        ]
        .into_iter()
        .enumerate()
        {
            let input = json!({"use": name, "method": method}).to_string();
            let end = session.run(&controller.assignment(&agent, &input)).await;
            let output: Value = serde_json::from_str(&end.output(&controller)).expect("JSON");
            let expected = uses().into_iter().find(|(known, _)| *known == name).expect("a use").1;
            assert_eq!(output["value"], expected, "{name} with {method}");
            assert_eq!(end.usage().warm, warm > 0, "{name} with {method}");
        }
        let killed: Vec<_> = session.events.iter().filter(|event| event.text.contains("left running")).collect();
        assert!(killed.is_empty(), "{method}: {killed:#?}");
        node.shutdown().await;
    }
}
