//! A door with TLS: whom it lets join, and for whom a worker may act.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, Net};
use atlas_raft::peer_channel;
use atlas_service::{AuditAsk, AuditDecision, AuditFilter};
use atlas_tls::{Authority, Credentials, Enrolled, GroupToken, Issued, NodeToken, TlsNet};
use atlas_types::Expect;
use atlas_wire::proto::peer::v1::member_service_client::MemberServiceClient;
use atlas_wire::proto::peer::v1::{JoinRequest, ReadyRequest};
use atlas_wire::proto::worker::v1::enrollment_service_client::EnrollmentServiceClient;
use atlas_wire::proto::worker::v1::worker_service_client::WorkerServiceClient;
use atlas_wire::proto::worker::v1::{EnrollRequest, NodeCertificate, RenewRequest, StorePayloadRequest};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::fake::{Cluster, Worker, completed, hello, report, soon};
use crate::{Auth, Options};

const LIFE: Duration = Duration::from_secs(600);
/// The file with the token of the group.
const GROUP: &str = "group.token";

fn group() -> GroupToken {
    GroupToken::new([5, 6, 7, 8])
}

struct Scene {
    cluster: Cluster,
    keys: tempfile::TempDir,
}

impl Scene {
    async fn start() -> Self {
        let keys = tempfile::tempdir().expect("a folder");
        Authority::new(now()).expect("an authority").write(keys.path()).expect("written");
        let dir = keys.path().to_owned();
        let cluster = Cluster::start_with(|options: &mut Options| {
            std::fs::write(dir.join(GROUP), group().text()).expect("written");
            std::fs::set_permissions(dir.join(GROUP), std::fs::Permissions::from_mode(0o440)).expect("a mode");
            options.tls_group_token_file = Some(dir.join(GROUP));
            options.tls_dir = Some(dir);
            options.tls_life = LIFE;
            // With an audit.
            options.auth = Auth::Tokens;
            options.peer = Some("127.0.0.1:0".parse().expect("an address"));
            // Renewals are answered within the test.
            options.session_ttl = Duration::from_secs(600);
        })
        .await;
        Self { cluster, keys }
    }

    fn authority(&self) -> Authority {
        Authority::read(self.keys.path()).expect("an authority")
    }

    /// A token that an administrator makes.
    async fn token(&self, node: &str, valid_for: Duration) -> NodeToken {
        let token = NodeToken::new(self.authority().fingerprint(), [1, 2, 3, rand()], node);
        let service = self.cluster.controller.service();
        let caller = self.cluster.controller.local_caller();
        soon(service.create_node_token(&caller, node, &token.hash(), valid_for)).await.expect("made");
        token
    }

    async fn channel(&self, net: impl Net) -> Channel {
        let env = Env { net: Arc::new(net), ..Env::system() };
        peer_channel(&env, &self.cluster.controller.grpc_addr().to_string()).expect("an address")
    }

    /// Exchanges a token for a certificate in `dir`.
    async fn enroll(&self, token: &NodeToken, dir: &Path) -> Result<Credentials, Status> {
        let files = Enrolled::in_dir(dir);
        let key = files.begin(&token.text()).expect("a key");
        let net = TlsNet::pinned(Env::system().net, self.authority().fingerprint()).expect("a network");
        let mut client = EnrollmentServiceClient::new(self.channel(net).await);
        let request = EnrollRequest { token: token.text(), public_key: key.bytes().to_vec().into() };
        let answer = soon(client.enroll(request)).await?.into_inner();
        store(&files, &answer.certificate.expect("a certificate"));
        Ok(Credentials::of_node(&files, Env::system().clock).expect("credentials"))
    }

    async fn revoke(&self, node: &str) {
        let change = atlas_service::ObjectChange {
            kind: "enrollment".to_owned(),
            name: node.to_owned(),
            expect: Expect::Any,
            dry_run: false,
        };
        let caller = self.cluster.controller.local_caller();
        soon(self.cluster.controller.service().delete_object(&caller, &change)).await.expect("revoked");
    }

    /// Who was turned away: proven name, port, operation, claim and code; repetitions once.
    async fn turned_away(&self) -> Vec<String> {
        let audit = self.cluster.controller.service().audit();
        soon(audit.settled()).await;
        let filter = AuditFilter { decision: Some(AuditDecision::Deny), ..AuditFilter::default() };
        let page = soon(audit.page(AuditAsk { after: 0, filter, limit: 100 })).await.expect("a page");
        let told = |line: &String| {
            let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let part = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
            ["principal", "door", "verb", "object", "code"].map(part).join(" ")
        };
        let mut told: Vec<String> = page.lines.iter().map(told).collect();
        told.dedup();
        told
    }

