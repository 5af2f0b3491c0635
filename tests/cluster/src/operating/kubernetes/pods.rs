//! The containers of the chart as processes on five machines: one controller becomes three, workers join, pods and volumes are lost,
//! and all programs are replaced under load.
//!
//! The programs that are replaced are those of an older release if `ATLAS_TEST_OLDER_BIN_DIR` is their folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::page::{DESK, Line};
use super::super::site::Site;
use super::{HELM, container, containers, documents, pod, template, tool};
use crate::kubernetes::{self, Secrets};
use crate::program::older_programs;
use crate::{Agent, LONG, eventually, write_agent};

/// Greets if it got the value of a sealed secret, which its output may not contain.
const HELLO: Agent<'static> = Agent {
    name: "hello",
    version: "1.0.0",
    contract: "  permissions: { secrets: [TOKEN] }\n",
    script: r#"cat >/dev/null; [ "$TOKEN" = "open sesame" ] && printf '{"greeting": "Hello"}'"#,
};

/// Takes long enough to run while its worker is told to stop.
const SLOW: Agent<'static> =
    Agent { name: "slow", version: "1.0.0", contract: "", script: "cat >/dev/null; sleep 0.3; echo '{}'" };

/// Submits jobs until it is told to stop, and notes each one that was acknowledged.
const LOAD: &str = "until [ -e stop ]; do atlasctl run slow --detach >>jobs || exit 1; done; echo 'load stopped' >&2";

/// How many jobs show that clients are served.
const SOME: usize = 5;

/// What runs a program before the upgrade.
fn older(program: &str) -> String {
    older_programs().map_or_else(|| program.to_owned(), |folder| folder.join(program).display().to_string())
}

/// The line that runs a container on a machine as the kubelet would, with addresses instead of names.
fn line(container: &Value, machine: &str, home: &Path, program: &str) -> Line {
    let pod = machine.to_owned();
    let mut assignments = String::new();
    for variable in container["env"].as_array().expect("variables") {
        let name = variable["name"].as_str().expect("a name");
        let mut value = variable["value"].as_str().unwrap_or(&pod).replace("$(POD_NAME)", &pod).replace("$(ZONE)", "a");
        for at in 0..3 {
            let address = format!("10.0.0.{}", at + 1);
            value = value.replace(&format!("atlas-controller-{at}.atlas-controllers.atlas.svc"), &address);
            value = value.replace(&format!("c{}.atlas-controllers.atlas.svc", at + 1), &address);
        }
        let value = value.replace("/etc/atlas/", &format!("{}/", home.display()));
        assignments.push_str(&format!("{name}='{value}' "));
    }
    let arguments = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let arguments: String = arguments.map(|argument| format!(" {argument}")).collect();
    Line { machine: machine.to_owned(), command: format!("env {assignments}{program}{arguments}") }
}

/// Writes the files that a pod mounts at /etc/atlas in a container.
fn mount_for(document: &Value, container: &Value, secret: &Value, home: &Path) {
    let mounts = container["volumeMounts"].as_array().expect("mounts");
    let mount = mounts.iter().find(|mount| mount["mountPath"] == "/etc/atlas").expect("a mount");
    let volumes = pod(document).and_then(|pod| pod["volumes"].as_array()).expect("volumes");
    let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).expect("a volume");
    kubernetes::mount(volume, secret, home);
}

/// A release of the chart: what it renders, and the machines on which its containers run.
struct Release {
    site: Site,
    helm: PathBuf,
    folder: tempfile::TempDir,
    secret: Value,
    documents: Vec<Value>,
}

