//! Tests of confined agents: a hostile one against each kind of permissions, as root and as an ordinary user, and decent ones
//! that must still work.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use atlas_worker::{SandboxMeans, SandboxMode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::elsewhere;
use crate::llm::confined;
use crate::session::processes;
use crate::support::{
    Agent, Controller, End, NO_ENGINE, Node, PATIENCE, Session, program, python, shell, supervisor, until,
    without_python,
};

const ATTACKS: &str = include_str!("sandbox/attacks.py");
const VICTIM: &str = include_str!("sandbox/victim.py");

/// The user of the ordinary worker.
const NOBODY: u32 = 65_534;

/// Interpreters that every user may run.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "/usr/local/bin/python3"];

/// A worker as a process of a user, and what a hostile agent attacks.
struct Scene {
    controller: Controller,
    session: Session,
    worker: Ended,
    victim: Ended,
    target: Value,
    /// In the folder for temporary files, and elsewhere.
    in_tmp: TempDir,
    elsewhere: TempDir,
}

/// A process that is killed with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Scene {
    /// None, with a message, if this machine cannot show it.
    async fn set(user: Option<u32>, mark: &str) -> Option<Self> {
        let python = PYTHONS.iter().find(|path| Path::new(path).exists());
        let Some(python) = python else {
            atlas_notice::skip("no interpreter that every user may run");
            return None;
        };
        if user.is_some() && !nix::unistd::geteuid().is_root() {
            atlas_notice::skip("only root can start programs of another user");
            return None;
        }
        let in_tmp = tempfile::tempdir().expect("temporary directory");
        let elsewhere = elsewhere::folder()?;
        for folder in [&in_tmp, &elsewhere] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("its own folder");
        }
        let place = |name: &str| elsewhere.path().join(name);
        for folder in ["data", "secrets", "home/.ssh"] {
            fs::create_dir_all(place(folder)).expect("writable");
        }
        let files = ["data/secret", "secrets/token", "hidden", "home/.ssh/id_ed25519", "read", "write"].map(place);
        for file in files.iter().chain([&in_tmp.path().join("secret")]) {
            fs::write(file, "CANARY").expect("writable");
            fs::set_permissions(file, fs::Permissions::from_mode(0o666)).expect("its own file");
        }
        let mut controller = Controller::start().await;
        let mut worker = program(&controller, &place("data"), NO_ENGINE);
        worker.args(["--sandbox-scratch", "8MiB", "--sandbox-processes", "64"]);
        worker.arg("--secrets-dir").arg(place("secrets")).arg("--sandbox-hide").arg(place("hidden"));
        worker.env("HOME", place("home")).env("WORKER_TOKEN", "CANARY");
        if let Some(user) = user {
            for folder in ["data", "secrets", "home", "home/.ssh"] {
                chown(place(folder), Some(user), Some(user)).expect("root may");
            }
            worker.uid(user).gid(user);
            let mut reach = Command::new(supervisor());
            reach.arg("--version").stdout(Stdio::null()).current_dir("/").uid(user).gid(user);
            if !reach.status().is_ok_and(|status| status.success()) {
                atlas_notice::skip("an ordinary user cannot reach the worker's program");
                return None;
            }
        }
        let mut victim = Command::new(python);
        victim.args(["-c", VICTIM, mark]).arg(in_tmp.path()).arg(elsewhere.path());
        victim.env("TOKEN", "CANARY").stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(user) = user {
            victim.uid(user).gid(user);
        }
        let mut victim = victim.spawn().expect("it starts");
        let mut line = String::new();
        let stdout = victim.stdout.take().expect("it is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it tells");
        let mut target: Value = serde_json::from_str(&line).expect("JSON");
        let worker = worker.spawn().expect("the worker starts");
        let session = welcomed(&mut controller).await;
        let more = json!({
            "worker": worker.id(), "marker": mark, "forks": 200, "left": mark.replace("8634", "8635"),
            "data_secret": files[0], "secret": files[1], "hidden": files[2], "ssh_key": files[3],
            "elsewhere": files[4], "writable_elsewhere": files[5], "in_tmp": in_tmp.path().join("secret"),
            "worker_program": supervisor(), "data": place("data"),
        });
        let more = more.as_object().expect("an object").clone();
        target.as_object_mut().expect("an object").extend(more);
        Some(Self { controller, session, worker: Ended(worker), victim: Ended(victim), target, in_tmp, elsewhere })
    }

    /// Runs all attacks with these permissions. Returns those that were not stopped, and how the agent was confined.
    async fn attack(&mut self, permissions: &str) -> (BTreeSet<String>, String) {
        let python = PYTHONS.iter().find(|path| Path::new(path).exists()).expect("there is one");
        let contract = format!(
            "agent:\n  name: hostile\n  version: 1.0.0\n  provider:\n    type: exec\n    command: [{python}, attacks.py]\n  permissions: {permissions}\n"
        );
        let files = [("agent.yaml", contract), ("attacks.py", ATTACKS.to_owned())];
        let agent = self.controller.publish_owned(&files);
        let end = self.session.run(&self.controller.assignment(&agent, &self.target.to_string())).await;
        let End::Completed { metadata, .. } = &end else { panic!("{permissions}: {end:?}") };
        let metadata: Value = serde_json::from_str(metadata.as_deref().unwrap_or("{}")).expect("JSON");
        let confined = metadata["_sandbox"].as_str().unwrap_or_default().to_owned();
        let verdicts: BTreeMap<String, String> = serde_json::from_str(&end.output(&self.controller)).expect("JSON");
        assert!(verdicts.len() >= 60, "{}", verdicts.len());
        let broken: Vec<_> = verdicts.iter().filter(|(_, verdict)| verdict.starts_with("broken")).collect();
        assert!(broken.is_empty(), "{permissions}: {broken:?}");
        let through = verdicts.into_iter().filter(|(_, verdict)| verdict == "escaped").map(|(name, _)| name);
        (through.collect(), confined)
    }

    /// What the agent must not have changed outside.
    async fn unharmed(&mut self) {
        let in_tmp = fs::read_to_string(self.in_tmp.path().join("secret")).expect("it is still there");
        assert_eq!(in_tmp, "CANARY");
        assert!(
            self.victim.0.try_wait().expect("a child").is_none()
                && self.worker.0.try_wait().expect("a child").is_none()
        );
        let left = self.target["left"].as_str().expect("a text").to_owned();
        until("the process that left its session is dead", PATIENCE, || processes(&left) == 0).await;
        assert!(self.elsewhere.path().exists());
    }
}

