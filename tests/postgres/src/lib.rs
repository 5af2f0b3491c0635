//! A real PostgreSQL server for one test: on a free port of the loopback interface, with its data in a temporary folder.
//!
//! The server refuses to run as root. If the test does, the server runs as the user `postgres` or `nobody`. Where the programs of
//! PostgreSQL are missing, [`Postgres::start`] skips the test with a notice.

mod bouncer;

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, chown, geteuid};
use tempfile::TempDir;

pub use self::bouncer::Bouncer;

/// How often a start is tried. After a crash, processes of the old server can hold its memory for a moment.
const STARTS_MAX: u32 = 200;
/// The administrator.
const USER: &str = "atlas";

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    dir: TempDir,
    port: u16,
    /// Who runs it, if not the user of the test.
    user: Option<(u32, u32)>,
}

impl Postgres {
    /// Starts a server with durable commits; none if it cannot be had, which is reported.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            atlas_notice::skip("PostgreSQL is not installed (Debian: apt-get install postgresql)");
            return None;
        };
        let user = geteuid().is_root().then(unprivileged);
        let user = match user {
            Some(None) => {
                atlas_notice::skip("PostgreSQL does not run as root, and there is no user \"postgres\" or \"nobody\"");
                return None;
            }
            user => user.flatten(),
        };
        let dir = tempfile::Builder::new().prefix("atlas-pg").tempdir().expect("a temporary folder");
        if let Some((uid, gid)) = user {
            chown(dir.path(), Some(uid.into()), Some(gid.into())).expect("the folder changes its owner");
        }
        let server = Self { programs, dir, port: free_port(), user };
        let init =
            ["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync", "--pgdata"];
        let done = server.command("initdb").args(init).arg(server.data()).status().expect("initdb runs");
        assert!(done.success(), "initdb failed, as \"initdb --pgdata {}\"", server.data().display());
        server.launch();
        Some(server)
    }

    /// The address of the administrator's database.
    pub fn url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it like a power failure, with all its processes.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Stops all its processes without ending them, so that it accepts connections and answers nothing.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it continue.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Starts it again on the same port and the same data.
    pub fn launch(&self) {
        let options = format!("-p {} -c listen_addresses=127.0.0.1 -k {}", self.port, self.dir.path().display());
        for _ in 0..STARTS_MAX {
            let mut start = self.command("pg_ctl");
            start.args(["start", "--wait", "--silent", "--options", &options, "--pgdata"]).arg(self.data());
            start.arg("--log").arg(self.log());
            if start.status().expect("pg_ctl runs").success() {
                return;
            }
        }
        panic!("it does not start:\n{}", fs::read_to_string(self.log()).unwrap_or_default());
    }

    /// Runs SQL with the server's own client and returns what it prints: one line a row, columns separated by `|`.
    pub fn sql(&self, sql: &str) -> String {
        let output = self.try_sql(sql);
        output.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Like [`Self::sql`]. The error is what the client prints.
    pub fn try_sql(&self, sql: &str) -> Result<String, String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args([&self.url(), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        psql.args(["--set", "ON_ERROR_STOP=1", "--command", sql]);
        let output = psql.output().expect("psql runs");
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The file with everything that the server logged.
    pub fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// One of its programs, without output: the server would inherit a pipe and keep it open.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    fn signal(&self, signal: Signal) {
        for pid in self.processes() {
            // It may have ended meanwhile.
            let _ = kill(pid, signal);
        }
    }

    /// The server's processes: the first one and its children.
    fn processes(&self) -> Vec<Pid> {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let Some(first) = file.lines().next().and_then(|line| line.trim().parse().ok()) else { return Vec::new() };
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        std::iter::once(first).chain(children).map(Pid::from_raw).collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The folder with the programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut versions: Vec<_> =
        versions.filter_map(|entry| Some((number(&entry.path())?, entry.path().join("bin")))).collect();
    versions.sort();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let newest = versions.into_iter().rev().map(|(_, folder)| folder);
    let mut folders = newest.chain(std::env::split_paths(&paths));
    folders.find(|folder| ["initdb", "pg_ctl", "psql"].iter().all(|program| folder.join(program).is_file()))
}

fn unprivileged() -> Option<(u32, u32)> {
    let user = ["postgres", "nobody"].into_iter().find_map(|name| User::from_name(name).ok().flatten())?;
    Some((user.uid.as_raw(), user.gid.as_raw()))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.expect("a free port").port()
}
