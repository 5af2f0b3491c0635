//! Tests that results of jobs that must not run twice survive a killed worker.

use std::path::Path;
use std::process::Child;

use atlas_types::{Assignment, Report, ReportKind, ReportResult};
use atlas_wire::session::ToWorker;

use crate::support::{Controller, NO_ENGINE, PATIENCE, Session, in_time, program, shell, until};

/// A worker that is killed with SIGKILL when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().expect("kill -9");
        self.0.wait().expect("it was a child");
    }
}

fn worker(controller: &Controller, dir: &Path) -> Killed {
    Killed(program(controller, dir, NO_ENGINE).spawn().expect("the worker starts"))
}

/// Runs a job that must not run twice until its report, which is not answered.
async fn ran(session: &mut Session, once: &Assignment) -> Report {
    session.grant(once).await;
    let (number, started) = in_time("a report", session.report()).await;
    assert_eq!(started.kind, ReportKind::Started);
    session.say(ToWorker::ReportAck { number, result: ReportResult::Applied }).await;
    in_time("a report", session.report()).await.1
}

#[tokio::test]
async fn a_result_that_a_killed_worker_left_unanswered_is_reported_by_the_next_one() {
    let mut controller = Controller::start().await;
    let dir = tempfile::tempdir().expect("temporary directory");
    let agent = controller.publish_owned(&shell("echo '{\"sent\": 1}'", ""));
    let once = Assignment { needs_start: true, ..controller.assignment(&agent, "{}") };
    let other = controller.assignment(&agent, "{}");

    let first = worker(&controller, dir.path());
    let mut session = controller.session().await;
    let boot = session.hello().await.boot_id;
    session.welcome(Vec::new()).await;
    let result = ran(&mut session, &once).await;
    drop(first);

    let second = worker(&controller, dir.path());
    let mut session = controller.session().await;
    assert_eq!(session.hello().await.boot_id, boot, "only the killed process holds the lease");
    // The leader still has both leases, but nothing may run under either of them.
    session.welcome(vec![once.clone(), other]).await;
    let (number, again) = in_time("a report", session.report()).await;
    assert_eq!(again, result);
    session.say(ToWorker::ReportAck { number, result: ReportResult::Applied }).await;
    let mut session = controller.session().await;
    let next = session.hello().await;
    assert_ne!(next.boot_id, boot, "what else the killed process held is lost");
    assert_eq!(next.leases, []);
    session.welcome(Vec::new()).await;
    let fresh = controller.assignment(&agent, "{}");
    assert_eq!(session.run(&fresh).await.output(&controller), "{\"sent\": 1}");
    drop(second);

    let third = worker(&controller, dir.path());
    let mut session = controller.session().await;
    let after = session.hello().await.boot_id;
    assert!(after != boot && after != next.boot_id, "nothing is left to deliver");
    drop(third);
}

#[tokio::test]
async fn a_result_that_comes_too_late_is_laid_aside_for_people() {
    let mut controller = Controller::start().await;
    let dir = tempfile::tempdir().expect("temporary directory");
    let agent = controller.publish_owned(&shell("echo '{\"sent\": 1}'", ""));
    let once = Assignment { needs_start: true, ..controller.assignment(&agent, "{}") };
    let first = worker(&controller, dir.path());
    let mut session = controller.welcomed(Vec::new()).await;
    ran(&mut session, &once).await;
    drop(first);
    let second = worker(&controller, dir.path());
    let mut session = controller.welcomed(Vec::new()).await;
    let (number, _) = in_time("a report", session.report()).await;
    session.say(ToWorker::ReportAck { number, result: ReportResult::Fenced }).await;
    controller.session().await.hello().await;
    let results = std::fs::read_dir(dir.path().join("results")).expect("there").flatten().next().expect("a node's");
    let aside = results.path().join("not-taken").join(format!("{}.{}.json", once.job, once.token.0));
    until("it is laid aside", PATIENCE, || aside.exists()).await;
    drop(second);
    let text = std::fs::read_to_string(aside).expect("laid aside");
    let expected = format!(
        "{{\"job\":\"{}\",\"token\":{},\"outcome\":\"completed\",\"output\":{{\"sent\": 1}}}}\n",
        once.job, once.token.0
    );
    assert_eq!(text, expected);
}