/// The attacks that permissions to write and to use the network allow, and those that no permission stops. Others than root
/// get through with fewer of them.
const OF_WRITERS: &[&str] = &[
    "read_file_elsewhere",
    "write_file_elsewhere",
    "truncate_file_elsewhere",
    "rename_file_elsewhere",
    "change_mode_elsewhere",
    "write_system_file",
];

const OF_NETWORK: &[&str] = &["connect_tcp", "send_udp", "send_udp_to_internet", "connect_metadata_service"];

/// A socket is a file that needs no permission to write: who sees it can connect. An agent with only its own files sees none.
const OF_READERS: &[&str] = &["read_file_elsewhere", "connect_socket_elsewhere"];

/// No rlimit on processes counts for root.
const OF_ROOT: &[&str] = &["fork_bomb"];

async fn attacked(user: Option<u32>, mark: &str) {
    let Some(mut scene) = Scene::set(user, mark).await else { return };
    let of_user = if user.is_none() && nix::unistd::geteuid().is_root() { OF_ROOT } else { &[] };
    let own: [(&str, Vec<&str>); 3] = [
        ("{filesystem: [], network: []}", vec![]),
        ("{filesystem: [read], network: []}", OF_READERS.to_vec()),
        ("{filesystem: [read, write], network: [outbound]}", [OF_READERS, OF_WRITERS, OF_NETWORK].concat()),
    ];
    for (permissions, declared) in own {
        let (through, confined) = scene.attack(permissions).await;
        if !confined.contains("namespaces, landlock") || !confined.contains("seccomp") {
            return atlas_notice::skip(format_args!("this machine confines agents only in part ({confined})"));
        }
        let declared: BTreeSet<String> = declared.iter().chain(of_user).map(|name| (*name).to_owned()).collect();
        let undeclared: Vec<_> = through.difference(&declared).collect();
        assert!(undeclared.is_empty(), "{permissions}, {confined}: not stopped: {undeclared:?}");
        scene.unharmed().await;
        // The next profile attacks the same file.
        fs::write(scene.elsewhere.path().join("read"), "CANARY").expect("writable");
    }
}

