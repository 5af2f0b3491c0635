//! An agent whose Python packages come from a slow index: its job says what it waits for, and its execution timeout begins afterwards.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use atlas_env::Env;
use atlas_package::pack;
use serde_json::json;

use crate::api::Api;
use crate::pair::{Controller, worker_command};
use crate::{LONG, Process, eventually, program};

/// Longer than the agent may run.
const HELD: Duration = Duration::from_millis(2_500);

const CONTRACT: &str = "agent:
  name: greeter
  version: 1.0.0
  execution_timeout: 2
  dependencies: { packages: [greetlib] }
";

const CODE: &str = "import greetlib
from atlas.runtime.base import AgentBase

class Greeter(AgentBase):
    async def execute(self, input_data):
        return {'said': greetlib.hi()}
";

/// Writes the wheel of a package `greetlib` whose `hi` says hi.
const WHEEL: &str = r#"
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("greetlib.py", "def hi():\n    return 'hi'\n")
    wheel.writestr("greetlib-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greetlib\nVersion: 1.0\n")
    wheel.writestr("greetlib-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("greetlib-1.0.dist-info/RECORD", "")
"#;

const FILE: &str = "greetlib-1.0-py3-none-any.whl";

/// A package index that answers nothing before it is opened.
struct Index {
    address: SocketAddr,
    open: Sender<()>,
}

impl Index {
    fn start(wheel: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (open, opened) = channel();
        let serve = move || serve(&listener, &opened, &wheel);
        thread::Builder::new().name("index".to_owned()).spawn(serve).expect("a thread");
        Self { address, open }
    }
}

fn serve(listener: &TcpListener, opened: &Receiver<()>, wheel: &[u8]) {
    // It fails once a test that ends has dropped the other end.
    while let Ok((stream, _)) = listener.accept() {
        if opened.recv().is_err() {
            return;
        }
        // pip asks again if it goes away.
        let _ = answer(stream, wheel);
    }
}

fn answer(mut stream: TcpStream, wheel: &[u8]) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let page = format!("<a href=\"/{FILE}\">{FILE}</a>");
    let (kind, body) = match request.contains(FILE) {
        true => ("application/octet-stream", wheel),
        false => ("text/html", page.as_bytes()),
    };
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len())?;
    stream.write_all(b"Connection: close\r\n\r\n")?;
    stream.write_all(body)
}

/// The wheel; none, and says so, if there is no Python to write it.
fn wheel(folder: &Path) -> Option<Vec<u8>> {
    let path = folder.join(FILE);
    let written = Command::new("python3").args(["-c", WHEEL]).arg(&path).status();
    if !written.is_ok_and(|status| status.success()) {
        atlas_notice::skip("there is no python3");
        return None;
    }
    Some(fs::read(path).expect("readable"))
}

fn show(controller: &Controller, id: &str) -> String {
    let mut command = Command::new(program("atlasctl"));
    command.args(["job", "show", id]).env("ATLAS_SERVER", format!("http://{}", controller.http)).env("NO_COLOR", "1");
    let Output { status, stdout, stderr } = command.output().expect("atlasctl runs");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("UTF-8")
}

#[tokio::test]
async fn a_job_says_what_it_prepares_and_its_timeout_begins_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(wheel) = wheel(folder.path()) else { return };
    let index = Index::start(wheel);
    let controller = Controller::start(folder.path());
    let mut worker = worker_command(folder.path(), &controller);
    for setting in ["PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_EXTRA_INDEX_URL"] {
        worker.env_remove(setting);
    }
    worker.env("PIP_INDEX_URL", format!("http://{}/simple", index.address));
    worker.env("PIP_CONFIG_FILE", "/dev/null").env("PIP_NO_CACHE_DIR", "1");
    let worker = Process::start(&mut worker);
    let agent = folder.path().join("greeter");
    fs::create_dir(&agent).expect("a folder");
    fs::write(agent.join("agent.yaml"), CONTRACT).expect("written");
    fs::write(agent.join("agent.py"), CODE).expect("written");
    let api = Api::new(&controller.http.to_string());
    api.register(pack(&agent).expect("a package").bytes).await;

    let id = api.submit("greeter", json!({})).await;
    let clock = Env::system().clock;
    let prepares =
        || show(&controller, &id).contains("running: preparing: installing 1 package").then(|| clock.monotonic());
    let since = eventually("the job says that it prepares", LONG, prepares);
    eventually("it prepares for longer than it may run", LONG, || {
        let now = prepares().unwrap_or_else(|| panic!("it does not prepare: {}", show(&controller, &id)));
        (now - since > HELD).then_some(())
    });
    // One for the page, one for the wheel, and some for a pip that asks more.
    for _ in 0..8 {
        index.open.send(()).expect("the index is there");
    }
    let job = api.wait(&id).await;
    assert_eq!((&job["status"], &job["output_data"]), (&json!("completed"), &json!({"said": "hi"})), "{job}");
    let shown = show(&controller, &id);
    assert!(!shown.contains("preparing"), "{shown}");
    drop(worker);
}
