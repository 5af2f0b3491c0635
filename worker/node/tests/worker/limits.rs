//! Tests limits of contracts that control groups enforce. The settings for each version of cgroups are tested beside
//! the code. These tests need a machine that lets the worker create groups.

use std::path::{Path, PathBuf};

use atlas_worker::Cgroup;
use serde_json::Value;

use crate::sandbox::metadata;
use crate::support::{
    Controller, End, NO_ENGINE, Node, PATIENCE, Stage, program, python, shell, until, without_python,
};

const LIMITED: &str = "  hardware: {min_memory_gb: 1, min_cpu_cores: 1}\n  execution_timeout: 50\n";

/// The limits that were enforced according to a job. None, with a message, if groups enforce nothing on this machine.
fn enforced(end: &End) -> Option<String> {
    let (End::Completed { metadata, .. } | End::Failed { metadata, .. }) = end else { panic!("not run: {end:?}") };
    let metadata: Value = serde_json::from_str(metadata.as_deref().unwrap_or("{}")).expect("metadata is JSON");
    let text = metadata["_limits"].as_str().expect("the contract states limits").to_owned();
    if !text.contains("cgroup") {
        atlas_notice::skip(format_args!("this machine lets no process create cgroups ({text})"));
        return None;
    }
    Some(text)
}

/// A shell agent that prints its groups.
const WHERE: &str = "printf '{\"groups\":\"%s\"}' \"$(tr '\\n' ' ' </proc/self/cgroup)\"";

/// The group of the worker that limits `controller` in a line of `/proc/self/cgroup`, and its directory.
fn group_of(groups: &str, controller: &str) -> Option<PathBuf> {
    let lines: Vec<Vec<&str>> = groups.split(' ').map(|line| line.splitn(3, ':').collect()).collect();
    let ours = lines.iter().filter(|line| line.get(2).is_some_and(|group| group.contains("/atlas-")));
    let root = Path::new("/sys/fs/cgroup");
    ours.filter_map(|line| match line[1] {
        "" => Some(root.join(line[2].trim_start_matches('/'))),
        names if names.split(',').any(|name| name == controller) => {
            Some(root.join(names).join(line[2].trim_start_matches('/')))
        }
        _ => None,
    })
    .next()
}

#[tokio::test]
async fn an_agent_runs_in_a_group_that_goes_with_it() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell(WHERE, LIMITED));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    let output: Value = serde_json::from_str(&end.output(&controller)).expect("JSON");
    node.shutdown().await;
    let Some(text) = enforced(&end) else { return };
    let said = |version: &str| format!("memory 1 GiB by cgroup {version}, cpu 1 core by cgroup {version}");
    assert!([said("v1"), said("v2")].contains(&text), "{text}");
    for controller in ["memory", "cpu"] {
        let group = group_of(output["groups"].as_str().expect("it says so"), controller).expect("it is in one");
        assert!(group.parent().expect("not the root").is_dir() && !group.exists(), "{}", group.display());
    }
}

#[tokio::test]
async fn a_job_that_reaches_its_memory_limit_says_so() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    // The agent reads an endless line into memory.
    let agent = controller.publish_owned(&shell("exec tail -n 1 /dev/zero", LIMITED));
    let probe = controller.publish_owned(&shell("echo '{}'", LIMITED));
    if enforced(&session.run(&controller.assignment(&probe, "{}")).await).is_none() {
        return node.shutdown().await;
    }
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    let error = end.error();
    let why = "out of memory: the agent's processes reached the contract's limit of 1 GiB (cgroup v";
    assert!(error.starts_with(&format!("Process exited with code -9: {why}")), "{error}");
    node.shutdown().await;
}