    async fn worker(&self, credentials: &Credentials) -> Result<Worker, Status> {
        let net = TlsNet::new(Env::system().net, credentials).expect("a network");
        Worker::open(WorkerServiceClient::new(self.channel(net).await)).await
    }
}

fn store(files: &Enrolled, certificate: &NodeCertificate) {
    let NodeCertificate { certificate, authorities, valid_for_seconds } = certificate;
    let life = Duration::from_secs(*valid_for_seconds);
    files.store(&Issued { certificate, trusted: authorities, life }, now()).expect("stored");
}

fn now() -> i64 {
    Env::system().clock.wall().0 / 1_000_000
}

fn rand() -> u64 {
    Env::system().entropy.u64()
}

fn code<T>(answer: Result<T, Status>) -> (Code, String) {
    let status = answer.err().expect("a refusal");
    (status.code(), status.message().to_owned())
}

#[tokio::test]
async fn a_node_joins_once_acts_for_itself_and_is_revoked() {
    let scene = Scene::start().await;
    let dir = |name: &str| scene.keys.path().join(name);
    let token = scene.token("n1", LIFE).await;
    let own = scene.enroll(&token, &dir("n1")).await.expect("joined");
    let again = scene.enroll(&token, &dir("n1")).await;
    assert!(again.is_ok(), "the answer was lost, and the node asks again with its key");
    let refused = (Code::PermissionDenied, "the join token is refused".to_owned());
    assert_eq!(code(scene.enroll(&token, &dir("thief")).await), refused, "a used token with another key");
    let late = scene.token("n2", Duration::ZERO).await;
    assert_eq!(code(scene.enroll(&late, &dir("late")).await), refused, "an expired token");
    let forged = NodeToken::new(token.authority, [9; 4], "n1");
    assert_eq!(code(scene.enroll(&forged, &dir("forged")).await), refused, "an unknown token");
    let other = NodeToken::new(token.authority, [9; 4], "../n1");
    assert_eq!(code(scene.enroll(&other, &dir("other")).await).0, Code::InvalidArgument, "no name of a node");

    // The node's own name, and another one.
    let mut worker = scene.worker(&own).await.expect("a stream");
    worker.say(hello("n1", 1)).await;
    assert!(worker.hears().await.starts_with("welcome"));
    let mut liar = scene.worker(&own).await.expect("a stream");
    liar.say(hello("n2", 1)).await;
    assert_eq!(liar.hears().await, "PermissionDenied: node \"n2\" may not connect with this certificate");

    // A certificate for a key that the cluster does not know, and none at all.
    let stolen = Enrolled::in_dir(&dir("stolen"));
    let key = stolen.begin("atn_x").expect("a key");
    let certificate = scene.authority().issue_to_node("n1", &key, now(), LIFE).expect("issued");
    let trusted = scene.authority().pem();
    stolen.store(&Issued { certificate: &certificate, trusted: &trusted, life: LIFE }, now()).expect("stored");
    let unknown = Credentials::of_node(&stolen, Env::system().clock).expect("credentials");
    assert_eq!(code(scene.worker(&unknown).await).0, Code::PermissionDenied, "another key than the cluster knows");
    let pinned = || TlsNet::pinned(Env::system().net, token.authority).expect("a network");
    let mut stranger = WorkerServiceClient::new(scene.channel(pinned()).await);
    let chunks = tokio_stream::iter([StorePayloadRequest { chunk: "x".into() }]);
    assert_eq!(code(soon(stranger.store_payload(chunks)).await).0, Code::Unauthenticated, "no certificate");
    assert!(soon(scene.cluster.controller.service().ready()).await);

    // Revoked: no further stream, and the open one ends at its renewal.
    scene.revoke("n1").await;
    assert_eq!(code(scene.worker(&own).await).0, Code::PermissionDenied, "revoked");
    worker.say(atlas_wire::session::ToLeader::Renew { number: 1 }).await;
    assert_eq!(worker.hears().await, "PermissionDenied: node \"n1\" may not connect with this certificate");
    assert_eq!(code(scene.enroll(&token, &dir("n1")).await), refused, "its token went with it");
    let expected = [
        "anonymous worker enrollNode node/n1 E2102",
        "anonymous worker enrollNode node/n2 E2102",
        "anonymous worker enrollNode node/n1 E2102",
        "node/n1 worker openSession node/n2 E2108",
        "node/n1 worker openSession node/n1 E2108",
        "anonymous worker storePayload - E2108",
        "node/n1 worker openSession node/n1 E2108",
        "node/n1 worker renewSession node/n1 E2108",
        "anonymous worker enrollNode node/n1 E2102",
    ];
    assert_eq!(scene.turned_away().await, expected);
}

