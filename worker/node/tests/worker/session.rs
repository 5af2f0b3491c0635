//! Tests sessions: resume, redirection, fencing, lease time, drain.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atlas_types::{ClusterTime, HandBack, HandBackDeadline, Micros, ReportKind, ReportResult};
use atlas_wire::session::{ToLeader, ToWorker};

use crate::support::{Controller, End, Node, PATIENCE, Stage, shell, until};

#[tokio::test]
async fn a_reconnect_resumes_with_the_same_boot_and_its_leases() {
    let mut controller = Controller::start().await;
    let node = Node::start(&controller).await;
    let mut session = controller.session().await;
    let first = session.hello().await;
    session.welcome(Vec::new()).await;
    let gate = node.dir.path().join("gate");
    let script = format!("while [ ! -e {} ]; do sleep 0.02; done; echo '{{}}'", gate.display());
    let agent = controller.publish_owned(&shell(&script, ""));
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    // A second message is sent after the grant, to be sure that the worker has received the grant.
    session.say(ToWorker::RenewAck { number: 999 }).await;
    until("the agent runs", PATIENCE, || running("run.sh", &gate)).await;
    drop(session);
    let mut session = controller.session().await;
    let second = session.hello().await;
    assert_eq!((second.boot_id, second.leases.len()), (first.boot_id, 1));
    assert_eq!(second.leases[0].token, assignment.token);
    session.welcome(vec![assignment.clone()]).await;
    std::fs::write(&gate, "").expect("writable");
    let (token, end) = session.end().await;
    assert_eq!((token, end.output(&controller)), (assignment.token, "{}".to_owned()));
    node.shutdown().await;
}

/// True if a script is unpacked on the node of this gate. The directory belongs to this test's node.
fn running(script: &str, gate: &std::path::Path) -> bool {
    let packages = gate.with_file_name("packages");
    let unpacked = std::fs::read_dir(packages).into_iter().flatten().flatten();
    unpacked.into_iter().any(|entry| entry.path().join(script).is_file())
}

#[tokio::test]
async fn a_report_is_sent_again_until_it_is_answered() {
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| options.drain_timeout = Duration::from_millis(100)).await;
    let mut session = controller.welcomed(Vec::new()).await;
    let agent = controller.publish_owned(&shell("echo '{}'", ""));
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    let (number, report) = session.report().await;
    drop(session);
    let mut session = controller.welcomed(vec![assignment.clone()]).await;
    let (again, same) = session.report().await;
    assert_eq!((again, &same), (number, &report));
    session.say(ToWorker::ReportAck { number, result: ReportResult::Fenced }).await;
    drop(session);
    // The report was answered, although it was fenced: it is not sent a third time, and the next report has the next
    // number.
    let mut session = controller.welcomed(Vec::new()).await;
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    assert_eq!(session.report().await.0, number + 1);
    node.shutdown().await;
}

#[tokio::test]
async fn a_grant_that_was_lost_comes_with_the_welcome() {
    let mut controller = Controller::start().await;
    let node = Node::start(&controller).await;
    let agent = controller.publish_owned(&shell("echo '{}'", ""));
    let assignment = controller.assignment(&agent, "{}");
    let mut session = controller.welcomed(vec![assignment.clone()]).await;
    assert_eq!(session.end().await.0, assignment.token);
    node.shutdown().await;
}

#[tokio::test]
async fn a_transfer_that_breaks_is_tried_again() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell("cat", ""));
    let assignment = controller.assignment(&agent, &format!("{{\"text\": \"{}\"}}", "x".repeat(100_000)));
    controller.broken.store(3, Ordering::SeqCst);
    assert!(session.run(&assignment).await.output(&controller).len() > 100_000);
    node.shutdown().await;
}

#[tokio::test]
async fn a_start_that_must_be_committed_is_waited_for() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let mark = node.dir.path().join("mark");
    let agent = controller.publish_owned(&shell(&format!("echo x >> {}; echo '{{}}'", mark.display()), ""));
    let mut assignment = controller.assignment(&agent, "{}");
    assignment.needs_start = true;
    session.grant(&assignment).await;
    let (number, report) = session.report().await;
    assert_eq!(report.kind, ReportKind::Started);
    session.say(ToWorker::ReportAck { number, result: ReportResult::Fenced }).await;
    let mut assignment = controller.assignment(&agent, "{}");
    assignment.needs_start = true;
    session.grant(&assignment).await;
    session.end().await;
    assert_eq!(std::fs::read_to_string(&mark).expect("it ran"), "x\n", "the fenced one never ran");
    node.shutdown().await;
}

#[tokio::test]
async fn a_start_is_told_once_everything_is_here_and_not_of_what_never_came() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell("cat", ""));
    let mut assignment = controller.assignment(&agent, &format!("{{\"text\": \"{}\"}}", "x".repeat(100_000)));
    assignment.needs_start = true;
    // The input is missing, so the attempt fails before its start.
    let artifacts = controller.replace_artifacts(BTreeMap::new());
    session.grant(&assignment).await;
    let (number, report) = session.report().await;
    assert!(matches!(report.kind, ReportKind::Failed { .. }), "{:?}", report.kind);
    session.say(ToWorker::ReportAck { number, result: ReportResult::Applied }).await;
    controller.replace_artifacts(artifacts);
    let mut again = assignment.clone();
    again.token = assignment.token.next();
    session.grant(&again).await;
    let (number, report) = session.report().await;
    assert_eq!(report.kind, ReportKind::Started);
    // The input is kept until the start is committed, so nothing is fetched again.
    controller.replace_artifacts(BTreeMap::new());
    session.say(ToWorker::ReportAck { number, result: ReportResult::Applied }).await;
    assert!(matches!(session.end().await.1, End::Completed { .. }));
    node.shutdown().await;
}

