//! Three voters with registered agents, with which most cluster tests start.

use std::path::{Path, PathBuf};
use std::process::Command;

use atlas_package::pack;

use crate::api::Api;
use crate::members::{Member, token, voters};
use crate::process::Process;
use crate::program::program;
use crate::{Agent, write_agent};

/// The names of the three controllers.
pub(crate) const NAMES: [&str; 3] = ["c1", "c2", "c3"];

/// Starts three voters with these agents, with their data under `folder`.
pub(crate) async fn trio(folder: &Path, agents: &[&Agent<'_>]) -> [Member; 3] {
    let first = Member::first(folder, NAMES[0]);
    for agent in agents {
        register(&first, folder, agent).await;
    }
    let second = Member::joining(folder, NAMES[1], &first, &token(&first).await);
    let third = Member::joining(folder, NAMES[2], &first, &token(&first).await);
    voters(&third, &NAMES).await;
    [first, second, third]
}

/// Writes an agent under `folder` and registers it.
pub(crate) async fn register(member: &Member, folder: &Path, agent: &Agent<'_>) {
    write_agent(folder, agent);
    let package = pack(&folder.join(agent.name)).expect("a package").bytes;
    Api::new(&member.http.to_string()).register(package).await;
}

/// Starts a worker with the addresses of these controllers and its data under `folder`.
pub(crate) fn worker(folder: &Path, name: &str, members: &[&Member]) -> Process {
    worker_of(program("atlas-worker"), folder, name, members)
}

/// Like [`worker`], with another program.
pub(crate) fn worker_of(program: PathBuf, folder: &Path, name: &str, members: &[&Member]) -> Process {
    Process::start(&mut worker_command(program, folder, name, members))
}

/// The command that starts such a worker; the caller can add arguments.
pub(crate) fn worker_command(program: PathBuf, folder: &Path, name: &str, members: &[&Member]) -> Command {
    let doors: Vec<String> = members.iter().map(|member| member.workers.to_string()).collect();
    let mut command = Command::new(program);
    command.args(["--node", name, "--controller", &doors.join(","), "--places", "8"]);
    command.arg("--data-dir").arg(folder.join(name));
    command
}

/// Waits until all running members agree on the leader and on three voters; returns the index of the leader.
pub(crate) async fn leader(members: &[Member; 3]) -> usize {
    let mut name = String::new();
    for member in members.iter().filter(|member| member.runs()) {
        name = voters(member, &NAMES).await;
    }
    members.iter().position(|member| member.name == name).expect("one of the three")
}