#[tokio::test]
async fn a_hostile_agent_of_root_gets_through_with_nothing_that_is_not_declared() {
    attacked(None, "86341").await;
}

#[tokio::test]
async fn a_hostile_agent_of_an_ordinary_user_gets_through_with_nothing_that_is_not_declared() {
    attacked(Some(NOBODY), "86342").await;
}

/// The next session, with a time to live that a loaded machine does not exceed.
async fn welcomed(controller: &mut Controller) -> Session {
    let mut session = controller.session().await;
    session.hello().await;
    session.welcome_for(PATIENCE, Vec::new()).await;
    session
}

/// A node with a mode, and its first session.
pub(crate) async fn node(mode: SandboxMode) -> (Controller, Node, Session) {
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| options.sandbox = mode).await;
    let session = welcomed(&mut controller).await;
    (controller, node, session)
}

pub(crate) fn metadata(end: &End) -> Value {
    let (End::Completed { metadata, .. } | End::Failed { metadata, .. }) = end else { panic!("not run: {end:?}") };
    serde_json::from_str(metadata.as_deref().unwrap_or("{}")).expect("metadata is JSON")
}

#[tokio::test]
async fn an_agent_without_permissions_runs_as_before() {
    let (mut controller, node, mut session) = node(SandboxMode::BestEffort).await;
    let agent = controller.publish_owned(&shell("touch here; echo '{}'", ""));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    assert_eq!((end.output(&controller).as_str(), metadata(&end)), ("{}", json!({})));
    node.shutdown().await;
}

#[tokio::test]
async fn a_confined_agent_has_its_own_folder_for_temporary_files() {
    let (mut controller, node, mut session) = node(SandboxMode::BestEffort).await;
    // A name that nobody else uses, in the folder of the same name outside.
    let name = node.dir.path().file_name().expect("a name").to_string_lossy().into_owned() + "-x";
    let script = format!(
        "echo \"{{\\\"at\\\": \\\"$TMPDIR\\\"}}\" >\"$TMPDIR/{name}\"; cat \"$TMPDIR/{name}\" /dev/null; : >/dev/shm/{name}"
    );
    let agent = controller.publish_owned(&shell(&script, "  permissions: {filesystem: [read], network: []}\n"));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    let at: Value = serde_json::from_str(&end.output(&controller)).expect("JSON");
    let at = PathBuf::from(at["at"].as_str().expect("a text"));
    assert!(!at.join(&name).exists() && !Path::new("/dev/shm").join(&name).exists(), "{}", at.display());
    let text = metadata(&end)["_sandbox"].to_string();
    assert!(text.starts_with("\"files read-only, no network ("), "{text}");
    node.shutdown().await;
}

#[tokio::test]
async fn a_confined_python_agent_stays_warm() {
    if without_python() {
        return;
    }
    let code = "import os, socket, tempfile, threading, subprocess, multiprocessing\nfrom atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def execute(self, d):\n        with tempfile.TemporaryFile() as f:\n            f.write(b'x')\n        t = threading.Thread(target=int)\n        t.start()\n        t.join()\n        multiprocessing.Lock()\n        said = subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout\n        a = socket.create_server(('127.0.0.1', 0))\n        b = socket.create_connection(a.getsockname())\n        try:\n            open(os.path.join(os.path.dirname(__file__), 'x'), 'w')\n        except OSError as error:\n            return {'said': said, 'error': error.strerror, 'processes': len([p for p in os.listdir('/proc') if p.isdigit()]) < 9}\n";
    let (mut controller, node, mut session) = node(SandboxMode::BestEffort).await;
    let agent = controller.publish_owned(&python(code, "  permissions: {filesystem: [], network: []}\n"));
    for _ in 0..2 {
        let end = session.run(&controller.assignment(&agent, "{}")).await;
        let text = metadata(&end)["_sandbox"].to_string();
        if !text.contains("namespaces") {
            atlas_notice::skip(format_args!("this machine confines agents only in part ({text})"));
            break;
        }
        assert_eq!(
            end.output(&controller),
            r#"{"said":"hi\n","error":"Read-only file system","processes":true}"#,
            "{text}"
        );
    }
    node.shutdown().await;
}

