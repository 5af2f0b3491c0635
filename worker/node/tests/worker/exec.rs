//! Tests exec agents.

use std::time::Duration;

use atlas_types::{Assignment, FailureKind};
use atlas_wire::session::{ToLeader, ToWorker};
use serde_json::Value;

use crate::session::processes;
use crate::support::{Controller, End, Node, Stage, shell};

/// Runs one job of a shell agent and returns its end.
async fn once(script: &str, more: &str, input: &str) -> (End, Controller, Vec<String>) {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell(script, more));
    let assignment = controller.assignment(&agent, input);
    let end = session.run(&assignment).await;
    let lines = session.events.iter().map(|event| format!("{}: {}", event.level, event.text)).collect();
    node.shutdown().await;
    (end, controller, lines)
}

#[tokio::test]
async fn a_document_in_and_a_document_out() {
    let (end, controller, _) = once("cat", "", "{\"message\": \"hi\"}").await;
    let output: Value = serde_json::from_str(&end.output(&controller)).expect("JSON");
    assert_eq!(output["input"]["message"], "hi");
    assert_eq!(output["context"]["job_id"], "job-0000000000000001");
    assert_eq!(output["context"]["step_index"], -1);
}

#[tokio::test]
async fn an_exit_code_fails_the_job_with_what_it_complained_of() {
    let (end, _, lines) = once("echo no disk >&2; echo 'WARN: full' >&2; exit 3", "", "{}").await;
    assert_eq!(end.error(), "Process exited with code 3: no disk\nWARN: full");
    assert_eq!(lines, ["info: no disk", "warning: WARN: full"]);
    let (end, _, _) = once("exit 4", "", "{}").await;
    assert_eq!(end.error(), "Process exited with code 4: unknown error");
}

#[tokio::test]
async fn garbage_is_shown() {
    let (end, _, _) = once("echo hello", "", "{}").await;
    assert_eq!(
        end.error(),
        "Invalid JSON output from process: Expecting value: line 1 column 1 (char 0)\nstdout: hello\n"
    );
}

#[tokio::test]
async fn what_is_no_object_is_refused() {
    let (end, _, _) = once("echo '[1]'", "", "{}").await;
    assert!(matches!(&end, End::Failed { failure, .. } if failure.kind == FailureKind::OutputInvalid), "{end:?}");
}

#[tokio::test]
async fn a_missing_program_is_told_as_the_system_tells_it() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let contract = "agent:\n  name: x\n  version: 1.0.0\n  provider:\n    type: exec\n    command: [no-such-program]\n";
    let agent = controller.publish(&[("agent.yaml", contract)]);
    let assignment = controller.assignment(&agent, "{}");
    let end = session.run(&assignment).await;
    assert_eq!(end.error(), "[Errno 2] No such file or directory: 'no-such-program'");
    node.shutdown().await;
}

#[tokio::test]
async fn a_package_that_was_changed_on_disk_is_not_run() {
    let mut controller = Controller::start().await;
    let data = tempfile::tempdir().expect("temporary directory");
    let agent = controller.publish_owned(&shell("echo '{\"said\":\"as packed\"}'", ""));
    let package = data.path().join("packages").join(agent.digest.hex());
    let changes: [&dyn Fn(); 3] = [
        &|| {},
        &|| {
            // The file is read-only; its folder is not.
            std::fs::remove_file(package.join("run.sh")).expect("there");
            std::fs::write(package.join("run.sh"), "echo '{\"said\":\"changed\"}'").expect("writable");
        },
        &|| std::fs::remove_file(package.join("agent.yaml")).expect("there"),
    ];
    for change in changes {
        change();
        let node = Node::start_with(&controller, |options| options.data_dir = data.path().to_owned()).await;
        let mut session = controller.welcomed(Vec::new()).await;
        let end = session.run(&controller.assignment(&agent, "{}")).await;
        assert_eq!(end.output(&controller), r#"{"said":"as packed"}"#);
        node.shutdown().await;
    }
}

#[tokio::test]
async fn a_script_of_the_package_runs_in_the_packages_directory() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let contract = "agent:\n  name: x\n  version: 1.0.0\n  provider:\n    type: exec\n    command: [./run]\n";
    let agent = controller.publish(&[
        ("agent.yaml", contract),
        ("run", "#!/bin/sh\ncat answer.json"),
        ("answer.json", "{\"a\":1}"),
    ]);
    let assignment = controller.assignment(&agent, "{}");
    assert_eq!(session.run(&assignment).await.output(&controller), "{\"a\":1}");
    node.shutdown().await;
}