#[tokio::test]
async fn an_input_that_only_another_controller_has_gives_the_lease_back() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell("cat", ""));
    let mut artifacts = controller.replace_artifacts(BTreeMap::new());
    controller.replace_artifacts(artifacts.clone());
    // The input exists only at another controller, like one that the previous leader stored for its welcome.
    let assignment = controller.assignment(&agent, &format!("{{\"text\": \"{}\"}}", "x".repeat(100_000)));
    artifacts = controller.replace_artifacts(artifacts);
    assert!(matches!(session.run(&assignment).await, End::NotHeld));
    controller.replace_artifacts(artifacts);
    let again = controller.assignment(&agent, &format!("{{\"text\": \"{}\"}}", "x".repeat(100_000)));
    assert!(session.run(&again).await.output(&controller).len() > 100_000);
    node.shutdown().await;
}

#[tokio::test]
async fn the_worker_follows_the_leader() {
    let mut follower = Controller::start().await;
    let mut leader = Controller::start().await;
    let node = Node::start(&follower).await;
    let mut session = follower.session().await;
    session.hello().await;
    session.say(ToWorker::NotLeader { leader_address: Some(leader.address.to_string()) }).await;
    leader.welcomed(Vec::new()).await;
    node.shutdown().await;
}

#[tokio::test]
async fn without_acknowledged_renewals_the_attempt_dies_before_its_time() {
    let mut controller = Controller::start().await;
    let node = Node::start(&controller).await;
    let mut session = controller.session().await;
    session.hello().await;
    let agent = controller.publish_owned(&shell("echo up >&2; exec sleep 86311", ""));
    let assignment = controller.assignment(&agent, "{}");
    session.renewals = false;
    // Two thirds of this time must be enough to start a process on a busy machine.
    let ttl = Duration::from_secs(18);
    session.welcome_for(ttl, vec![assignment.clone()]).await;
    until("the agent runs", ttl * 2 / 3, || processes("86311") == 1).await;
    until("the agent is dead", ttl, || processes("86311") == 0).await;
    // The worker has left the silent leader and asked again once with the short timeout. It then reconnects by itself
    // and reports that it has given the lease up.
    drop(controller.session().await);
    let mut session = controller.welcomed(vec![assignment]).await;
    assert!(matches!(session.end().await.1, End::NotHeld));
    node.shutdown().await;
}

#[tokio::test]
async fn a_drain_lets_the_attempt_end() {
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&shell("echo up >&2; sleep 0.5; echo '{}'", ""));
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    while !matches!(session.next().await, ToLeader::StreamEvents { .. }) {}
    let ((_, end), ()) = tokio::join!(session.end(), node.shutdown());
    assert_eq!(end.output(&controller), "{}");
}

#[tokio::test]
async fn what_a_drain_cannot_wait_for_is_given_back() {
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| {
        options.drain_timeout = Duration::from_millis(100);
        options.stop_grace = Duration::from_millis(100);
    })
    .await;
    let mut session = controller.welcomed(Vec::new()).await;
    let agent = controller.publish_owned(&shell("exec sleep 86312", ""));
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    until("the agent runs", PATIENCE, || processes("86312") == 1).await;
    let ((_, end), ()) = tokio::join!(session.end(), node.shutdown());
    assert!(matches!(end, End::NotHeld), "{end:?}");
    assert_eq!(processes("86312"), 0);
}

#[tokio::test]
async fn what_runs_at_the_deadline_of_a_drain_is_given_back_and_the_worker_goes_on() {
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| options.stop_grace = Duration::from_millis(100)).await;
    let mut session = controller.welcomed(Vec::new()).await;
    let agent = controller.publish_owned(&shell("exec sleep 86313", ""));
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    until("the agent runs", PATIENCE, || processes("86313") == 1).await;
    let by = HandBack { deadline: Some(HandBackDeadline { until: ClusterTime(1), within: Micros::from_millis(50) }) };
    session.say(ToWorker::HandBack(Some(by))).await;
    let (_, end) = session.end().await;
    assert!(matches!(end, End::NotHeld), "{end:?}");
    assert_eq!(processes("86313"), 0);
    // The drain ended while the worker was disconnected, so the leases of its welcome are not given back.
    drop(session);
    let agent = controller.publish_owned(&shell("sleep 0.2; echo '{}'", ""));
    let assignment = controller.assignment(&agent, "{}");
    let mut session = controller.welcomed(vec![assignment]).await;
    assert_eq!(session.end().await.1.output(&controller), "{}");
    node.shutdown().await;
}

/// The number of `sleep` processes with this argument on the machine. Each test uses its own number.
pub(crate) fn processes(argument: &str) -> usize {
    let wanted = format!("sleep\0{argument}\0");
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter(|pid| std::fs::read(pid.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())).count()
}
