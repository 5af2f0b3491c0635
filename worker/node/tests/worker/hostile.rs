//! Tests misbehaving agents: each must be contained and reported, and the worker must continue.

use std::time::Duration;

use crate::session::processes;
use crate::support::{PATIENCE, Session, Stage, python, shell, until, without_python};

/// Runs a hostile agent, then a normal one on the same worker.
async fn contained(files: Vec<(&'static str, String)>) -> (String, Session) {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&files);
    let assignment = controller.assignment(&agent, "{}");
    let error = session.run(&assignment).await.error();
    let decent = controller.publish_owned(&shell("echo '{\"fine\":true}'", ""));
    let assignment = controller.assignment(&decent, "{}");
    assert_eq!(session.run(&assignment).await.output(&controller), "{\"fine\":true}");
    node.shutdown().await;
    (error, session)
}

async fn sh(script: &str) -> String {
    contained(shell(script, "  execution_timeout: 15\n")).await.0
}

async fn py(body: &str) -> String {
    let code = format!(
        "import os, signal, subprocess, sys, time\nfrom atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def execute(self, d):\n        {body}\n"
    );
    contained(python(&code, "  execution_timeout: 15\n")).await.0
}

#[tokio::test]
async fn a_process_that_ends_without_a_word() {
    assert_eq!(
        sh("exit 0").await,
        "Invalid JSON output from process: Expecting value: line 1 column 1 (char 0)\nstdout: "
    );
}

#[tokio::test]
async fn a_flood_on_stdout() {
    assert_eq!(sh("yes 0123456789abcdef | head -c 100000000").await, "Process printed more than 8388608 bytes");
}

#[tokio::test]
async fn a_flood_on_stderr_is_cut() {
    let (error, session) =
        contained(shell("yes 0123456789abcdef | head -c 5000000 >&2; exit 1", "  execution_timeout: 30\n")).await;
    assert!(error.starts_with("Process exited with code 1: 0123456789abcdef") && error.len() < 20_000);
    let bytes: usize = session.events.iter().map(|event| event.text.len()).sum();
    assert!(bytes <= 2 << 20, "{bytes} bytes of log lines");
}

#[tokio::test]
async fn bytes_that_are_no_text() {
    let error = sh("printf '\\377\\376'").await;
    assert!(error.starts_with("Invalid JSON output from process: 'utf-8' codec can't decode byte 0xff"), "{error}");
}

#[tokio::test]
async fn a_process_that_closes_its_stdout_and_hangs() {
    let files = shell("exec >&- 2>&-; exec sleep 86321", "  execution_timeout: 1\n");
    assert_eq!(contained(files).await.0, "Execution timed out after 1.0s");
    assert_eq!(processes("86321"), 0);
}

#[tokio::test]
async fn a_process_that_does_not_read_its_input() {
    assert_eq!(sh("exec <&-; exit 5").await, "Process exited with code 5: unknown error");
}

#[tokio::test]
async fn children_in_sessions_of_their_own_end_with_the_job() {
    let script = "setsid sh -c 'sleep 86322 & sleep 86322 &' >/dev/null 2>&1; sleep 0.2; exit 7";
    assert_eq!(sh(script).await, "Process exited with code 7: unknown error");
    assert_eq!(processes("86322"), 0);
}

#[tokio::test]
async fn children_that_hold_the_pipes_do_not_hold_the_job() {
    // The children are not killed one by one, but end with the first process of the tree.
    assert_eq!(sh("sleep 86323 & sleep 86323 & exit 3").await, "Process exited with code 3: unknown error");
    assert_eq!(processes("86323"), 0);
}

#[tokio::test]
async fn a_process_that_ignores_the_polite_signal() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell("trap '' TERM; sleep 86324; sleep 86324", ""));
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    until("the agent runs", PATIENCE, || processes("86324") == 1).await;
    let (job, token) = (assignment.job, assignment.token);
    let grace = Duration::from_millis(200).into();
    session.say(atlas_wire::session::ToWorker::Cancel { job, token, grace }).await;
    let (_, end) = session.end().await;
    assert!(matches!(end, crate::support::End::Failed { cancelled: true, .. }), "{end:?}");
    assert_eq!(processes("86324"), 0);
    node.shutdown().await;
}

#[tokio::test]
async fn python_that_leaves_without_an_answer() {
    if without_python() {
        return;
    }
    assert_eq!(py("os._exit(0)").await, "Agent process exited with code 0 before it answered");
    assert_eq!(py("sys.exit(0)").await, "0");
    assert!(py("os.kill(os.getpid(), signal.SIGKILL)").await.starts_with("Agent process was ended by a signal"));
}

#[tokio::test]
async fn python_that_breaks_the_framing() {
    if without_python() {
        return;
    }
    let body = "for fd in range(3, 64):\n            try: os.write(fd, b'\\xff' * 64)\n            except OSError: pass\n        time.sleep(60)";
    assert_eq!(py(body).await, "the agent's output has more than 8388608 bytes");
}

#[tokio::test]
async fn python_that_forks_while_it_runs_a_job() {
    if without_python() {
        return;
    }
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let code = "import os, time\nfrom atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def execute(self, d):\n        n = d['n']\n        if n == 1 and os.fork() == 0:\n            return {'n': 'of the child'}\n        time.sleep(0.2)\n        return {'n': n}\n";
    let agent = controller.publish_owned(&python(code, ""));
    for n in 1..=3 {
        let assignment = controller.assignment(&agent, &format!("{{\"n\": {n}}}"));
        assert_eq!(session.run(&assignment).await.output(&controller), format!("{{\"n\":{n}}}"));
    }
    node.shutdown().await;
}

#[tokio::test]
async fn python_whose_answer_cannot_be_written() {
    if without_python() {
        return;
    }
    let deep = "x = []\n        for _ in range(500): x = [x]\n        return {'x': x}";
    assert_eq!(py(deep).await, "Output validation: the output is nested more than 100 levels");
    let endless = "x = []; x.append(x)\n        return {'x': x}";
    assert_eq!(py(endless).await, "Circular reference detected");
    assert_eq!(py("self.context.execution_metadata = None; raise KeyError('k')").await, "'k'");
    let mute = "\n        class E(Exception):\n            def __str__(self): raise ValueError()\n        raise E()";
    assert_eq!(py(mute).await, "E");
    assert_eq!(py("sys.stderr.close(); sys.stdout = None; raise ValueError('quiet')").await, "quiet");
}

#[tokio::test]
async fn python_that_floods_its_output() {
    if without_python() {
        return;
    }
    assert_eq!(py("return {'x': 'y' * 20_000_000}").await, "the agent's output has more than 8388608 bytes");
    let (error, session) = contained(python(
        "from atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def execute(self, d):\n        for _ in range(20_000):\n            print('0123456789abcdef' * 10)\n        raise RuntimeError('done')\n",
        "  execution_timeout: 30\n",
    ))
    .await;
    assert_eq!(error, "done");
    let bytes: usize = session.events.iter().map(|event| event.text.len()).sum();
    assert!(bytes <= 2 << 20, "{bytes} bytes of log lines");
}
