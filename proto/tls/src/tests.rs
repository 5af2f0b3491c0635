//! Who gets a connection.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Connection, Env, Listener, Net};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::*;

mod authorities;

const HOUR: Duration = Duration::from_secs(3_600);

fn now() -> i64 {
    Env::system().clock.wall().0 / 1_000_000
}

fn controller(authority: Authority, member: Option<u64>, life: Duration) -> Credentials {
    let names = Names { hosts: vec!["localhost".to_owned(), "127.0.0.1".to_owned()], life };
    let clock = Env::system().clock;
    let credentials = Credentials::of_controller(Arc::new(authority), names, clock).expect("credentials");
    if let Some(member) = member {
        credentials.become_member(member).expect("a member");
    }
    credentials
}

fn node(authority: &Authority, name: &str, dir: &Path) -> Credentials {
    let files = Enrolled::in_dir(dir);
    let certificate =
        authority.issue_to_node(name, &files.begin("atn_x").expect("a key"), now(), HOUR).expect("issued");
    let issued = Issued { certificate: &certificate, trusted: &authority.pem(), life: HOUR };
    assert!(!files.is_by("atn_x"), "it has no certificate yet");
    files.store(&issued, now()).expect("stored");
    assert!(files.is_by("atn_x\n") && !files.is_by("atn_y"));
    Credentials::of_node(&files, Env::system().clock).expect("credentials")
}

/// Whether a client gets a byte through, and who it is for the server.
async fn reached(listener: &dyn Listener, client: impl Net) -> Option<Option<String>> {
    let address = listener.local_addr().expect("an address").to_string();
    let served = async {
        let mut served = tokio::time::timeout(Duration::from_millis(700), listener.accept()).await.ok()?.ok()?;
        served.write_all(b"x").await.ok()?;
        served.flush().await.ok()?;
        assert!(served.is_encrypted());
        Some((served.proof().map(|proof| proof.name.clone()), served))
    };
    let asked = async {
        let mut connection = client.connect(&address).await.ok()?;
        let mut byte = [0];
        let read = tokio::time::timeout(Duration::from_millis(700), connection.read_exact(&mut byte)).await;
        read.ok()?.ok()?;
        Some(connection)
    };
    let (served, asked): (_, Option<Connection>) = tokio::join!(served, asked);
    served.zip(asked).map(|((name, _), _)| name)
}

struct Scene {
    watch: Watch,
    refused: mpsc::UnboundedReceiver<Refused>,
    env: Env,
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        Authority::new(now()).expect("an authority").write(dir.path()).expect("written");
        let (tell, refused) = mpsc::unbounded_channel();
        let watch = Watch::new(move |who| tell.send(who).expect("the scene lives"));
        Self { watch, refused, env: Env::system(), dir }
    }

    fn authority(&self) -> Authority {
        Authority::read(self.dir.path()).expect("an authority")
    }

    async fn listen(&self, clients: Clients) -> Box<dyn Listener> {
        let inner = self.env.net.listen("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
        let credentials = controller(self.authority(), Some(1), HOUR);
        listener(inner, &credentials, clients, &self.watch, &self.env).expect("a listener")
    }

    /// The next clients that were refused because of their certificates, sorted.
    async fn refused(&mut self, count: usize) -> Vec<String> {
        let mut refused = Vec::new();
        for _ in 0..count {
            let next = tokio::time::timeout(Duration::from_secs(60), self.refused.recv()).await;
            let Refused { claimed, proven } = next.expect("in time").expect("the watch lives");
            refused.push(format!("{} {proven}", claimed.map(|subject| subject.uri()).unwrap_or_default()));
        }
        refused.sort();
        refused
    }

    fn dial(&self, credentials: &Credentials) -> TlsNet {
        TlsNet::new(self.env.net.clone(), credentials).expect("a network")
    }
}

#[tokio::test]
async fn the_peer_port_serves_controllers_of_the_cluster_alone() {
    let mut scene = Scene::new();
    let peers = scene.listen(Clients::Controllers).await;
    let own = controller(scene.authority(), Some(2), HOUR);
    let name = Some(Some("spiffe://atlas/controller/2".to_owned()));
    assert_eq!(reached(&*peers, scene.dial(&own)).await, name);
    let worker = node(&scene.authority(), "a", &scene.dir.path().join("a"));
    assert_eq!(reached(&*peers, scene.dial(&worker)).await, None, "a worker");
    let plain = Env::system().net;
    struct Plain(Arc<dyn Net>);
    impl Net for Plain {
        fn listen(
            &self,
            addr: std::net::SocketAddr,
        ) -> std::pin::Pin<Box<dyn Future<Output = std::io::Result<Box<dyn Listener>>> + Send + '_>> {
            self.0.listen(addr)
        }

        fn connect<'a>(
            &'a self,
            authority: &'a str,
        ) -> std::pin::Pin<Box<dyn Future<Output = std::io::Result<Connection>> + Send + 'a>> {
            self.0.connect(authority)
        }
    }
    assert_eq!(reached(&*peers, Plain(plain.clone())).await, None, "a plain client");
    let stranger = TlsNet::pinned(plain, scene.authority().fingerprint()).expect("a network");
    assert_eq!(reached(&*peers, stranger).await, None, "without a certificate");
    let other = controller(Authority::new(now()).expect("another"), Some(2), HOUR);
    assert_eq!(reached(&*peers, scene.dial(&other)).await, None, "of another cluster");
    let trust = verify::Trust::Pinned(scene.authority().fingerprint());
    let bold = TlsNet::with(scene.env.net.clone(), trust, Some(&other)).expect("a network");
    assert_eq!(reached(&*peers, bold).await, None, "of another cluster, and knows whom it calls");
    assert_eq!(reached(&*peers, scene.dial(&own)).await, name, "still serves");
    // Not the plain client: what speaks no TLS claims nothing.
    let refused = [" false", "spiffe://atlas/controller/2 false", "spiffe://atlas/node/a true"];
    assert_eq!(scene.refused(3).await, refused);
    assert!(scene.refused.try_recv().is_err(), "nobody else");
}