#[tokio::test]
async fn the_environment_is_an_allow_list() {
    let (end, controller, _) = once(
        "printf '{\"job\":\"%s\",\"cargo\":\"%s\",\"path\":\"%s\"}' \"$ATLAS_JOB_ID\" \"$CARGO_MANIFEST_DIR\" \"${PATH:+set}\"",
        "",
        "{}",
    )
    .await;
    assert_eq!(end.output(&controller), "{\"job\":\"job-0000000000000001\",\"cargo\":\"\",\"path\":\"set\"}");
}

/// A shell sleeps until it gets the signal that a child has ended.
#[tokio::test]
async fn a_program_can_wait_for_its_children() {
    let script =
        "(sleep 0.1; exit 1) & wait; printf '{\"blocked\": \"%s\"}' \"$(sed -n 's/^SigBlk:.//p' /proc/self/status)\"";
    let (end, controller, _) = once(script, "  execution_timeout: 20\n", "{}").await;
    assert_eq!(end.output(&controller), r#"{"blocked": "0000000000000000"}"#);
}

#[tokio::test]
async fn a_timeout_kills_the_process() {
    let (end, _, _) = once("sleep 600", "  execution_timeout: 0.3\n", "{}").await;
    assert_eq!(end.error(), "Execution timed out after 0.3s");
}

#[tokio::test]
async fn a_wrong_output_is_kept() {
    let more = "  output:\n    schema:\n      type: object\n      properties: {a: {type: string}}\n";
    let (end, controller, _) = once("echo '{\"a\": 5}'", more, "{}").await;
    assert_eq!(end.metadata().get("_error_at").and_then(Value::as_str), Some("/a: type"));
    let End::Failed { failure, output: Some(output), .. } = end else { panic!("{end:?}") };
    assert_eq!(&*failure.error, "Output validation: 5 is not of type 'string'");
    assert_eq!(controller.text(&output), "{\"a\": 5}");
}

/// The door checked the input of a first try; a retry did not pass by it.
#[tokio::test]
async fn the_input_of_a_retry_is_checked_and_the_slot_kept() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let more = "  input:\n    schema:\n      required: [a]\n";
    let script = "while read -r line; do echo '{\"output\": {}}'; done";
    let agent = controller.publish_owned(&shell(script, &format!("    mode: warm\n{more}")));
    let mut assignment = controller.assignment(&agent, "{}");
    assignment.retry_count = 1;
    let end = session.run(&assignment).await;
    assert!(matches!(&end, End::Failed { failure, .. } if failure.kind == FailureKind::InputInvalid), "{end:?}");
    assert_eq!(end.error(), "Input validation: 'a' is a required property");
    let mut assignment = controller.assignment(&agent, "{\"a\": 1}");
    assignment.retry_count = 1;
    let end = session.run(&assignment).await;
    assert_eq!(end.output(&controller), "{}");
    assert!(end.usage().warm);
    node.shutdown().await;
}

#[tokio::test]
async fn an_attempt_that_lacks_agents_fails_before_it_begins() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell("echo '{}'", ""));
    let assignment =
        Assignment { lacks: Some("Missing agent dependencies: b".into()), ..controller.assignment(&agent, "{}") };
    let end = session.run(&assignment).await;
    assert!(matches!(&end, End::Failed { failure, .. } if failure.kind == FailureKind::Dependency), "{end:?}");
    assert_eq!(end.error(), "Missing agent dependencies: b");
    node.shutdown().await;
}

#[tokio::test]
async fn an_output_that_is_no_object_is_refused_and_kept() {
    for schema in
        ["", "  output: {schema: {type: [array, object]}}\n", "  output: {schema: {type: object, minProperties: 0}}\n"]
    {
        let (end, controller, _) = once("echo '[1, \"a\"]'", schema, "{}").await;
        assert_eq!(end.error(), "Output validation: [1, 'a'] is not of type 'object'");
        let End::Failed { failure, output: Some(output), .. } = &end else { panic!("not kept: {end:?}") };
        assert_eq!((failure.kind, controller.text(output).as_str()), (FailureKind::OutputInvalid, "[1, \"a\"]"));
    }
}

#[tokio::test]
async fn large_inputs_and_outputs_travel_as_artifacts() {
    let input = format!("{{\"text\": \"{}\"}}", "x".repeat(300_000));
    let (end, controller, _) = once("cat", "", &input).await;
    assert!(end.output(&controller).contains(&"x".repeat(300_000)));
}

#[tokio::test]
async fn orders_to_the_platform_are_taken_out() {
    let (end, controller, _) = once("echo '{\"a\": 1, \"_memory_append\": \"x\"}'", "", "{}").await;
    assert_eq!(end.output(&controller), "{\"a\":1}");
}

