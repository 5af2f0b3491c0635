//! Models that the worker runs itself, with a package from a folder of wheels.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use atlas_model::DOCUMENTS_CONTRACT;
use atlas_retrieval::Vectors;
use atlas_worker::{Options, SandboxMode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::scene::{Scene, contract};
use super::stored::with;
use crate::support::{End, without_python};

/// Names a folder with what `pip download 'wordllama==0.4.*'` fetches.
const WHEELS: &str = "ATLAS_TEST_WORDLLAMA_WHEELS";

/// Writes the wheel of a package that is called like the model, and does what its texts say.
const WHEEL: &str = r#"
import sys, zipfile
package = '''
import os, socket
print("noise of a package")

class Token:
    def __init__(self, text):
        self.attention_mask = [1] * len(text.split())

class Model:
    def tokenize(self, texts):
        return [Token(text) for text in texts]
    def embed(self, texts, return_np=True):
        assert return_np is False
        self.tokenize(texts)
        return [row(text) for text in texts]

class WordLlama:
    @staticmethod
    def load(config, dim, cache_dir, disable_download):
        assert (config, dim, disable_download) == ("l2_supercat", 256, True)
        assert os.path.samefile(cache_dir, os.path.dirname(__file__))
        return Model()

def row(text):
    word, *more = text.split()
    if word == "crash":
        print("out of luck", file=__import__("sys").stderr)
        os._exit(3)
    if word == "refuse":
        raise ValueError("no vector for this")
    if word == "babble":
        for fd in range(3, 32):
            try:
                os.write(fd, b"hello\\n")
            except OSError:
                pass
    numbers = [1.0] + [0.0] * 255
    if word == "look":
        port, path, secret = more
        numbers[1] = float(reaches(int(port)))
        numbers[2] = float(reads(path))
        numbers[3] = float(secret in os.environ)
        return numbers
    for letter in text.encode():
        numbers[letter] += 1.0
    return numbers

def reaches(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False

def reads(path):
    try:
        return open(path).read() != ""
    except OSError:
        return False
'''
about = "Metadata-Version: 2.1\nName: wordllama\nVersion: 0.4.9\n"
with zipfile.ZipFile(sys.argv[1] + "/wordllama-0.4.9-py3-none-any.whl", "w") as wheel:
    wheel.writestr("wordllama/__init__.py", package)
    wheel.writestr("wordllama-0.4.9.dist-info/METADATA", about)
    wheel.writestr("wordllama-0.4.9.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("wordllama-0.4.9.dist-info/RECORD", "")
"#;

fn wheels() -> tempfile::TempDir {
    let python = atlas_worker::Python::find(None).expect("there is one");
    let folder = tempfile::tempdir().expect("temporary directory");
    let written = Command::new(python.program).args(["-c", WHEEL]).arg(folder.path()).status();
    assert!(written.expect("Python starts").success());
    folder
}

/// A worker that installs packages from this folder only.
async fn scene(files: &[(&str, &str)], wheels: &Path, change: impl FnOnce(&mut Options)) -> Scene {
    let folder = wheels.as_os_str().to_owned();
    Scene::set_with(files, |options| {
        let variable = |name: &str, value: OsString| (OsString::from(name), value);
        options.pip_environment = vec![variable("PIP_NO_INDEX", "1".into()), variable("PIP_FIND_LINKS", folder)];
        change(options);
    })
    .await
}

async fn documents(wheels: &Path) -> Scene {
    scene(&[("agent.yaml", DOCUMENTS_CONTRACT)], wheels, |_| {}).await
}

/// Without other tries, so that each failure is seen.
fn model(dimensions: &str) -> Value {
    json!({"provider": "local", "name": "wordllama", "type": "embedding", "retry": {"attempts": 1},
        "parameters": {"dimensions": dimensions}})
}

/// The end of a job of the agent for document bases.
async fn asked(scene: &mut Scene, purpose: &str, texts: &[&str], dimensions: &str) -> End {
    scene.journal = atlas_types::Journal::default();
    let input = json!({"model": "near", "purpose": purpose, "texts": texts}).to_string();
    let only = with(scene.attempt(1, &input), &[("near", model(dimensions))]);
    scene.run(&only).await
}

async fn question(scene: &mut Scene, text: &str) -> Vec<f32> {
    let end = asked(scene, "question", &[text], "64").await;
    let output: Value = serde_json::from_str(&end.output(&scene.controller)).expect("JSON");
    serde_json::from_value(output["question"].clone()).expect("numbers")
}

async fn fails(scene: &mut Scene, text: &str, expected: &Expect) {
    let end = asked(scene, "question", &[text], "64").await;
    let error = end.error();
    let own = error.strip_prefix("the model \"near\" of the search of documents: ").expect("the model is named");
    expected
        .assert_eq(own.strip_suffix(" (model \"near\", wordllama on this worker, 1 try)").expect("as is where it is"));
}

#[tokio::test]
async fn vectors_are_made_on_the_worker() {
    if without_python() {
        return;
    }
    let wheels = wheels();
    let mut scene = documents(wheels.path()).await;
    let texts: Vec<String> = (1..=150).map(|count| "a b ".repeat(count)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let end = asked(&mut scene, "document", &texts, "128").await;
    let output: Value = serde_json::from_str(&end.output(&scene.controller)).expect("JSON");
    assert_eq!(output["dimension"], 128);
    let bytes = STANDARD.decode(output["vectors"].as_str().expect("a text")).expect("Base64");
    let vectors = Vectors::from_bytes(128, &bytes).expect("vectors");
    let row = |text: &&str| {
        let mut row = [0.0_f32; 128];
        row[0] = 1.0;
        text.bytes().for_each(|letter| row[usize::from(letter)] += 1.0);
        row
    };
    assert_eq!(vectors, Vectors::from_rows(128, texts.iter().map(row)).expect("vectors"));
    // Two words for each "a b ".
    assert_eq!(output["tokens"], 150 * 151);
    assert_eq!(Scene::metadata(&end)["_trace_model"], "wordllama");
    let cost: u64 = scene.journal.steps.iter().map(|step| step.usage.cost_nanodollars).sum();
    assert_eq!(cost, 0);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_crash_costs_one_call() {
    if without_python() {
        return;
    }
    let wheels = wheels();
    let mut scene = documents(wheels.path()).await;
    fails(&mut scene, "crash", &expect!["the process of the local model wordllama ended: out of luck"]).await;
    assert_eq!(question(&mut scene, "a").await.len(), 64);
    let babble = expect![[r#"the process of the local model wordllama ended: it said what is no answer: "hello""#]];
    fails(&mut scene, "babble", &babble).await;
    fails(&mut scene, "refuse", &expect!["the local model wordllama: ValueError: no vector for this"]).await;
    assert_eq!(question(&mut scene, "b").await.len(), 64);
    let long = expect!["the local model wordllama: text 0 has 70000 bytes, more than 65536; make smaller chunks"];
    fails(&mut scene, &"x".repeat(70_000), &long).await;
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_worker_without_the_package_says_what_it_needs() {
    if without_python() {
        return;
    }
    let empty = tempfile::tempdir().expect("temporary directory");
    let mut scene = documents(empty.path()).await;
    let package = expect![
        "the local model wordllama could not be installed: Could not find a version that satisfies the requirement wordllama==0.4.* (from versions: none); No matching distribution found for wordllama==0.4.*; the worker needs an index of Python packages (PIP_INDEX_URL), or a folder with the packages of `pip download 'wordllama==0.4.*'` (PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER)"
    ];
    fails(&mut scene, "a", &package).await;
    scene.node.shutdown().await;
    let mut scene = scene_without_python(empty.path()).await;
    let python = expect![
        "the local model wordllama needs Python: this node has no Python 3.11 or later (tried /no/python); install it on the worker, or name it with --python"
    ];
    fails(&mut scene, "a", &python).await;
    scene.node.shutdown().await;
}

async fn scene_without_python(wheels: &Path) -> Scene {
    let files = [("agent.yaml", DOCUMENTS_CONTRACT)];
    scene(&files, wheels, |options| options.python = Some("/no/python".into())).await
}

#[tokio::test]
async fn a_probe_makes_the_model_ready() {
    if without_python() {
        return;
    }
    let wheels = wheels();
    let text = contract("    probe: yes\n", "");
    let mut scene =
        scene(&[("agent.yaml", &text)], wheels.path(), |options| options.idle_timeout = Duration::ZERO).await;
    // On a busy machine the installation takes longer than a probe.
    crate::support::in_time("the model is ready", async {
        loop {
            let only = with(scene.attempt(1, "{}"), &[("small", model("256"))]);
            let end = scene.run(&only).await;
            let output: Value = serde_json::from_str(&end.output(&scene.controller)).expect("JSON");
            if output["health"] == "reachable" {
                break;
            }
            assert_eq!(
                output["error"],
                "the worker still makes the model ready, and goes on with it; calls wait for it"
            );
        }
    })
    .await;
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_model_has_no_network_no_files_and_no_secrets() {
    if without_python() {
        return;
    }
    let wheels = wheels();
    let door = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = door.local_addr().expect("an address").port();
    // Not among the temporary files, which are hidden as a whole.
    let Some(place) = crate::elsewhere::folder() else { return };
    let file = place.path().join("secret");
    std::fs::write(&file, "CANARY").expect("writable");
    // What agents get of the environment, the model does not get.
    let text = format!("look {port} {} CARGO_MANIFEST_DIR", file.display());
    let mut seen = Vec::new();
    for mode in [SandboxMode::Off, SandboxMode::BestEffort] {
        let change = |options: &mut Options| {
            options.sandbox = mode;
            options.agent_environment = vec!["CARGO_MANIFEST_DIR".to_owned()];
        };
        let mut scene = scene(&[("agent.yaml", DOCUMENTS_CONTRACT)], wheels.path(), change).await;
        seen.push(
            question(&mut scene, &text).await.iter().skip(1).take(3).map(|number| *number > 0.0).collect::<Vec<_>>(),
        );
        scene.node.shutdown().await;
    }
    assert_eq!(seen[0], [true, true, false]);
    if seen[1][0] || seen[1][1] {
        return atlas_notice::skip("this machine confines programs only in part");
    }
    assert_eq!(seen[1], [false, false, false]);
}

#[tokio::test]
async fn the_real_model_knows_what_texts_are_about() {
    if without_python() {
        return;
    }
    let Some(wheels) = std::env::var_os(WHEELS) else {
        return atlas_notice::skip(format_args!("{WHEELS} names no folder with the package wordllama"));
    };
    let mut scene = documents(Path::new(&wheels)).await;
    let mut vectors = Vec::new();
    for text in ["time off work", "thirty days of leave and holidays a year", "replace the hard disk of a laptop"] {
        vectors.push(question(&mut scene, text).await);
    }
    let near = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum::<f32>();
    assert!(near(0, 1) > near(0, 2), "{} {}", near(0, 1), near(0, 2));
    scene.node.shutdown().await;
}