#[tokio::test]
async fn nodes_of_a_group_join_under_free_names() {
    let scene = Scene::start().await;
    let dir = |name: &str| scene.keys.path().join(name);
    let of_group = |node: &str| group().of_node(node);
    let refused = (Code::PermissionDenied, "the join token is refused".to_owned());

    let own = scene.enroll(&of_group("cpu-1"), &dir("cpu-1")).await.expect("joined");
    let mut worker = scene.worker(&own).await.expect("a stream");
    worker.say(hello("cpu-1", 1)).await;
    assert!(worker.hears().await.starts_with("welcome"));
    assert!(scene.enroll(&of_group("cpu-1"), &dir("cpu-1")).await.is_ok(), "the same key, as often as it likes");
    assert_eq!(code(scene.enroll(&of_group("cpu-1"), &dir("thief")).await), refused, "the node is connected");
    scene.enroll(&of_group("cpu-2"), &dir("cpu-2")).await.expect("another name");
    scene.enroll(&of_group("cpu-2"), &dir("cpu-2-again")).await.expect("it is not connected, and lost its disk");

    // A node with a token of its own, and another group.
    let token = scene.token("n1", LIFE).await;
    scene.enroll(&token, &dir("n1")).await.expect("joined");
    assert_eq!(code(scene.enroll(&of_group("n1"), &dir("thief")).await), refused, "joined in another way");
    let other = GroupToken::new([5, 6, 7, 9]).of_node("cpu-3");
    assert_eq!(code(scene.enroll(&other, &dir("other")).await), refused, "another group");
    assert_eq!(
        code(scene.enroll(&of_group("../n1"), &dir("name")).await).0,
        Code::InvalidArgument,
        "no name of a node"
    );

    // An administrator takes a name out of the group.
    let token = scene.token("cpu-2", LIFE).await;
    assert_eq!(code(scene.enroll(&of_group("cpu-2"), &dir("thief")).await), refused, "it has a token of its own");
    scene.enroll(&token, &dir("cpu-2-own")).await.expect("joined");

    // An administrator refuses a node that is still connected.
    scene.revoke("cpu-1").await;
    let (code, text) = code(scene.enroll(&of_group("cpu-1"), &dir("thief")).await);
    assert!(code == Code::PermissionDenied && text.contains("\"cpu-1\""), "{code:?} {text}");
}

#[tokio::test]
async fn a_report_under_the_lease_of_another_node_is_recorded_and_one_under_an_old_lease_is_not() {
    let scene = Scene::start().await;
    let node = async |name: &str| {
        let token = scene.token(name, LIFE).await;
        let own = scene.enroll(&token, &scene.keys.path().join(name)).await.expect("joined");
        let mut worker = scene.worker(&own).await.expect("a stream");
        worker.say(hello(name, 1)).await;
        assert!(worker.hears().await.starts_with("welcome"));
        worker
    };
    let mut holder = node("n1").await;
    scene.cluster.submit(7, "plain").await;
    assert_eq!(holder.hears().await, "grant job 7 token 1 attempt 1 of plain 1.0.0 needs_start false");
    let mut other = node("n2").await;
    other.say(report(1, 7, 1, completed("1"))).await;
    assert_eq!(other.hears().await, "report 1 Fenced");
    holder.say(report(1, 7, 1, completed("1"))).await;
    assert_eq!(holder.hears().await, "report 1 Applied");
    holder.say(report(2, 7, 1, completed("1"))).await;
    assert_eq!(holder.hears().await, "report 2 Fenced");
    let expected = ["node/n2 worker reportJob job/job-0000000000000007 lease of node/n1 E2108"];
    assert_eq!(scene.turned_away().await, expected);
}

