//! What a node of a group keeps, and whom it asks, when nobody answers.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use atlas_env::{Clock, Connection, Listener, Net};
use atlas_tls::{Authority, NodeKey};
use atlas_types::Timestamp;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

/// A clock that moves when somebody begins to sleep.
#[derive(Default)]
struct Jumping(AtomicI64);

impl Clock for Jumping {
    fn wall(&self) -> Timestamp {
        Timestamp(1_800_000_000_000_000 + self.0.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed).unsigned_abs())
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.fetch_add(i64::try_from(duration.as_micros()).expect("short"), Ordering::Relaxed);
        // Others get their turn.
        Env::system().clock.sleep(Duration::from_millis(5))
    }
}

/// A network without controllers.
#[derive(Default)]
struct Empty(AtomicU64);

impl Net for Empty {
    fn listen(&self, _: SocketAddr) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Listener>>> + Send + '_>> {
        Box::pin(std::future::ready(Err(ErrorKind::Unsupported.into())))
    }

    fn connect<'a>(&'a self, _: &'a str) -> Pin<Box<dyn Future<Output = io::Result<Connection>> + Send + 'a>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Err(ErrorKind::ConnectionRefused.into())))
    }
}

struct Scene {
    dir: tempfile::TempDir,
    net: Arc<Empty>,
    env: Env,
    options: Options,
}

impl Scene {
    /// A node of a group that joined, with a certificate for an hour.
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let net = Arc::new(Empty::default());
        let env = Env { net: net.clone(), clock: Arc::new(Jumping::default()), ..Env::system() };
        let at = |name: &str| dir.path().join(name);
        let controllers = vec!["localhost:7401".to_owned()];
        let mut options = Options::new("cpu-1".parse().expect("a name"), controllers, at("data"));
        options.group = Some(Group { token_file: at("group.token"), authority_file: at("ca.pem") });
        let scene = Self { dir, net, env, options };
        scene.put_token([1; 4]);
        let authority = Authority::new(scene.now()).expect("an authority");
        std::fs::write(scene.at("ca.pem"), authority.pem()).expect("written");
        let files = scene.files();
        let key = files.begin(&GroupToken::new([1; 4]).of_node("cpu-1").text()).expect("a key");
        let certificate = authority.issue_to_node("cpu-1", &key, scene.now(), HOUR).expect("issued");
        let issued = Issued { certificate: &certificate, trusted: &authority.pem(), life: HOUR };
        files.store(&issued, scene.now()).expect("stored");
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn now(&self) -> i64 {
        self.env.clock.wall().0 / 1_000_000
    }

    fn files(&self) -> Enrolled {
        Enrolled::in_dir(&self.at("data/tls"))
    }

    fn key(&self) -> NodeKey {
        self.files().key().expect("a key")
    }

    fn put_token(&self, random: [u64; 4]) {
        put_private(&self.at("group.token"), &GroupToken::new(random).text());
    }

    fn asked(&self) -> u64 {
        self.net.0.swap(0, Ordering::Relaxed)
    }
}

fn put_private(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
}

#[tokio::test]
async fn a_node_of_a_group_asks_each_time_and_keeps_a_certificate_that_is_valid() {
    let scene = Scene::new();
    join(&scene.options, &scene.env).await.expect("its certificate is valid");
    assert!(scene.asked() > 0, "the cluster may have been restored without it");
    assert!(scene.env.clock.monotonic() < Duration::from_secs(60), "the worker starts soon");
    assert!(Node::open(&scene.options, &scene.env).await.expect("opened").is_some());
    assert_eq!(scene.asked(), 0, "the program that runs agents may start without the others");
    scene.env.clock.sleep(HOUR).await;
    let error = join(&scene.options, &scene.env).await.expect_err("its certificate has ended");
    assert!(matches!(error, JoinError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_node_of_a_group_keeps_its_key_until_the_token_changes() {
    let scene = Scene::new();
    let key = scene.key();
    let next = Authority::new(scene.now()).expect("an authority").pem();
    let before = std::fs::read_to_string(scene.at("ca.pem")).expect("read");
    std::fs::write(scene.at("ca.pem"), next + &before).expect("written");
    join(&scene.options, &scene.env).await.expect("its certificate is valid");
    assert_eq!(scene.key(), key, "the cluster has another certificate, and the node is the same");
    scene.put_token([2; 4]);
    assert!(join(&scene.options, &scene.env).await.is_err(), "another group");
    assert_ne!(scene.key(), key);
    std::fs::write(scene.at("ca.pem"), "nothing").expect("written");
    assert!(matches!(join(&scene.options, &scene.env).await, Err(JoinError::Tls(_))), "no certificate");
}