#[tokio::test]
async fn a_node_is_who_its_certificate_says_and_no_server() {
    let scene = Scene::new();
    let workers = scene.listen(Clients::Nodes).await;
    let worker = node(&scene.authority(), "gpu 1", &scene.dir.path().join("a"));
    let name = Some("spiffe://atlas/node/gpu%201".to_owned());
    assert_eq!(reached(&*workers, scene.dial(&worker)).await, Some(name));
    let pin = |fingerprint| TlsNet::pinned(scene.env.net.clone(), fingerprint).expect("a network");
    assert_eq!(reached(&*workers, pin(scene.authority().fingerprint())).await, Some(None), "may join");
    assert_eq!(reached(&*workers, pin([0; 32])).await, None, "another cluster than the token says");
    let inner = scene.env.net.listen("127.0.0.1:0".parse().expect("an address")).await.expect("a free port");
    let fake = listener(inner, &worker, Clients::Nodes, &scene.watch, &scene.env).expect("a listener");
    let own = controller(scene.authority(), Some(2), HOUR);
    assert_eq!(reached(&*fake, scene.dial(&own)).await, None, "a worker cannot stand for a controller");
}

#[tokio::test]
async fn certificates_are_renewed_and_old_ones_refused() {
    let scene = Scene::new();
    let short = controller(scene.authority(), Some(2), Duration::from_secs(3));
    let before = short.due_in();
    assert!(before <= Duration::from_secs(2), "{before:?}");
    scene.env.clock.sleep(Duration::from_millis(3_100)).await;
    let peers = scene.listen(Clients::Controllers).await;
    assert!(reached(&*peers, scene.dial(&short)).await.is_some(), "a controller renews its own");
    let files = Enrolled::in_dir(&scene.dir.path().join("n"));
    let key = files.begin("atn_x").expect("a key");
    assert_eq!(files.begin("atn_x").expect("a key"), key, "a repeat has the same key");
    let ended = scene.authority().issue_to_node("n", &key, now() - 60, Duration::from_secs(50)).expect("issued");
    let issued = Issued { certificate: &ended, trusted: &scene.authority().pem(), life: Duration::ZERO };
    files.store(&issued, now()).expect("stored");
    let old = Credentials::of_node(&files, scene.env.clock.clone()).expect("credentials");
    let workers = scene.listen(Clients::Nodes).await;
    assert_eq!(reached(&*workers, scene.dial(&old)).await, None, "it ended");
    let next = scene.authority().issue_to_node("n", &files.key().expect("the key"), now(), HOUR).expect("issued");
    let issued = Issued { certificate: &next, trusted: &scene.authority().pem(), life: HOUR };
    files.store(&issued, now()).expect("stored");
    let net = scene.dial(&old);
    old.reload(&files).expect("reloaded");
    assert!(reached(&*workers, net).await.is_some(), "the next one counts without a restart");
}

#[test]
fn files_are_checked() {
    let scene = Scene::new();
    let dir = scene.dir.path();
    let mode = |name: &str| fs::metadata(dir.join(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode(AUTHORITY), mode(AUTHORITY_KEY)), (0o644, 0o600));
    assert!(matches!(scene.authority().write(dir), Err(TlsError::File { .. })), "nothing is overwritten");
    let other = tempfile::tempdir().expect("a folder");
    Authority::new(now()).expect("an authority").write(other.path()).expect("written");
    fs::copy(dir.join(AUTHORITY), other.path().join(AUTHORITY)).expect("copied");
    assert!(matches!(Authority::read(other.path()), Err(TlsError::OtherKey { .. })));
    fs::write(other.path().join(AUTHORITY), "nothing").expect("written");
    assert!(matches!(Authority::read(other.path()), Err(TlsError::Content { .. })));
    fs::set_permissions(dir.join(AUTHORITY_KEY), fs::Permissions::from_mode(0o644)).expect("a mode");
    assert!(matches!(Authority::read(dir), Err(TlsError::File { .. })), "everybody may read the key");
    assert!(NodeKey::read(&[4; KEY_BYTES]).is_some());
    assert!(NodeKey::read(&[0; KEY_BYTES]).is_none() && NodeKey::read(&[4; 64]).is_none());
}