#[tokio::test]
async fn a_certificate_is_renewed_for_its_own_key() {
    let scene = Scene::start().await;
    let token = scene.token("n1", LIFE).await;
    let dir = scene.keys.path().join("n1");
    let own = scene.enroll(&token, &dir).await.expect("joined");
    let files = Enrolled::in_dir(&dir);
    let mut client =
        EnrollmentServiceClient::new(scene.channel(TlsNet::new(Env::system().net, &own).expect("a network")).await);
    let public_key = files.key().expect("a key").bytes().to_vec();
    let answer = soon(client.renew(RenewRequest { public_key: public_key.clone().into() })).await.expect("renewed");
    store(&files, &answer.into_inner().certificate.expect("a certificate"));
    own.reload(&files).expect("reloaded");
    let mut worker = scene.worker(&own).await.expect("a stream");
    worker.say(hello("n1", 1)).await;
    assert!(worker.hears().await.starts_with("welcome"));
    let mut another = public_key.clone();
    another[1] ^= 1;
    let refused = soon(client.renew(RenewRequest { public_key: another.into() })).await;
    assert_eq!(code(refused).0, Code::PermissionDenied, "another key");
    let refused = soon(client.renew(RenewRequest { public_key: public_key[1..].to_vec().into() })).await;
    assert_eq!(code(refused).0, Code::InvalidArgument, "no key");

    // A later token replaces the key once it is used, not before.
    let next = scene.token("n1", LIFE).await;
    assert!(scene.worker(&own).await.is_ok(), "the key counts until the token is used");
    scene.enroll(&next, &scene.keys.path().join("n1-again")).await.expect("joined");
    assert_eq!(code(scene.worker(&own).await).0, Code::PermissionDenied, "replaced");
}

#[tokio::test]
async fn the_peer_port_knows_members_and_lets_others_only_ask_to_join() {
    let scene = Scene::start().await;
    let peers = scene.cluster.controller.peer_addr().expect("a port").to_string();
    let ready = || ReadyRequest { cluster_id: vec![0; 16].into() };
    let dial = |net: Arc<dyn Net>| {
        MemberServiceClient::new(peer_channel(&Env { net, ..Env::system() }, &peers).expect("an address"))
    };
    // Nothing answers a client without a certificate, or a worker.
    let token = scene.token("n1", LIFE).await;
    let worker = scene.enroll(&token, &scene.keys.path().join("n1")).await.expect("joined");
    let tls = |credentials: &Credentials| TlsNet::new(Env::system().net, credentials).expect("a network");
    let pinned = TlsNet::pinned(Env::system().net, token.authority).expect("a network");
    for net in [Env::system().net, Arc::new(pinned) as Arc<dyn Net>, Arc::new(tls(&worker))] {
        let (code, text) = code(soon(dial(net).ready(ready())).await);
        assert!(!text.contains("cluster") && code != Code::FailedPrecondition, "it answered: {code:?} {text}");
    }
    // A controller that joins gets to the check of its token, and no further.
    let names = atlas_tls::Names { hosts: Vec::new(), life: LIFE };
    let joining = Credentials::of_controller(Arc::new(scene.authority()), names, Env::system().clock);
    let joining = joining.expect("credentials");
    let mut client = dial(Arc::new(tls(&joining)));
    let refused = code(soon(client.ready(ready())).await);
    assert_eq!(refused, (Code::PermissionDenied, "a controller that joins may only ask to join".to_owned()));
    let refused = code(soon(client.join(JoinRequest { request_id: "a".to_owned(), ..JoinRequest::default() })).await);
    assert_eq!(refused.0, Code::InvalidArgument, "{refused:?}");
    // A member is known by its number.
    joining.become_member(2).expect("a member");
    let mut client = dial(Arc::new(tls(&joining)));
    assert_eq!(code(soon(client.ready(ready())).await).0, Code::FailedPrecondition, "another cluster's id");
    let mut found = scene.turned_away().await;
    let expected = [
        "controller peer callController controller -",
        "anonymous peer joinController controller/ E2102",
        "controller/2 peer callController cluster/00000000000000000000000000000000 -",
    ];
    assert_eq!(found.split_off(found.len() - expected.len()), expected);
    // Handshakes fail beside each other.
    found.sort();
    found.dedup();
    assert_eq!(found, ["anonymous peer connect - -", "node/n1 peer connect node/n1 -"]);
}