impl Release {
    /// Renders the chart with a number of controllers; the Job makes the secret before anything else is there. None, with a notice,
    /// if this machine lacks something.
    fn install(replicas: u32) -> Option<Self> {
        let (helm, site) = (tool(HELM)?, Site::new()?);
        let mut release = Self {
            site,
            helm,
            folder: tempfile::tempdir().expect("a folder"),
            secret: Value::Null,
            documents: Vec::new(),
        };
        release.upgrade(replicas);
        let api = Secrets::start();
        let init = release.arguments("Job");
        let made = api.run(&init.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        release.secret = api.get("atlas-auth").expect("a secret");
        Some(release)
    }

    /// Renders the chart again.
    fn upgrade(&mut self, replicas: u32) {
        let values = format!("controllers: {{replicas: {replicas}}}\nbackup: {{enabled: true, keep: 2}}");
        self.documents = documents(&template(&self.helm, self.folder.path(), &values).expect("rendered"));
    }

    fn of_kind(&self, kind: &str) -> &Value {
        self.documents.iter().find(|document| document["kind"] == kind).expect(kind)
    }

    /// The arguments of the only container of a document.
    fn arguments(&self, kind: &str) -> Vec<String> {
        let words = containers(self.of_kind(kind))[0]["args"].as_array().expect("arguments");
        words.iter().map(|word| word.as_str().expect("a word").to_owned()).collect()
    }

    /// Starts the pod of a controller with this program.
    fn controller(&mut self, machine: &str, program: &str) {
        let (set, home) = (self.of_kind("StatefulSet"), self.site.home(machine));
        let controller = container(set, "controller");
        mount_for(set, controller, &self.secret, &home);
        let line = line(controller, machine, &home, program);
        self.site.start(&line);
    }

    /// Lets the desk use the cluster as the notes say, and waits for nothing.
    fn connect(&mut self) {
        fs::write(self.site.home(DESK).join("secret.json"), self.secret.to_string()).expect("a file");
        let servers = "https://10.0.0.1:7400,https://10.0.0.2:7400,https://10.0.0.3:7400";
        let context = format!("atlasctl context add atlas --server {servers} --from-secret secret.json --use");
        self.site.typed(DESK, &context);
    }

    /// Deploys an agent from the desk.
    fn deploy(&mut self, agent: &Agent) {
        write_agent(&self.site.home(DESK), agent);
        self.site.typed(DESK, &format!("atlasctl deploy ./{}", agent.name));
    }

    /// The line of the container of a worker's pod.
    fn worker_line(&self, machine: &str, program: &str) -> Line {
        line(container(self.of_kind("Deployment"), "worker"), machine, &self.site.home(machine), program)
    }

    /// Starts the pod of a worker with this program: its first container joins the cluster.
    fn worker(&mut self, machine: &str, program: &str) {
        let (deployment, home) = (self.of_kind("Deployment"), self.site.home(machine));
        let join = container(deployment, "join");
        mount_for(deployment, join, &self.secret, &home);
        let joins = line(join, machine, &home, program);
        self.site.run(&joins);
        // A pod whose node restarts runs it again.
        self.site.run(&joins);
        for file in ["group.token", "ca.pem"] {
            fs::remove_file(home.join(file)).expect("the worker has none");
        }
        let worker = self.worker_line(machine, program);
        self.site.start(&worker);
    }
}

#[test]
fn the_containers_of_the_chart_are_a_cluster() {
    let Some(mut release) = Release::install(1) else { return };
    release.controller("c1", "atlas-controller");
    release.connect();
    release.site.typed(DESK, "printf 'open sesame' | atlasctl secret set TOKEN -");
    release.deploy(&HELLO);
    let early = release.site.typed(DESK, "atlasctl run hello --detach");
    // Kubernetes starts the new pods, and then the first one again with what has changed.
    release.upgrade(3);
    for machine in ["c2", "c3"] {
        release.controller(machine, "atlas-controller");
    }
    release.site.all_vote();
    release.site.stop("c1");
    release.controller("c1", "atlas-controller");
    release.site.all_vote();
    for machine in ["w1", "w2"] {
        release.worker(machine, "atlas-worker");
    }
    // A plain client gets nothing, at the door of workers and of clients.
    let stranger = release.worker_line("w1", "timeout 6 atlas-worker").command;
    let stranger = stranger.replace("ATLAS_NODE='w1'", "ATLAS_NODE='w3'");
    let stranger = stranger.replace("/var/lib/atlas-worker'", "/var/lib/stranger'");
    let backup = release.arguments("CronJob").join(" ").replace("/backups", "backups");
    let site = &mut release.site;
    site.refused(DESK, "ATLAS_SERVER=http://10.0.0.1:7400 atlasctl cluster status", 3);
    assert!(!site.refused("w1", &stranger, 124).contains("session open"));
    // The job from the time of one controller runs, and the value of a sealed secret reaches both workers.
    let early = site.typed(DESK, &format!("atlasctl job wait {}", early.trim()));
    assert!(early.contains("Hello"), "{early}");
    for _ in 0..4 {
        assert!(site.typed(DESK, "atlasctl run hello").contains("Hello"));
    }
    site.stop("w1");
    assert!(site.typed(DESK, "atlasctl run hello").contains("Hello"));
    // Each night's backup is restored for a test, and the older ones go.
    site.typed(DESK, "mkdir backups && touch backups/atlas-20260101T000000Z.tar backups/atlas-20260102T000000Z.tar");
    let told = site.typed(DESK, &format!("atlasctl {backup} 2>&1"));
    assert!(told.contains("restored for a test: ") && told.contains("deleted "), "{told}");
    let left = site.typed(DESK, "ls backups");
    assert!(left.starts_with("atlas-20260102T000000Z.tar") && left.lines().count() == 2, "{left}");
    // A pod that is replaced has its volume, and is a member again.
    site.stop("c2");
    site.start_again("c2");
    site.all_vote();
    // The first pod with an empty volume finds the others, and forms no second cluster.
    site.lose("c1");
    site.typed(DESK, "for i in $(seq 40); do atlasctl cluster remove c1 --yes && exit 0; sleep 0.5; done; exit 1");
    site.start_again("c1");
    site.all_vote();
    assert!(site.typed(DESK, "atlasctl run hello").contains("Hello"));
}

#[test]
fn an_upgrade_of_the_chart_under_load_loses_no_job() {
    let Some(mut release) = Release::install(3) else { return };
    for machine in ["c1", "c2", "c3"] {
        release.controller(machine, &older("atlas-controller"));
    }
    release.connect();
    release.site.all_vote();
    release.deploy(&SLOW);
    for machine in ["w1", "w2"] {
        release.worker(machine, &older("atlas-worker"));
    }
    let desk = release.site.home(DESK);
    let mut load = release.site.background(DESK, LOAD);
    let submitted = || {
        let text = fs::read_to_string(desk.join("jobs")).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let goes_on = || {
        let enough = submitted().len() + SOME;
        eventually("jobs are acknowledged", LONG, || (submitted().len() >= enough).then_some(()));
    };
    goes_on();
    // As a StatefulSet does: the last pod first, and the next one when that is ready. Programs of two levels are in the test `rolling`,
    // because workers join by the token of their group from level 6 on.
    for machine in ["c3", "c2", "c1"] {
        release.site.stop(machine);
        release.controller(machine, "atlas-controller");
        release.site.all_vote();
        goes_on();
    }
    // A worker that is told to stop ends the jobs that it has.
    for machine in ["w1", "w2"] {
        release.site.stop(machine);
        let worker = release.worker_line(machine, "atlas-worker");
        release.site.start(&worker);
        goes_on();
    }
    fs::write(desk.join("stop"), "").expect("a file");
    load.says("load stopped", |text| text.contains("load stopped").then_some(()));
    for job in submitted() {
        release.site.typed(DESK, &format!("atlasctl job wait {job}"));
    }
}