/// A worker whose data directory is among the temporary files: an agent sees its package there, in a folder that is its own otherwise. What it
/// writes beside the package, also by the paths of the machine, stays in that folder.
#[tokio::test]
async fn what_an_agent_writes_to_temporary_folders_reaches_no_file_of_the_machine() {
    let outside = tempfile::Builder::new().prefix("atlas-outside-").tempdir_in("/tmp").expect("temporary directory");
    let file = outside.path().join("file");
    fs::write(&file, "CANARY").expect("writable");
    fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o777)).expect("its own folder");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("its own file");
    let mut controller = Controller::start().await;
    let data = outside.path().join("data");
    let node = Node::start_with(&controller, |options| options.data_dir = data).await;
    let mut session = welcomed(&mut controller).await;
    let at = outside.path().display();
    let script = format!(
        "mkdir -p {at}; echo x >{at}/file; echo x >{at}/new; echo x >{at}/data/new; printf '{{\"n\": %s}}' \"$(cat {at}/file {at}/new | grep -c x)\""
    );
    for more in ["filesystem: []", "filesystem: [read]"] {
        let agent = controller.publish_owned(&shell(&script, &format!("  permissions: {{{more}, network: []}}\n")));
        let end = session.run(&controller.assignment(&agent, "{}")).await;
        let text = metadata(&end)["_sandbox"].to_string();
        if !text.contains("namespaces") {
            return atlas_notice::skip(format_args!("this machine confines agents only in part ({text})"));
        }
        assert_eq!(end.output(&controller), r#"{"n": 2}"#, "it has a folder of that name: {text}");
        let names = fs::read_dir(outside.path()).expect("readable").flatten().map(|entry| entry.file_name());
        assert_eq!(names.collect::<BTreeSet<_>>(), ["data".into(), "file".into()].into());
        assert_eq!(fs::read_to_string(&file).expect("readable"), "CANARY");
        assert!(!outside.path().join("data/new").exists());
    }
    node.shutdown().await;
}

/// Variables of an agent act on the agent alone. They ask the loader of programs to write a file, which would lie in the
/// folder for temporary files of a process that gets them: the agent has its own one.
#[tokio::test]
async fn variables_of_an_agent_reach_no_process_that_is_not_confined() {
    let outside = tempfile::Builder::new().prefix("atlas-loader-").tempdir_in("/tmp").expect("temporary directory");
    let secrets = outside.path().join("secrets");
    let written = format!("{}.written", outside.path().display());
    let values = json!({"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": written});
    fs::write(&secrets, values.to_string()).expect("writable");
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| options.secrets.file = Some(secrets)).await;
    let mut session = welcomed(&mut controller).await;
    let more = "  permissions: {filesystem: [read], network: [], secrets: [LD_DEBUG, LD_DEBUG_OUTPUT]}\n";
    let count =
        format!("n=0; for file in {written}.*; do [ -e \"$file\" ] && n=$((n + 1)); done; echo \"{{\\\"n\\\": $n}}\"");
    let agent = controller.publish_owned(&shell(&count, more));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    let text = metadata(&end)["_sandbox"].to_string();
    if !text.contains("namespaces") {
        return atlas_notice::skip(format_args!("this machine confines agents only in part ({text})"));
    }
    let in_agent: Value = serde_json::from_str(&end.output(&controller)).expect("JSON");
    assert!(in_agent["n"].as_u64() > Some(0), "the agent has its variables: {in_agent}");
    let entries = fs::read_dir("/tmp").expect("it is there").flatten().map(|entry| entry.path());
    let left: Vec<PathBuf> =
        entries.filter(|path| path.to_string_lossy().starts_with(&format!("{written}."))).collect();
    left.iter().for_each(|path| fs::remove_file(path).expect("its own file"));
    assert_eq!(left, Vec::<PathBuf>::new());
    node.shutdown().await;
}

