//! One host: a thread in separate namespaces, which starts all programs of the host.
//!
//! A child inherits the namespaces of the thread that starts it. The thread lives as long as the host, because its
//! programs are killed when the thread ends: when this process is killed, all its programs end too.

use std::fs::File;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::tap;
use crate::process::Process;

/// A closure for the host's thread.
type Order = Box<dyn FnOnce() + Send>;

/// A host.
#[derive(Debug)]
pub struct Host {
    name: String,
    address: Ipv4Addr,
    orders: mpsc::Sender<Order>,
}

/// The last number of a host's address.
pub(super) fn number(index: usize) -> u8 {
    u8::try_from(index + 1).expect("fewer than 255 hosts")
}

/// The hardware address of a host; the switch routes frames by its last byte.
fn hardware(index: usize) -> String {
    format!("02:00:00:00:00:{:02x}", number(index))
}

fn address(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number(index))
}

impl Host {
    /// Creates the `index`-th of `count` hosts in separate namespaces; returns it with the device that connects it to
    /// the switch.
    pub(super) fn isolated(name: &str, index: usize, count: usize) -> Result<(Self, File), String> {
        let host = Self::start(name, address(index));
        let device = host.run(move || isolate(index, count))?;
        Ok((host, device))
    }

    /// Creates a host on the machine's own network.
    pub(super) fn plain(name: &str, address: Ipv4Addr) -> Self {
        Self::start(name, address)
    }

    fn start(name: &str, address: Ipv4Addr) -> Self {
        let (orders, work) = mpsc::channel::<Order>();
        let serve = move || work.iter().for_each(|order| order());
        thread::Builder::new().name(format!("host-{name}")).spawn(serve).expect("a thread");
        Self { name: name.to_owned(), address, orders }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address, which never changes.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Runs a closure on this host; sockets and threads that it creates belong to the host.
    #[track_caller]
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, answered) = mpsc::channel();
        let order = move || drop(answer.send(work()));
        self.orders.send(Box::new(order)).expect("the host's thread runs");
        answered.recv().expect("the work did not panic")
    }

    /// Starts a program on this host; the program is killed when the host is dropped.
    pub fn spawn(&self, command: &Command) -> Process {
        let mut bound = bound_to_thread(command);
        self.run(move || Process::start(&mut bound))
    }
}

/// The same command, killed when the thread that starts it ends. `setpriv` executes the program in its own process, so
/// the process id stays the same.
fn bound_to_thread(command: &Command) -> Command {
    let has_setpriv = Path::new("/usr/bin/setpriv").is_file() || Path::new("/bin/setpriv").is_file();
    let mut bound = if has_setpriv {
        let mut bound = Command::new("setpriv");
        bound.args(["--pdeathsig", "KILL"]).arg(command.get_program());
        bound
    } else {
        Command::new(command.get_program())
    };
    bound.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bound.env(name, value),
            None => bound.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        bound.current_dir(folder);
    }
    bound
}

/// Moves this thread to new namespaces and creates a network device with an address.
fn isolate(index: usize, count: usize) -> Result<File, String> {
    let no = |what: &str| {
        let what = what.to_owned();
        move |error: nix::Error| format!("{what}: {error}")
    };
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(no("namespaces cannot be made"))?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(no("mounts cannot be made private"))?;
    let device = tap::open("eth0").map_err(|error| format!("no TAP device: {error}"))?;
    let mut orders = format!(
        "link set lo up\nlink set eth0 address {}\naddr add {}/24 dev eth0\nlink set eth0 up\n",
        hardware(index),
        address(index)
    );
    // The neighbour table is static: otherwise, a failed address resolution during a cut would block traffic for
    // seconds after the link is healed.
    for other in (0..count).filter(|&other| other != index) {
        orders += &format!("neigh add {} lladdr {} nud permanent dev eth0\n", address(other), hardware(other));
    }
    configure(&orders)?;
    Ok(device)
}

fn configure(orders: &str) -> Result<(), String> {
    let mut command = Command::new("ip");
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("the program \"ip\" does not start: {error}"))?;
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(orders.as_bytes()).map_err(|error| format!("\"ip\" takes no orders: {error}"))?;
    drop(stdin);
    let output = child.wait_with_output().map_err(|error| format!("\"ip\" does not end: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("\"ip\" refused: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