#[tokio::test]
async fn a_python_agent_that_reaches_its_memory_limit_says_so() {
    if without_python() {
        return;
    }
    let code = "import subprocess\nfrom atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def execute(self, d):\n        if d['child']:\n            return {'code': subprocess.run(['tail', '-n', '1', '/dev/zero']).returncode}\n        return {'bytes': len(b'x' * (d['mib'] << 20))}\n";
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&python(code, LIMITED));
    let end = session.run(&controller.assignment(&agent, r#"{"child": false, "mib": 1}"#)).await;
    if enforced(&end).is_none() {
        return node.shutdown().await;
    }
    let end = session.run(&controller.assignment(&agent, r#"{"child": true}"#)).await;
    assert_eq!(end.output(&controller), r#"{"code":-9}"#);
    let line = session.events.pop().expect("it is told");
    assert!(line.level == "warning" && line.text.starts_with("out of memory: "), "{line:?}");
    let end = session.run(&controller.assignment(&agent, r#"{"child": false, "mib": 1500}"#)).await;
    let error = end.error();
    assert!(error.starts_with("Agent process was ended by a signal before it answered"), "{error}");
    assert!(error.contains("; out of memory: the agent's processes reached the contract's limit of 1 GiB"), "{error}");
    node.shutdown().await;
}

#[tokio::test]
async fn groups_of_a_killed_worker_are_removed_at_its_next_start() {
    let mut controller = Controller::start().await;
    let dir = tempfile::tempdir().expect("temporary directory");
    let seen = dir.path().join("seen");
    let mut worker = program(&controller, dir.path(), NO_ENGINE).spawn().expect("the worker starts");
    let mut session = controller.welcomed(Vec::new()).await;
    let script =
        format!("tr '\\n' ' ' </proc/self/cgroup >{0}.part; mv {0}.part {0}; exec sleep 86361", seen.display());
    let agent = controller.publish_owned(&shell(&script, LIMITED));
    session.grant(&controller.assignment(&agent, "{}")).await;
    until("the agent runs", PATIENCE, || seen.exists()).await;
    worker.kill().expect("kill -9");
    worker.wait().expect("it was a child");
    let groups = std::fs::read_to_string(&seen).expect("readable");
    let directories: Vec<PathBuf> = ["memory", "cpu"].iter().filter_map(|name| group_of(&groups, name)).collect();
    if directories.is_empty() {
        return atlas_notice::skip("this machine lets no process create cgroups");
    }
    let is_empty =
        |directory: &PathBuf| std::fs::read_to_string(directory.join("cgroup.procs")).is_ok_and(|text| text.is_empty());
    until("its processes are dead", PATIENCE, || directories.iter().all(is_empty)).await;
    let node = Node::start_with(&controller, |options| options.data_dir = dir.path().to_owned()).await;
    assert_eq!(directories.iter().filter(|directory| directory.exists()).count(), 0, "{directories:?}");
    node.shutdown().await;
}

/// A node that limits nothing by control groups.
async fn without_groups() -> Stage {
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| options.cgroup = Cgroup::Off).await;
    let mut session = controller.session().await;
    session.hello().await;
    session.welcome_for(PATIENCE, Vec::new()).await;
    Stage { controller, node, session }
}

const PERMITTED: &str = "  permissions: {max_memory_mb: 64, max_cpu_seconds: 1}\n  execution_timeout: 50\n";

/// A process that holds 300 MB, and one that works for ever.
const GREEDY: &str = "head -c 300000000 /dev/zero | tail -c 300000000 | wc -c >&2; echo '{}'";
const BUSY: &str = "sh -c 'while :; do :; done'; echo '{}'";

#[tokio::test]
async fn what_permissions_state_is_a_limit_without_control_groups_too() {
    let Stage { mut controller, node, mut session } = without_groups().await;
    let modest = controller.publish_owned(&shell("echo '{}'", PERMITTED));
    let end = session.run(&controller.assignment(&modest, "{}")).await;
    assert_eq!(end.output(&controller), "{}");
    let text = metadata(&end)["_limits"].clone();
    assert_eq!(text, "memory 64 MiB watched, cpu time 1 s watched");
    for (script, code, used, limit) in [
        (GREEDY, "E3107", "out of memory: the agent's processes used ", "the contract's limit of 64 MiB"),
        (BUSY, "E3108", "out of processor time: the agent's processes used ", "the contract's limit of 1 s"),
    ] {
        let agent = controller.publish_owned(&shell(script, PERMITTED));
        let end = session.run(&controller.assignment(&agent, "{}")).await;
        let error = end.error();
        assert!(error.contains(used) && error.ends_with(limit), "{error}");
        assert_eq!((&metadata(&end)["_error_code"], &metadata(&end)["_limits"]), (&code.into(), &text), "{error}");
    }
    node.shutdown().await;
}

#[tokio::test]
async fn what_permissions_state_is_a_limit_of_a_control_group() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell(GREEDY, "  permissions: {max_memory_mb: 64}\n"));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    if let Some(text) = enforced(&end) {
        assert!(text.starts_with("memory 64 MiB by cgroup v"), "{text}");
        // The shell goes on without the process that was killed.
        let line = session.events.iter().find(|event| event.text.starts_with("out of memory: ")).expect("it is told");
        assert!(line.text.contains("the contract's limit of 64 MiB (cgroup v"), "{}", line.text);
    }
    let agent =
        controller.publish_owned(&shell(&format!("exec {GREEDY_ALONE}"), "  permissions: {max_memory_mb: 64}\n"));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    let error = end.error();
    assert!(error.contains("out of memory: ") && error.contains("limit of 64 MiB"), "{error}");
    assert_eq!(metadata(&end)["_error_code"], "E3107");
    node.shutdown().await;
}

/// Reads an endless line into memory.
const GREEDY_ALONE: &str = "tail -n 1 /dev/zero";

#[tokio::test]
async fn processor_time_counts_for_each_job_of_a_warm_agent() {
    if without_python() {
        return;
    }
    let code = "import time\nfrom atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def execute(self, d):\n        end = time.process_time() + d['seconds']\n        while time.process_time() < end:\n            pass\n        return {}\n";
    let Stage { mut controller, node, mut session } = without_groups().await;
    let agent =
        controller.publish_owned(&python(code, "  permissions: {max_cpu_seconds: 1}\n  execution_timeout: 50\n"));
    for warm in [false, true] {
        let end = session.run(&controller.assignment(&agent, r#"{"seconds": 0.6}"#)).await;
        let End::Completed { usage, .. } = &end else { panic!("{end:?}") };
        assert_eq!(usage.warm, warm);
    }
    let end = session.run(&controller.assignment(&agent, r#"{"seconds": 40}"#)).await;
    assert_eq!(metadata(&end)["_error_code"], "E3108", "{end:?}");
    assert!(end.error().contains("more than the contract's limit of 1 s"), "{end:?}");
    node.shutdown().await;
}
