//! The images: built by a real engine from the Dockerfile, and run as the chart runs them. There is no registry here, so the compiler's
//! image is one whose `cargo` copies the programs under test, and the bases have the C library and the Python of this machine.

mod bases;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use atlas_engine::Engine;
use serde_json::Value;

use crate::program::program;

const DOCKERFILE: &str = include_str!("../../../deploy/images/Dockerfile");
const COMPILE: &str = include_str!("../../../deploy/images/compile.sh");

/// The targets of the Dockerfile, and the program of each.
const PROGRAMS: [(&str, &str); 5] = [
    ("controller", "atlas-controller"),
    ("worker", "atlas-worker"),
    ("worker-python", "atlas-worker"),
    ("operator", "atlas-operator"),
    ("atlasctl", "atlasctl"),
];

const TOKEN: &str = "atl_root_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// How often the controller is asked; each time takes a container.
const TRIES: u32 = 60;

/// The user of the images.
const USER: u32 = 10_001;

/// How the chart confines its containers.
const CONFINED: [&str; 9] = [
    "--read-only",
    "--user",
    "10001:10001",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--tmpfs",
    "/tmp",
];

#[test]
fn images_are_built_and_run_as_the_chart_runs_them() {
    let Some(engine) = Engine::start() else { return };
    build(&engine);
    for (target, program) in PROGRAMS {
        let said = engine.done(&["run", "--rm", "--network", "none", &image(target), "--version"]);
        assert!(said.starts_with(program), "{said}");
    }
    engine.done(&["network", "create", "atlas"]);
    let root = engine.folder().join("auth");
    fs::create_dir(&root).expect("the folder is writable");
    write(&root.join("root.token"), TOKEN, 0o400);
    chown(root.join("root.token"), Some(USER), Some(USER)).expect("root changes owners");
    start_controller(&engine, &root);
    for (name, target) in [("w1", "worker"), ("w2", "worker-python")] {
        // Programs of packages start in it, as in a volume.
        let state = "/var/lib/atlas-worker:exec,uid=10001,gid=10001";
        let node = format!("ATLAS_NODE={name}");
        let worker = ["--name", name, "--tmpfs", state, "-e", &node, "-e", "ATLAS_CONTROLLERS=c1:7401"];
        let data = ["-e", "ATLAS_WORKER_DATA_DIR=/var/lib/atlas-worker"];
        start(&engine, target, &[&worker[..], &data].concat());
        settled(&engine, |nodes| nodes.to_string().contains(&format!("\"{name}\"")));
    }
    for name in ["c1", "w1", "w2"] {
        let (from, to) = (format!("{name}:/etc/ssl/certs/ca-certificates.crt"), engine.folder().join(name));
        engine.done(&["cp", &from, &to.display().to_string()]);
        assert_eq!(fs::read_to_string(to).expect("a file"), bases::AUTHORITIES, "{name} trusts public authorities");
    }

    for (agent, said) in [(agent(engine.folder()), "uid 10001"), (python_agent(engine.folder()), "class 10001")] {
        let volume = format!("{}:/agent:ro", agent.display());
        ctl(&engine, &["-v", &volume], &["deploy", "/agent"]).unwrap_or_else(|error| panic!("{error}"));
        let name = agent.file_name().and_then(|name| name.to_str()).expect("text");
        let output = ctl(&engine, &[], &["run", name]).unwrap_or_else(|error| panic!("{error}"));
        assert!(output.contains(said), "{output}");
    }

    // Kubernetes sends SIGTERM, and SIGKILL after a grace period.
    for name in ["w2", "w1", "c1"] {
        engine.done(&["stop", "--time", "30", name]);
        let code = engine.done(&["inspect", "--format", "{{.State.ExitCode}}", name]);
        assert_eq!(code, "0", "{name}: {}", engine.done(&["logs", "--tail", "5", name]));
    }
}

fn image(target: &str) -> String {
    format!("atlas/{target}:test")
}

/// Builds the images with the Dockerfile as it is.
fn build(engine: &Engine) {
    bases::make(engine);
    let context = engine.folder().join("context");
    let scripts = context.join("deploy/images");
    fs::create_dir_all(&scripts).expect("the folder is writable");
    write(&scripts.join("compile.sh"), COMPILE, 0o644);
    // Newer builders set these themselves, and the first one before the first line.
    write(&context.join("Dockerfile"), &format!("ARG BUILDPLATFORM\n{DOCKERFILE}"), 0o644);
    fs::create_dir(context.join("bin")).expect("the folder is writable");
    for name in ["atlas-controller", "atlas-worker", "atlas-operator", "atlasctl"] {
        // Without what only debuggers read, which is most of it.
        let stripped = Command::new("strip").arg("-o").arg(context.join("bin").join(name)).arg(program(name)).status();
        assert!(stripped.expect("strip comes with the C toolchain").success(), "{name}");
    }
    let (platform, processor) = (format!("linux/{}", bases::PROCESSOR.0), bases::PROCESSOR.0);
    let platform = [("BUILDPLATFORM", &*platform), ("BUILDARCH", processor), ("TARGETARCH", processor)];
    let arguments = platform.iter().chain(&bases::NAMES).flat_map(|(name, value)| {
        let argument = format!("{name}={value}");
        ["--build-arg".to_owned(), argument]
    });
    let arguments: Vec<String> = arguments.collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (folder, file) = (context.display().to_string(), context.join("Dockerfile").display().to_string());
    for (target, _) in PROGRAMS {
        let image = image(target);
        let what = ["build", "--quiet", "--file", &file, "--target", target, "--tag", &image];
        engine.done(&[&what[..], &arguments, &[&folder]].concat());
    }
}