#[tokio::test]
async fn hidden_places_are_looked_at_when_an_agent_starts() {
    let Some(outside) = elsewhere::folder() else { return };
    let place = |name: &str| outside.path().join(name);
    fs::write(place("first"), "CANARY\n").expect("writable");
    symlink("first", place("link")).expect("writable");
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| {
        options.sandbox_hidden = vec![place("link")];
        options.secrets.directory = Some(place("later"));
    })
    .await;
    let mut session = welcomed(&mut controller).await;
    // As a volume of Kubernetes changes its files.
    fs::write(place("second"), "CANARY\n").expect("writable");
    symlink("second", place("new")).expect("writable");
    fs::rename(place("new"), place("link")).expect("writable");
    fs::create_dir(place("later")).expect("writable");
    fs::write(place("later/key"), "CANARY\n").expect("writable");
    let script = format!(
        "cd {}; cat link later/key >$TMPDIR/x; echo \"{{\\\"n\\\": $(wc -c <$TMPDIR/x)}}\"",
        outside.path().display()
    );
    let agent = controller.publish_owned(&shell(&script, "  permissions: {filesystem: [read], network: []}\n"));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    let text = metadata(&end)["_sandbox"].to_string();
    if !text.contains("namespaces") {
        return atlas_notice::skip(format_args!("this machine confines agents only in part ({text})"));
    }
    assert_eq!(end.output(&controller), r#"{"n": 0}"#);
    node.shutdown().await;
}

#[tokio::test]
async fn an_agent_that_may_write_does_not_change_python_environments() {
    let Some(outside) = elsewhere::folder() else { return };
    let environments = outside.path().join("environments");
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| options.environments = Some(environments.clone())).await;
    let mut session = welcomed(&mut controller).await;
    let at = outside.path().display();
    let script = format!("mkdir -p {at}/environments; touch {at}/environments/x; touch {at}/y; echo '{{}}'");
    let agent = controller.publish_owned(&shell(&script, "  permissions: {filesystem: [read, write], network: []}\n"));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    let text = metadata(&end)["_sandbox"].to_string();
    if !text.contains("namespaces") {
        return atlas_notice::skip(format_args!("this machine confines agents only in part ({text})"));
    }
    assert_eq!((outside.path().join("y").exists(), environments.join("x").exists()), (true, false));
    node.shutdown().await;
}

#[tokio::test]
async fn a_node_that_must_confine_and_cannot_says_what_is_missing() {
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| {
        options.sandbox = SandboxMode::Required;
        options.sandbox_means = Some(SandboxMeans { seccomp: true, ..SandboxMeans::default() });
    })
    .await;
    let mut session = welcomed(&mut controller).await;
    let why =
        "cannot be confined on this node, which is required: not enforced: files, secrets of the machine, processes";
    let check = |end: &End, agent: &str, before: &str| {
        assert_eq!(end.error(), format!("{before}{agent} {why}"));
        assert_eq!(end.metadata()["_error_code"], "E3106");
    };
    let agent: Agent = controller.publish_owned(&shell("echo '{}'", ""));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    check(&end, "sh", "the agent was not started: ");
    // The model of such an agent must not be the one to learn it.
    let agent: Agent = controller.publish_owned(&confined::graph(""));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    check(&end, "g", "Pool error: ");
    if !without_python() {
        let code = "from atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def execute(self, d):\n        return {}\n";
        let agent = controller.publish_owned(&python(code, ""));
        let end = session.run(&controller.assignment(&agent, "{}")).await;
        check(&end, "py", "Pool error: ");
    }
    node.shutdown().await;
}
