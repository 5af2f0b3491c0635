//! A PgBouncer before a server, as many installations have one: it gives each transaction whichever connection is free.

use std::fs;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, chown, geteuid};
use tempfile::TempDir;

use crate::{Postgres, USER, free_port, unprivileged};

/// Looks for its port, each after a pause of [`PAUSE`].
const LOOKS_MAX: u32 = 600;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A running PgBouncer in the mode `transaction`. It is stopped when this is dropped.
#[derive(Debug)]
pub struct Bouncer {
    child: Child,
    port: u16,
    _dir: TempDir,
}

impl Bouncer {
    /// Starts one with at most `connections` to the server; none if it is not installed, which is reported.
    pub fn start(postgres: &Postgres, connections: u32) -> Option<Self> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
        let Some(program) = folders.map(|folder| folder.join("pgbouncer")).find(|path| path.is_file()) else {
            atlas_notice::skip("PgBouncer is not installed (Debian: apt-get install pgbouncer)");
            return None;
        };
        let dir = tempfile::Builder::new().prefix("atlas-pgbouncer").tempdir().expect("a temporary folder");
        let port = free_port();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={USER}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = {connections}\n",
            postgres.port()
        );
        let file = dir.path().join("pgbouncer.ini");
        fs::write(&file, settings).expect("written");
        let mut command = Command::new(program);
        command.arg("--quiet").arg(&file).current_dir(dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // It refuses to run as root.
        if let Some((uid, gid)) = geteuid().is_root().then(unprivileged).flatten() {
            for path in [dir.path(), &file] {
                chown(path, Some(uid.into()), Some(gid.into())).expect("the file changes its owner");
            }
            command.uid(uid).gid(gid);
        }
        let mut bouncer = Self { child: command.spawn().expect("it starts"), port, _dir: dir };
        for _ in 0..LOOKS_MAX {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(bouncer);
            }
            assert!(bouncer.child.try_wait().expect("a state").is_none(), "PgBouncer has ended");
            std::thread::sleep(PAUSE);
        }
        panic!("PgBouncer does not listen");
    }

    /// The address of the administrator's database behind it.
    pub fn url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}
