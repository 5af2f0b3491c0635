//! Tests that the supervisors of a stopped worker, which cannot kill anything itself, kill its trees before its leases
//! end.

use std::process::Child;
use std::time::Duration;

use atlas_env::Env;
use atlas_wire::session::{ToLeader, ToWorker};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::session::processes;
use crate::support::{Controller, NO_ENGINE, Node, PATIENCE, Session, program, shell, until};

/// The lifetime of leases in these tests.
const TTL: Duration = Duration::from_secs(6);

/// Stops a worker while an agent and a child in its own session write signs of life.
async fn nothing_outlives_the_lease(confinement: &str, mark: &str) {
    let mut controller = Controller::start().await;
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut worker = program(&controller, dir.path(), NO_ENGINE)
        .args(["--confinement", confinement])
        .spawn()
        .expect("the worker starts");
    let mut session = tokio::select! {
        session = controller.session() => session,
        () = until("the worker ends", PATIENCE, || matches!(worker.try_wait(), Ok(Some(_)))) => {
            atlas_notice::skip(format_args!("this machine does not permit {confinement}"));
            return;
        }
    };
    session.hello().await;
    session.welcome_for(TTL, Vec::new()).await;
    let alive = dir.path().join("alive");
    let live = format!("while :; do date +%s%N >> {}; sleep 0.02; done", alive.display());
    let script = format!("sleep {mark} & setsid sh -c '{live}' & echo up >&2; {live}");
    let agent = controller.publish_owned(&shell(&script, ""));
    session.grant(&controller.assignment(&agent, "{}")).await;
    while !renewed(&mut session).await {}
    // Waits for the first renewal under the lease as well, because the supervisors then receive the end that counts.
    renewed(&mut session).await;
    signal(&worker, Signal::SIGSTOP);
    let lease_end = Env::system().clock.wall().0 * 1_000 + TTL.as_nanos() as i64;
    assert_eq!(processes(mark), 1, "it is the worker that stopped");
    until("all are dead", TTL, || processes(mark) == 0).await;
    let written = std::fs::read_to_string(&alive).expect("they lived");
    let last: i64 = written.lines().filter_map(|line| line.parse().ok()).max().expect("a time");
    assert!(last < lease_end, "a child lived {} ms longer than its lease", (last - lease_end) / 1_000_000);
    signal(&worker, Signal::SIGCONT);
    worker.kill().expect("killable");
    worker.wait().expect("it was a child");
}

/// Handles a frame and acknowledges renewals. True if the frame contains stream events.
async fn renewed(session: &mut Session) -> bool {
    match session.next().await {
        ToLeader::Renew { number } => session.say(ToWorker::RenewAck { number }).await,
        ToLeader::StreamEvents { .. } => return true,
        _ => {}
    }
    false
}

fn signal(worker: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(worker.id()).expect("a pid")), signal).expect("it is there");
}

#[tokio::test]
async fn nothing_outlives_its_lease_with_pid_namespaces() {
    nothing_outlives_the_lease("pid-namespace", "86341").await;
}

#[tokio::test]
async fn nothing_outlives_its_lease_with_user_namespaces() {
    nothing_outlives_the_lease("user-pid-namespace", "86342").await;
}

#[tokio::test]
async fn nothing_outlives_its_lease_without_namespaces() {
    nothing_outlives_the_lease("subreaper", "86343").await;
}

#[tokio::test]
async fn idle_programs_outlive_the_session_of_a_worker_that_runs() {
    let mut controller = Controller::start().await;
    let node = Node::start(&controller).await;
    let script = "while read -r line; do echo '{\"output\": {}}'; done";
    let agent = controller.publish_owned(&shell(script, "    mode: warm\n"));
    let mut session = controller.session().await;
    session.hello().await;
    session.welcome_for(TTL, Vec::new()).await;
    let clock = Env::system().clock;
    let welcomed_at = clock.monotonic();
    assert!(!session.run(&controller.assignment(&agent, "{}")).await.usage().warm);
    drop(session);
    // No stream is answered until the lease would have ended.
    let mut again = controller.session().await;
    while clock.monotonic() < welcomed_at + 2 * TTL {
        again = controller.session().await;
    }
    again.hello().await;
    again.welcome(Vec::new()).await;
    assert!(again.run(&controller.assignment(&agent, "{}")).await.usage().warm);
    node.shutdown().await;
}
