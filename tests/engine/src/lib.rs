//! A real container engine for one test: Docker or Podman in namespaces of its own, so that no rule, bridge or mount of it touches the
//! machine, and all that it starts ends with the test. There are no images but those that a test makes. Where an engine cannot be had,
//! [`Engine::start`] skips the test with a notice.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// Programs of administration are not in every user's PATH.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What every engine and its images need.
const PROGRAMS: [&str; 5] = ["busybox", "ip", "setpriv", "tar", "unshare"];

/// Where Podman keeps what all of its containers on a machine share. Tests have their own.
const SHARED_BY_PODMAN: [&str; 3] = ["/run", "/dev/shm", "/var/lib/cni"];

/// What the shell of [`SHELL`] needs.
const APPLETS: [&str; 12] = ["sh", "cat", "cp", "dd", "grep", "id", "ls", "mkdir", "mv", "sleep", "touch", "wc"];

/// An image with a shell and some programs, which every engine has.
pub const SHELL: &str = "shell:1";

/// How often a start is looked at, and the pause before each look.
const LOOKS: u32 = 300;
const LOOK: Duration = Duration::from_millis(200);

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Docker,
    /// It has no daemon: each call of its client does the work, within the namespaces of the test.
    Podman,
}

impl Kind {
    /// What it needs beyond the programs that all need.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Docker => &["containerd", "docker", "dockerd", "runc"],
            Self::Podman => &["conmon", "mount", "nsenter", "podman", "runc"],
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Docker => "docker.io",
            Self::Podman => "podman",
        }
    }
}

/// A running engine. It is killed when this is dropped, with all its containers.
#[derive(Debug)]
pub struct Engine {
    dir: TempDir,
    daemon: Child,
}

impl Engine {
    /// Starts Docker, for tests to which the engine does not matter.
    pub fn start() -> Option<Self> {
        Self::start_of(Kind::Docker)
    }

    /// Starts an engine with the image [`SHELL`]; none if it cannot be had, which is reported. Blocks for some seconds.
    pub fn start_of(kind: Kind) -> Option<Self> {
        let lacks = |why: &str| atlas_notice::skip(format_args!("no container engine ({kind:?}): {why}"));
        if !nix::unistd::geteuid().is_root() {
            lacks("only root can start one");
            return None;
        }
        if let Some(missing) = PROGRAMS.iter().chain(kind.programs()).find(|name| find(name).is_none()) {
            let packages = format!("{} busybox-static", kind.package());
            lacks(&format!("\"{missing}\" is not installed (Debian: apt-get install {packages})"));
            return None;
        }
        let engine = Self::launch(kind);
        if !(0..LOOKS).any(|_| engine.answers()) {
            lacks(&format!("it did not start: {}", engine.last_words()));
            return None;
        }
        engine.make_shell();
        let tried = engine.client(&["run", "--rm", "--network", "none", SHELL, "sh", "-c", "exit 0"]);
        if !tried.status.success() {
            lacks(&format!("it starts no container: {}", String::from_utf8_lossy(&tried.stderr)));
            return None;
        }
        Some(engine)
    }

    fn launch(kind: Kind) -> Self {
        let dir = tempfile::Builder::new().prefix("atlas-engine").tempdir().expect("a temporary folder");
        let at = |name: &str| dir.path().join(name).display().to_string();
        let log = fs::File::create(at("log")).expect("the folder is writable");
        let [data, exec, pid, socket] = ["data", "exec", "pid", "socket"].map(at);
        let script = match kind {
            Kind::Docker => format!(
                "ip link set lo up && exec dockerd --data-root {data} --exec-root {exec} --pidfile {pid} --host unix://{socket} --bip 10.97.0.1/24"
            ),
            Kind::Podman => {
                let own: String = SHARED_BY_PODMAN
                    .map(|folder| format!("mkdir -p {folder} && mount -t tmpfs tmpfs {folder} && "))
                    .concat();
                // A shell that waits also takes the processes whose parents have ended.
                format!("{own}ip link set lo up && touch {pid} && while sleep 1; do :; done")
            }
        };
        let mut daemon = Command::new("setpriv");
        // The first process of a namespace takes all others with it.
        daemon.args(["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--mount-proc", "--fork"]);
        daemon.args(["--kill-child=KILL", "sh", "-c", &script]).env("PATH", PATH);
        daemon.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        let daemon = daemon.spawn().expect("it is installed");
        let program = dir.path().join("client");
        let client = match kind {
            Kind::Docker => format!("exec docker --host unix://{socket}"),
            Kind::Podman => {
                let own = format!("/proc/{}/ns", daemon.id());
                let enter = format!("nsenter --net={own}/net --mount={own}/mnt --pid={own}/pid_for_children");
                let places = format!("--root {data} --runroot {exec} --tmpdir {exec}/tmp");
                // Without systemd, and on any file system.
                format!(
                    "test -e {pid} && exec {enter} podman {places} --storage-driver vfs --cgroup-manager cgroupfs --events-backend file"
                )
            }
        };
        let client = format!("#!/bin/sh\n{client} \"$@\"\n");
        fs::write(&program, client).expect("the folder is writable");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its own file");
        Self { dir, daemon }
    }

    /// Waits a moment for an answer.
    fn answers(&self) -> bool {
        std::thread::sleep(LOOK);
        self.client(&["version"]).status.success()
    }

    fn make_shell(&self) {
        let root = self.dir.path().join("shell");
        for folder in ["bin", "tmp", "proc", "sys", "etc"] {
            fs::create_dir_all(root.join(folder)).expect("the folder is writable");
        }
        fs::copy(find("busybox").expect("it is installed"), root.join("bin/busybox")).expect("a copy");
        for applet in APPLETS {
            symlink("busybox", root.join("bin").join(applet)).expect("a link");
        }
        self.make_image(&root, SHELL);
    }

    /// Makes an image of a folder.
    pub fn make_image(&self, root: &Path, name: &str) {
        let archive = self.dir.path().join("image.tar").display().to_string();
        let made = Command::new("tar").arg("-C").arg(root).args(["-cf", &archive, "."]).status();
        assert!(made.expect("tar starts").success(), "an archive of {}", root.display());
        self.done(&["import", "--change", "ENV PATH=/bin", &archive, name]);
        fs::remove_file(archive).expect("its own file");
    }

    /// A program that is its client, for those who start one themselves.
    pub fn program(&self) -> PathBuf {
        self.dir.path().join("client")
    }

    /// A folder that ends with the engine.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Runs its client.
    pub fn client(&self, arguments: &[&str]) -> Output {
        let mut client = Command::new(self.program());
        client.args(arguments).env("PATH", PATH).env("DOCKER_BUILDKIT", "0");
        client.output().expect("the client starts")
    }

    /// Runs its client, which must succeed, and returns what it prints.
    pub fn done(&self, arguments: &[&str]) -> String {
        let output = self.client(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", arguments.join(" "));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// How many containers run.
    pub fn running(&self) -> usize {
        self.done(&["ps", "--quiet"]).lines().count()
    }

    /// How many containers there are, running or not.
    pub fn containers(&self) -> usize {
        self.done(&["ps", "--all", "--quiet"]).lines().count()
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        log.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(PATH).map(|folder| folder.join(program)).find(|path| path.exists())
}