#[tokio::test]
async fn a_cancel_stops_the_process_politely_first() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let script = "trap 'echo bye >&2; exit 1' TERM; echo up >&2; while :; do sleep 0.05; done";
    let agent = controller.publish_owned(&shell(script, ""));
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    while session.events.is_empty() {
        if let ToLeader::StreamEvents { events, .. } = session.next().await {
            session.events.extend(events);
        }
    }
    let (job, token) = (assignment.job, assignment.token);
    session.say(ToWorker::Cancel { job, token, grace: Duration::from_secs(5).into() }).await;
    let (_, end) = session.end().await;
    assert!(matches!(end, End::Failed { cancelled: true, .. }), "{end:?}");
    let said: Vec<_> = session.events.iter().map(|event| event.text.as_str()).collect();
    // Some shells report that their `sleep` was terminated.
    assert_eq!((said.first(), said.last()), (Some(&"up"), Some(&"bye")), "{said:?}");
    node.shutdown().await;
}

/// No process is left between jobs, so the slot is never warm and reserves no memory.
#[tokio::test]
async fn a_process_per_job_is_never_warm() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    for more in ["", "    mode: per_job\n"] {
        let agent = controller.publish_owned(&shell("echo '{}'", more));
        for _ in 0..2 {
            let assignment = controller.assignment(&agent, "{}");
            let usage = session.run(&assignment).await.usage();
            assert_eq!((usage.warm, usage.idle), (false, 0));
            assert!(usage.warmup.0 > 0, "0 means a reused slot");
        }
    }
    node.shutdown().await;
}

#[tokio::test]
async fn a_warm_process_serves_many_jobs() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let script = "n=0; while read -r line; do n=$((n+1)); printf '{\"output\": {\"n\": %s}}\\n' $n; done";
    let agent = controller.publish_owned(&shell(script, "    mode: warm\n"));
    for n in 1..=3 {
        let assignment = controller.assignment(&agent, "{\"a\":\n1}");
        let end = session.run(&assignment).await;
        assert_eq!(end.output(&controller), format!("{{\"n\": {n}}}"));
        assert_eq!((end.usage().warm, end.usage().idle), (n > 1, 1));
    }
    node.shutdown().await;
}

#[tokio::test]
async fn a_process_that_a_job_leaves_running_in_a_warm_program_ends_with_it() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    // The input is larger than a pipe, so that it is read in pieces.
    let script =
        "sleep 86371 >/dev/null & while read -r line; do setsid sleep 86372 >/dev/null & echo '{\"output\": {}}'; done";
    let agent = controller.publish_owned(&shell(script, "    mode: warm\n"));
    for (warm, bytes) in [(false, 100_000), (true, 1)] {
        let assignment = controller.assignment(&agent, &format!("{{\"a\": \"{}\"}}", "x".repeat(bytes)));
        let end = session.run(&assignment).await;
        assert_eq!((end.output(&controller).as_str(), end.usage().warm), ("{}", warm));
        assert_eq!((processes("86371"), processes("86372")), (1, 0));
        let line = session.events.pop().expect("it is told");
        assert_eq!(line.level, "warning");
        assert!(line.text.starts_with("killed a process that the job left running: "), "{line:?}");
    }
    node.shutdown().await;
    assert_eq!(processes("86371"), 0);
}

/// A program that never reads must not block the job.
#[tokio::test]
async fn a_warm_process_that_answers_before_it_reads() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell("echo '{\"output\": {}}'; exec sleep 86373", "    mode: warm\n"));
    assert_eq!(session.run(&controller.assignment(&agent, "{}")).await.output(&controller), "{}");
    node.shutdown().await;
}

#[tokio::test]
async fn a_warm_process_that_ends_after_its_answer_is_made_anew() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell("read -r line; echo '{\"output\": {}}'", "    mode: warm\n"));
    for _ in 0..3 {
        let assignment = controller.assignment(&agent, "{}");
        assert_eq!(session.run(&assignment).await.output(&controller), "{}");
        while !matches!(session.next().await, ToLeader::WarmChanged { idle: 0, .. }) {}
    }
    node.shutdown().await;
}

#[tokio::test]
async fn a_warm_process_that_reports_an_error_is_not_used_again() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let script = "while read -r line; do echo '{\"error\": \"no luck\"}'; done";
    let agent = controller.publish_owned(&shell(script, "    mode: warm\n"));
    for _ in 0..2 {
        let assignment = controller.assignment(&agent, "{}");
        assert_eq!(session.run(&assignment).await.error(), "no luck");
    }
    node.shutdown().await;
}