fn start_controller(engine: &Engine, auth: &Path) {
    let volume = format!("{}:/etc/atlas:ro", auth.display());
    let places = ["--name", "c1", "--tmpfs", "/var/lib/atlas:uid=10001,gid=10001", "-v", &volume];
    let variables = [
        "ATLAS_DATA_DIR=/var/lib/atlas",
        "ATLAS_HTTP_LISTEN=0.0.0.0:7400",
        "ATLAS_WORKER_LISTEN=0.0.0.0:7401",
        "ATLAS_PEER_LISTEN=0.0.0.0:7402",
        "ATLAS_NAME=c1",
        "ATLAS_ADVERTISE=c1",
        "ATLAS_AUTH=tokens",
        "ATLAS_PLAIN_PORTS=true",
        "ATLAS_ROOT_TOKEN_FILE=/etc/atlas/root.token",
    ];
    let variables = variables.iter().flat_map(|variable| ["-e", variable]);
    start(engine, "controller", &places.into_iter().chain(variables).collect::<Vec<_>>());
    settled(engine, |_| true);
}

fn start(engine: &Engine, target: &str, options: &[&str]) {
    let image = image(target);
    engine.done(&[&["run", "--detach", "--network", "atlas"], &CONFINED[..], options, &[&image]].concat());
}

/// Runs `atlasctl` in a container.
fn ctl(engine: &Engine, options: &[&str], arguments: &[&str]) -> Result<String, String> {
    let (token, image) = (format!("ATLAS_TOKEN={TOKEN}"), image("atlasctl"));
    let reach = ["run", "--rm", "--network", "atlas", "-e", "ATLAS_SERVER=http://c1:7400", "-e", &token];
    let output = engine.client(&[&reach[..], &CONFINED, options, &[&image], arguments].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn nodes(engine: &Engine) -> Result<Value, String> {
    let listed = ctl(engine, &[], &["node", "list", "-o", "json"])?;
    serde_json::from_str(&listed).map_err(|error| error.to_string())
}

/// Waits until the controller answers, and its nodes are as wanted.
fn settled(engine: &Engine, wanted: impl Fn(&Value) -> bool) {
    let mut last = String::new();
    let found = (0..TRIES).any(|_| match nodes(engine) {
        Ok(nodes) => {
            last = nodes.to_string();
            wanted(&nodes)
        }
        Err(error) => {
            last = error;
            assert_ne!(engine.running(), 0, "{}", engine.done(&["logs", "c1"]));
            false
        }
    });
    assert!(found, "{last}\n{}", engine.done(&["logs", "--tail", "5", "c1"]));
}

/// An agent that needs nothing of its image.
fn agent(folder: &Path) -> PathBuf {
    let agent = folder.join("hello");
    fs::create_dir(&agent).expect("the folder is writable");
    let contract =
        "agent:\n  name: hello\n  version: 1.0.0\n  provider:\n    type: exec\n    command: [./busybox, sh, run.sh]\n";
    write(&agent.join("agent.yaml"), contract, 0o644);
    let script = "read -r line\nprintf '{\"said\": \"uid %s\"}' \"$(./busybox id -u)\"\n";
    write(&agent.join("run.sh"), script, 0o644);
    fs::copy(folder.join("shell/bin/busybox"), agent.join("busybox")).expect("a copy");
    agent
}

/// An agent that is a Python class.
fn python_agent(folder: &Path) -> PathBuf {
    let agent = folder.join("snake");
    fs::create_dir(&agent).expect("the folder is writable");
    let contract = "agent:\n  name: snake\n  version: 1.0.0\n  provider: { type: python }\n";
    write(&agent.join("agent.yaml"), contract, 0o644);
    let class = "import getpass\nimport os\n\nfrom atlas.runtime.base import AgentBase\n\n\nclass Agent(AgentBase):\n    async def execute(self, input_data):\n        return {\"said\": f\"class {os.getuid()} of {getpass.getuser()}\"}\n";
    write(&agent.join("agent.py"), class, 0o644);
    agent
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("the folder is writable");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its own file");
}
