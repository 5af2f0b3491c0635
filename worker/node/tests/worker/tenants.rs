//! Agents of several owners on one worker: what one does to its files, to those of its package and to those of others must not
//! change what another job runs or finds. As root and as an ordinary user, with mounts and without.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use atlas_types::{Assignment, Namespace};
use atlas_worker::{Confinement, SandboxMode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::sandbox::metadata;
use crate::support::{
    Agent, Controller, NO_ENGINE, Node, PATIENCE, Session, program_at, python, shell, supervisor, until, without_python,
};

/// Does what an agent can do to the code of this worker that it finds: its own, that in `packages` and what other agents run from.
/// `$1` is the data directory.
const ATTACK: &str = r#"#!/bin/sh
read -r input
data=$1
for folder in . "$(dirname "$0")" $(for kind in packages work; do echo "$data/$kind"/*; done); do
    [ -d "$folder" ] || continue
    chmod -R u+w "$folder"
    umount "$folder"
    mount -o remount,rw,bind "$folder"
    for file in agent.sh agent.py data.json; do
        rm -f "$folder/$file"
        printf '#!/bin/sh\necho "{\\"said\\": \\"evil\\"}"\n' >"$folder/$file"
        chmod +x "$folder/$file"
    done
    echo left >"$folder/left"
done 2>/dev/null
echo '{"said": "attacked"}'
"#;

/// Says what it reads beside itself, and what is left there.
const DECENT: &str = r#"#!/bin/sh
cat >/dev/null
printf '{"said": "%s", "files": "%s"}' "$(cat ./data.json)" "$(ls | tr '\n' ' ')"
"#;

fn files(program: &str, more: &str) -> Vec<(&'static str, String)> {
    let contract = format!(
        "agent:\n  name: sh\n  version: 1.0.0\n  provider: {{type: exec, command: [./agent.sh, DATA]}}\n{more}"
    );
    vec![("agent.yaml", contract), ("agent.sh", program.to_owned()), ("data.json", "mine".to_owned())]
}

fn publish(controller: &mut Controller, data: &Path, program: &str, more: &str) -> Agent {
    let mut files = files(program, more);
    files[0].1 = files[0].1.replace("DATA", &data.display().to_string());
    controller.publish_owned(&files)
}

/// A job in a namespace.
fn of(namespace: &str, assignment: Assignment) -> Assignment {
    Assignment { namespace: Namespace::new(namespace).expect("a name"), ..assignment }
}

/// One tenant attacks what it runs itself and what the other one runs, which runs before and after it.
async fn attacked(controller: &mut Controller, session: &mut Session, data: &Path) {
    let said = r#"{"said": "mine", "files": "agent.sh agent.yaml data.json "}"#;
    for more in ["", "  permissions: {filesystem: [read], network: []}\n", "  permissions: {filesystem: [write]}\n"] {
        let decent = publish(controller, data, DECENT, more);
        let before = of("b", controller.assignment(&decent, "{}"));
        assert_eq!(session.run(&before).await.output(controller), said, "{more}");
        // The same package belongs to both: it has what the attacked one has, and more.
        let hostile = publish(controller, data, ATTACK, more);
        for namespace in ["a", "b", "a"] {
            let attack = of(namespace, controller.assignment(&hostile, "{}"));
            let end = session.run(&attack).await;
            // It runs as it is, whatever it did to itself before.
            assert_eq!(end.output(controller), r#"{"said": "attacked"}"#, "{more}");
        }
        let after = of("b", controller.assignment(&decent, "{}"));
        assert_eq!(session.run(&after).await.output(controller), said, "{more}");
    }
    let left = || fs::read_dir(data.join("work")).into_iter().flatten().count();
    until("the directories of the jobs are gone", PATIENCE, || left() == 0).await;
}

async fn tenants(change: impl FnOnce(&mut atlas_worker::Options)) {
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, change).await;
    let mut session = controller.session().await;
    session.hello().await;
    session.welcome_for(PATIENCE, Vec::new()).await;
    let data = node.dir.path().to_owned();
    attacked(&mut controller, &mut session, &data).await;
    node.shutdown().await;
}

#[tokio::test]
async fn a_tenant_changes_nothing_that_another_one_runs() {
    tenants(|_| {}).await;
}

#[tokio::test]
async fn a_tenant_changes_nothing_on_a_machine_that_confines_nobody() {
    tenants(|options| {
        options.sandbox = SandboxMode::Off;
        options.confinement = Some(Confinement::Subreaper);
    })
    .await;
}

/// A worker of an ordinary user.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_tenant_changes_nothing_on_a_worker_of_an_ordinary_user() {
    const NOBODY: u32 = 65_534;
    if !nix::unistd::geteuid().is_root() {
        // The other tests run as one.
        return atlas_notice::skip("only root can start programs of another user");
    }
    for confinement in ["", "subreaper"] {
        let folder = TempDir::new_in("/var/tmp").expect("temporary directory");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("writable");
        for path in [folder.path(), &data] {
            chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        // The folder of the build may be closed to others.
        let program = folder.path().join("atlas-worker");
        fs::copy(supervisor(), &program).expect("writable");
        let mut controller = Controller::start().await;
        let mut worker = program_at(&program, &controller, &data, NO_ENGINE);
        if !confinement.is_empty() {
            worker.args(["--confinement", confinement]);
        }
        worker.env("HOME", folder.path()).current_dir("/").uid(NOBODY).gid(NOBODY);
        let worker = Worker(worker.spawn().expect("the worker starts"));
        let mut session = controller.session().await;
        session.hello().await;
        session.welcome_for(PATIENCE, Vec::new()).await;
        attacked(&mut controller, &mut session, &data).await;
        drop(worker);
    }
}

#[tokio::test]
async fn a_job_finds_its_working_directory_as_the_package_is() {
    let mut controller = Controller::start().await;
    let node = Node::start(&controller).await;
    let mut session = controller.welcomed(Vec::new()).await;
    let script = "ls -A >list; n=$(wc -l <list); echo x >left; mkdir -p sub; chmod 0 sub; printf '{\"n\": %s, \"at\": \"%s\"}' \"$n\" \"$PWD\"";
    let agent = controller.publish_owned(&shell(script, ""));
    let mut places = Vec::new();
    for _ in 0..2 {
        let end = session.run(&controller.assignment(&agent, "{}")).await;
        let said: Value = serde_json::from_str(&end.output(&controller)).expect("JSON");
        places.push((said["n"].clone(), PathBuf::from(said["at"].as_str().expect("a text"))));
    }
    // The list itself is there when it is written.
    assert_eq!(places[0].0, places[1].0);
    assert_ne!(places[0].1, places[1].1);
    until("both are gone", PATIENCE, || places.iter().all(|(_, place)| !place.exists())).await;
    node.shutdown().await;
}

#[tokio::test]
async fn a_warm_python_agent_keeps_its_files_to_its_namespace() {
    if without_python() {
        return;
    }
    let code = "import os\nfrom atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def execute(self, d):\n        was = os.path.exists('left')\n        open('left', 'w').close()\n        open(__file__, 'a').close()\n        return {'was': was}\n";
    let mut controller = Controller::start().await;
    let node = Node::start(&controller).await;
    let mut session = controller.welcomed(Vec::new()).await;
    let agent = controller.publish_owned(&python(code, ""));
    let mut was = Vec::new();
    for namespace in ["a", "b", "a"] {
        let assignment = of(namespace, controller.assignment(&agent, "{}"));
        let end = session.run(&assignment).await;
        was.push((end.output(&controller), metadata(&end)));
    }
    let said = |was: bool| (format!("{{\"was\":{was}}}"), json!({}));
    assert_eq!(was, [said(false), said(false), said(true)]);
    node.shutdown().await;
}
