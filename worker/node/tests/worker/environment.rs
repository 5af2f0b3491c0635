//! Tests the installation of Python packages that contracts list, from a directory of wheels and without network.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use atlas_worker::{Options, SandboxMode};
use serde_json::json;

use crate::elsewhere;
use crate::sandbox::metadata;
use crate::support::{Controller, End, Node, Session, python, without_python};

/// Writes the wheel of a package `greetlib` whose `hi` says hi.
const WHEEL: &str = r#"
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/greetlib-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("greetlib.py", "def hi():\n    return 'hi'\n")
    wheel.writestr("greetlib-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greetlib\nVersion: 1.0\n")
    wheel.writestr("greetlib-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("greetlib-1.0.dist-info/RECORD", "")
"#;

/// Reports whether `greetlib` can be imported, and the interpreter's path.
const CODE: &str = r#"
import sys
from atlas.runtime.base import AgentBase

class A(AgentBase):
    async def execute(self, input_data):
        try:
            import greetlib
            said = greetlib.hi()
        except ImportError:
            said = None
        return {"said": said, "own": sys.prefix.endswith(".env")}
"#;

struct Stage {
    controller: Controller,
    node: Node,
    session: Session,
}

impl Stage {
    async fn set(wheels: &Path) -> Self {
        Self::set_with(wheels, |_| {}).await
    }

    async fn set_with(wheels: &Path, change: impl FnOnce(&mut Options)) -> Self {
        let mut controller = Controller::start().await;
        let folder = wheels.as_os_str().to_owned();
        let node = Node::start_with(&controller, |options| {
            let variable = |name: &str, value: OsString| (OsString::from(name), value);
            options.pip_environment = vec![variable("PIP_NO_INDEX", "1".into()), variable("PIP_FIND_LINKS", folder)];
            change(options);
        })
        .await;
        let session = controller.welcomed(Vec::new()).await;
        Self { controller, node, session }
    }

    async fn run(&mut self, packages: &str, times: usize) -> Vec<End> {
        self.run_code(CODE, packages, times).await
    }

    async fn run_code(&mut self, code: &str, packages: &str, times: usize) -> Vec<End> {
        let more = format!("  dependencies: {{packages: [{packages}]}}\n");
        let agent = self.controller.publish_owned(&python(code, &more));
        let mut ends = Vec::new();
        for _ in 0..times {
            let assignment = self.controller.assignment(&agent, "{}");
            ends.push(self.session.run(&assignment).await);
        }
        ends
    }
}

fn wheels() -> tempfile::TempDir {
    let python = atlas_worker::Python::find(None).expect("there is one");
    let folder = tempfile::tempdir().expect("temporary directory");
    let written = Command::new(python.program).args(["-c", WHEEL]).arg(folder.path()).status();
    assert!(written.expect("Python starts").success());
    folder
}

#[tokio::test]
async fn an_agent_sees_the_packages_of_its_contract_and_no_other_agent_does() {
    if without_python() {
        return;
    }
    let wheels = wheels();
    let mut stage = Stage::set(wheels.path()).await;
    let ends = stage.run("\"# what it says\", '', \"greetlib==1.0 # hi\"", 2).await;
    for end in &ends {
        assert_eq!(end.output(&stage.controller), r#"{"said":"hi","own":true}"#);
    }
    assert!(ends[1].usage().warm);
    let ends = stage.run("", 1).await;
    assert_eq!(ends[0].output(&stage.controller), r#"{"said":null,"own":false}"#);
    stage.node.shutdown().await;
}

#[tokio::test]
async fn packages_that_cannot_be_installed_fail_the_job_and_say_why() {
    if without_python() {
        return;
    }
    let wheels = wheels();
    let mut stage = Stage::set(wheels.path()).await;
    let missing = stage.run("greetlib>=2", 1).await[0].error();
    let expected = "Pool error: could not install the agent's Python packages: \
                    Could not find a version that satisfies the requirement greetlib>=2 (from versions: 1.0); \
                    No matching distribution found for greetlib>=2";
    assert_eq!(missing, expected);
    stage.node.shutdown().await;
}

/// The number of environments in a worker's directory.
fn environments(data_dir: &Path) -> usize {
    let entries = std::fs::read_dir(data_dir.join("environments")).expect("there");
    entries.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "env")).count()
}

#[tokio::test]
async fn agents_with_the_same_packages_share_an_environment() {
    if without_python() {
        return;
    }
    let wheels = wheels();
    let mut stage = Stage::set(wheels.path()).await;
    assert!(!stage.run("greetlib==1.0", 1).await[0].usage().warm);
    let made = stage.session.events.len();
    assert!(made > 0, "the installation is told");
    let edited = format!("{CODE}\n# edited\n");
    let ends = stage.run_code(&edited, "\"Greetlib == 1.0\"", 1).await;
    assert_eq!(ends[0].output(&stage.controller), r#"{"said":"hi","own":true}"#);
    assert_eq!(stage.session.events.len(), made, "nothing is installed again");
    assert_eq!(environments(stage.node.dir.path()), 1);
    stage.node.shutdown().await;
}

#[tokio::test]
async fn an_installation_is_told_line_by_line() {
    if without_python() {
        return;
    }
    let wheels = wheels();
    let mut stage = Stage::set(wheels.path()).await;
    stage.run("greetlib==1.0", 1).await;
    let lines: Vec<&str> = stage.session.events.iter().map(|event| &*event.text).collect();
    assert_eq!(lines[0], "preparing: installing 1 package");
    assert!(lines.contains(&"Successfully installed greetlib-1.0"), "{lines:?}");
    assert!(lines.last().is_some_and(|line| line.starts_with("prepared in ")), "{lines:?}");
    stage.node.shutdown().await;
}

#[tokio::test]
async fn a_preparation_has_its_own_limit_and_says_so() {
    if without_python() {
        return;
    }
    let wheels = wheels();
    let mut stage = Stage::set_with(wheels.path(), |options| options.prepare_timeout = Duration::ZERO).await;
    let error = stage.run("greetlib==1.0", 1).await[0].error();
    assert_eq!(error, "Pool error: preparation timed out after 0s while installing 1 package");
    stage.node.shutdown().await;
}

/// Writes the source of a package `greetlib` whose build script does what `attack` says; `hi` tells what came of it.
const SOURCE: &str = r#"
import io, sys, tarfile
backend = """
import json, os, tempfile, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    said = {}
    def attempt(name, work):
        try:
            said[name] = work() or "done"
        except OSError as error:
            said[name] = "refused"
    place = os.environ["PLACE"]
    attempt("reads a secret", lambda: open(place + "/secret").read() or "nothing")
    attempt("writes elsewhere", lambda: open(place + "/free/new", "w").close())
    attempt("writes temporary files", lambda: tempfile.TemporaryFile().close())
    if os.environ.get("FORGE"):
        directory = os.path.dirname(os.environ["TMPDIR"])
        for mark in [directory + "/atlas-complete", os.path.splitext(directory)[0] + ".complete"]:
            attempt("forges " + mark[-15:], lambda: open(mark, "w").write(os.sys.executable + "\\n100\\n") and "done")
        if os.path.exists(place + "/free/stop"):
            raise SystemExit(1)
    name = "greetlib-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        wheel.writestr("greetlib.py", "def hi():\\n    return " + repr(json.dumps(said)) + "\\n")
        wheel.writestr("greetlib-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: greetlib\\nVersion: 1.0\\n")
        wheel.writestr("greetlib-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("greetlib-1.0.dist-info/RECORD", "")
    return name
"""
project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
about = "Metadata-Version: 2.1\nName: greetlib\nVersion: 1.0\n"
with tarfile.open(sys.argv[1] + "/greetlib-1.0.tar.gz", "w:gz") as source:
    for name, text in [("backend.py", backend), ("pyproject.toml", project), ("PKG-INFO", about)]:
        member = tarfile.TarInfo("greetlib-1.0/" + name)
        member.size = len(text.encode())
        source.addfile(member, io.BytesIO(text.encode()))
"#;

/// What is attacked: a secret that is hidden from agents, and a folder that the user of the worker may write.
struct Attacked {
    sources: tempfile::TempDir,
    place: tempfile::TempDir,
}

impl Attacked {
    /// None, with a message, where this user cannot show it.
    fn new() -> Option<Self> {
        let python = atlas_worker::Python::find(None).expect("there is one");
        let sources = tempfile::tempdir().expect("temporary directory");
        let written = Command::new(python.program).args(["-c", SOURCE]).arg(sources.path()).status();
        assert!(written.expect("Python starts").success());
        // Not among the temporary files, which are hidden as a whole.
        let place = elsewhere::folder()?;
        std::fs::create_dir(place.path().join("free")).expect("writable");
        std::fs::write(place.path().join("secret"), "CANARY").expect("writable");
        Some(Self { sources, place })
    }

    async fn stage(&self, mode: SandboxMode, more: &[(&str, &str)]) -> Stage {
        Stage::set_with(self.sources.path(), |options| {
            options.sandbox = mode;
            options.sandbox_hidden = vec![self.place.path().join("secret")];
            options.pip_environment.push(("PLACE".into(), self.place.path().into()));
            options.pip_environment.extend(more.iter().map(|&(name, value)| (name.into(), value.into())));
        })
        .await
    }
}

#[tokio::test]
async fn build_scripts_of_packages_are_confined() {
    if without_python() {
        return;
    }
    let Some(attacked) = Attacked::new() else { return };
    // The agent states its permissions, so that its job says what this machine enforces.
    let more = "  permissions: {filesystem: [read]}\n  dependencies: {packages: [greetlib==1.0]}\n";
    let said = async |mode| {
        let mut stage = attacked.stage(mode, &[]).await;
        let agent = stage.controller.publish_owned(&python(CODE, more));
        let end = stage.session.run(&stage.controller.assignment(&agent, "{}")).await;
        let output: serde_json::Value = serde_json::from_str(&end.output(&stage.controller)).expect("JSON");
        stage.node.shutdown().await;
        let said = serde_json::from_str::<serde_json::Value>(output["said"].as_str().expect("a text")).expect("JSON");
        (said, metadata(&end)["_sandbox"].to_string())
    };
    let told = |secret: &str, elsewhere: &str| json!({ "reads a secret": secret, "writes elsewhere": elsewhere, "writes temporary files": "done" });
    assert_eq!(said(SandboxMode::Off).await.0, told("CANARY", "done"));
    let (said, sandbox) = said(SandboxMode::BestEffort).await;
    if !sandbox.contains("namespaces") {
        return atlas_notice::skip(format_args!("this machine confines programs only in part ({sandbox})"));
    }
    assert_eq!(said, told("nothing", "refused"));
}

#[tokio::test]
async fn a_build_script_cannot_pass_a_part_off_as_the_whole() {
    if without_python() {
        return;
    }
    let Some(attacked) = Attacked::new() else { return };
    let stop = attacked.place.path().join("free/stop");
    std::fs::write(&stop, "").expect("writable");
    let mut stage = attacked.stage(SandboxMode::BestEffort, &[("FORGE", "1")]).await;
    let error = stage.run("greetlib==1.0", 1).await[0].error();
    assert!(error.starts_with("Pool error: could not install the agent's Python packages"), "{error}");
    // The script made what looks like the mark of a complete environment before it failed. It is installed again all the same.
    std::fs::remove_file(stop).expect("its own file");
    let end = stage.run("greetlib==1.0", 1).await.remove(0);
    assert!(end.output(&stage.controller).contains("writes elsewhere"), "{end:?}");
    stage.node.shutdown().await;
}
