//! Tests that no process is left when a worker is killed, for every kind of confinement.

use std::time::Duration;

use crate::session::processes;
use crate::support::{Controller, End, NO_ENGINE, Node, PATIENCE, in_time, program, shell, until};

/// Kills a worker with SIGKILL while an agent has children of every kind, each a `sleep` with the argument `mark`.
async fn nothing_outlives(confinement: &str, mark: &str) {
    let mut controller = Controller::start().await;
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut worker = program(&controller, dir.path(), NO_ENGINE)
        .args(["--confinement", confinement])
        .spawn()
        .expect("the worker starts");
    let mut session = tokio::select! {
        session = controller.welcomed(Vec::new()) => session,
        () = ended(&mut worker) => {
            atlas_notice::skip(format_args!("this machine does not permit {confinement}"));
            return;
        }
    };
    // A child, a child in its own session, and a double-forked child without a parent.
    let script =
        format!("sleep {mark} & setsid sleep {mark} & (setsid sh -c 'sleep {mark} & exit' &); exec sleep {mark}");
    let agent = controller.publish_owned(&shell(&script, ""));
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    until("all four run", PATIENCE, || processes(mark) == 4).await;
    worker.kill().expect("kill -9");
    until("all four are dead", Duration::from_secs(2), || processes(mark) == 0).await;
    worker.wait().expect("it was a child");
}

async fn ended(worker: &mut std::process::Child) {
    until("the worker ends", PATIENCE, || matches!(worker.try_wait(), Ok(Some(_)))).await;
}

#[tokio::test]
async fn nothing_outlives_a_killed_worker_with_pid_namespaces() {
    nothing_outlives("pid-namespace", "86331").await;
}

#[tokio::test]
async fn nothing_outlives_a_killed_worker_with_user_namespaces() {
    nothing_outlives("user-pid-namespace", "86332").await;
}

#[tokio::test]
async fn nothing_outlives_a_killed_worker_without_namespaces() {
    nothing_outlives("subreaper", "86333").await;
}

#[tokio::test]
async fn a_subreaper_ends_what_a_job_leaves_behind() {
    let mut controller = Controller::start().await;
    let subreaper = Some(atlas_worker::Confinement::Subreaper);
    let node = Node::start_with(&controller, |options| options.confinement = subreaper).await;
    let mut session = controller.welcomed(Vec::new()).await;
    let script = "(setsid sh -c 'sleep 86334 & sleep 86334 & exit' &) >/dev/null 2>&1; sleep 0.2; echo '{\"ok\":1}'";
    let agent = controller.publish_owned(&shell(script, ""));
    let assignment = controller.assignment(&agent, "{}");
    assert_eq!(session.run(&assignment).await.output(&controller), "{\"ok\":1}");
    assert_eq!(processes("86334"), 0);
    let stubborn = controller.publish_owned(&shell("trap '' TERM; setsid sleep 86334", "  execution_timeout: 0.5\n"));
    let assignment = controller.assignment(&stubborn, "{}");
    let end: End = in_time("the end", session.run(&assignment)).await;
    assert_eq!(end.error(), "Execution timed out after 0.5s");
    assert_eq!(processes("86334"), 0);
    node.shutdown().await;
}
