//! What goes out with a lease, and to whom.

use std::time::Duration;

use atlas_service::{Caller, Consistency, NewSecret, ObjectChange};
use atlas_types::{Assignment, Attempt, Door, Expect, FencingToken, HeldLease, JobId, Level, SecretSource, SecretText};
use atlas_wire::proto::worker::v1::SessionResponse;
use atlas_wire::session::{Hello, ToLeader, ToWorker};
use tokio_stream::StreamExt as _;

use super::super::hub::Stored;
use super::super::outbox;
use super::fake::{Cluster, agent_with_secrets, completed, hello, identity, program, report, soon};

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
            "E2104: node \"n1\" is not connected over TLS or loopback, so secrets and credentials are not sent to it",
        ),
        (
            Level(5),
            true,
            "E2104: the worker of node \"n1\" is too old for secrets, credentials and bounds of policies; upgrade it",
        ),
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

/// The value of a secret of a lease, or why there is none.
fn secret(lease: &Assignment, name: &str) -> String {
    match (lease.attachments.secret(name).map(|secret| &secret.source), &lease.lacks) {
        (Some(SecretSource::Value(value)), None) => value.expose().to_owned(),
        (_, Some(why)) => why.to_string(),
        _ => "nothing".to_owned(),
    }
}

#[tokio::test]
async fn a_secret_goes_out_sealed_in_the_log_and_open_in_the_lease() {
    use std::os::unix::fs::PermissionsExt as _;
    let keys = tempfile::tempdir().expect("a directory");
    let path = keys.path().join("key");
    std::fs::write(&path, format!("{}=\n", "A".repeat(43))).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("permissions");
    let cluster = Cluster::start_with(|options| options.secrets_key = Some(path)).await;
    cluster.does(agent_with_secrets("reader", &["api-key", "other"])).await;
    let service = cluster.controller.service();
    let caller = Caller::anonymous(Door::Http);
    let new = |value: &str, rotate| NewSecret { name: "api-key".to_owned(), value: SecretText::new(value), rotate };
    assert!(service.set_secret(&caller, &new("c4n4ry-0", true)).await.is_err(), "there is nothing to rotate");
    let shown = service.set_secret(&caller, &new("c4n4ry-1", false)).await.expect("stored").value;
    assert_eq!(shown.spec["versions"][0]["version"], 1);
    assert!(shown.spec["versions"][0].get("sealed").is_none(), "{shown:?}");

    let mut worker = cluster.worker("n1", 1).await;
    worker.welcome().await;
    cluster.submit(7, "reader").await;
    let lease = worker.grant().await;
    assert_eq!(secret(&lease, "api-key"), "c4n4ry-1");
    assert_eq!(secret(&lease, "other"), "nothing", "the worker looks for it");
    worker.say(report(1, 7, 1, completed("1"))).await;
    assert_eq!(worker.hears().await, "report 1 Applied");

    service.set_secret(&caller, &new("c4n4ry-2", true)).await.expect("rotated");
    cluster.submit(8, "reader").await;
    assert_eq!(secret(&worker.grant().await, "api-key"), "c4n4ry-2");

    let change =
        ObjectChange { kind: "secret".to_owned(), name: "api-key".to_owned(), expect: Expect::Any, dry_run: false };
    let spec = serde_json::json!({"readers": ["another"], "versions": []});
    let shown = service.put_object(&caller, &change, Default::default(), &spec).await.expect("changed").value;
    assert_eq!(shown.spec["versions"].as_array().map(Vec::len), Some(2), "only the cluster writes versions");
    cluster.submit(9, "reader").await;
    let refused = secret(&worker.grant().await, "api-key");
    assert_eq!(refused, "Secret resolution failed: agent \"reader\" is not a reader of secret \"api-key\"");
    let read = service.object(&caller, "secret", "api-key", Consistency::Linearizable).await.expect("there").value;
    let read = serde_json::to_string(&read).expect("JSON");
    assert!(!read.contains("nonce"), "{read}");
}
