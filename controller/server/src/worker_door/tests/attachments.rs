//! What goes out with a lease, and to whom.

use std::time::Duration;

use atlas_types::{Assignment, Attempt, FencingToken, HeldLease, JobId, Level, SecretText};
use atlas_wire::proto::worker::v1::SessionResponse;
use atlas_wire::session::{Hello, ToLeader, ToWorker};
use tokio_stream::StreamExt as _;

use super::super::hub::Stored;
use super::super::outbox;
use super::fake::{Cluster, completed, hello, identity, program, report, soon};

const BEARER: &str = "Bearer canary";

impl Cluster {
    fn hold_bearer(&self, job: u64) {
        let bearers = self.controller.service().bearers();
        bearers.hold(JobId(job), SecretText::new(BEARER), Duration::ZERO).expect("room");
    }
}

/// The bearer of a lease, or why it has none.
fn bearer(lease: &Assignment) -> String {
    match (lease.attachments.bearer(), &lease.lacks) {
        (Some(bearer), None) => bearer.expose().to_owned(),
        (None, Some(why)) => why.to_string(),
        (None, None) => "nothing".to_owned(),
        (Some(_), Some(_)) => "both".to_owned(),
    }
}

#[tokio::test]
async fn a_bearer_goes_out_with_each_new_lease_until_its_job_ends() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.welcome().await;
    cluster.hold_bearer(7);
    cluster.submit_with_bearer(7).await;
    assert_eq!(bearer(&worker.grant().await), BEARER);
    drop(worker);

    let mut worker = cluster.stranger().await;
    let ToLeader::Hello(hello) = hello("n1", 1) else { panic!("a hello") };
    let held = HeldLease { job: JobId(7), token: FencingToken(1), attempt: Attempt(1) };
    worker.say(ToLeader::Hello(Hello { leases: vec![held], ..hello.clone() })).await;
    assert_eq!(bearer(&worker.welcome().await.leases[0]), "nothing", "it has the lease already");
    drop(worker);

    let mut worker = cluster.stranger().await;
    worker.say(ToLeader::Hello(hello)).await;
    assert_eq!(bearer(&worker.welcome().await.leases[0]), BEARER, "the grant was lost on its way");
    worker.say(report(1, 7, 1, completed("1"))).await;
    assert_eq!(worker.hears().await, "report 1 Applied");
    assert!(cluster.controller.service().bearers().of(JobId(7)).is_none());
}

#[tokio::test]
async fn a_job_whose_bearer_is_lost_fails() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.welcome().await;
    cluster.submit_with_bearer(7).await;
    let lease = worker.grant().await;
    assert!(bearer(&lease).starts_with("E3015: credential_lost: "), "{:?}", lease.lacks);
}

#[tokio::test]
async fn a_bearer_is_not_sent_over_a_network_or_to_an_old_program() {
    let cluster = Cluster::start().await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.welcome().await;
    cluster.hold_bearer(7);
    cluster.submit_with_bearer(7).await;
    worker.grant().await;
    let door = cluster.door();
    for (level, private, expected) in [
        (Level::CURRENT, true, BEARER),
        (
            Level::CURRENT,
            false,
            "E2104: node \"n1\" is not connected over loopback, so secrets and credentials are not sent to it",
        ),
        (Level(5), true, "E2104: the worker of node \"n1\" is too old for secrets and credentials; upgrade it"),
    ] {
        let (out, outgoing) = outbox::outbox();
        let Ok(_seat) = door.hub.enter(identity(), program(level, private), &Stored::default(), out) else {
            panic!("refused")
        };
        door.hub.hand_over(None);
        let frames: Vec<_> = soon(outgoing.collect::<Vec<Result<SessionResponse, _>>>()).await;
        let frame = frames.into_iter().next().expect("a frame").expect("a welcome");
        let Ok(ToWorker::Welcome(welcome)) = ToWorker::try_from(frame) else { panic!("a welcome") };
        assert_eq!(bearer(&welcome.leases[0]), expected);
    }
}
