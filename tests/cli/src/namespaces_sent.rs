//! Every verb about things in a namespace says in which one: each is run with `-n` against a server that records what it is asked.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use atlas_cluster_tests::{program, write_agent};

use crate::first_minutes::HELLO;

/// The verbs with arguments that let them ask the server.
const ASK: &[&str] = &[
    "deploy hello",
    "run x",
    "chat x",
    "ask --agent x hello",
    "logs x",
    "explain job-0000000000000001",
    "top",
    "doctor",
    "job list",
    "job show job-1",
    "job watch job-1",
    "job logs job-1",
    "job events job-1",
    "job explain job-1",
    "job result job-1",
    "job wait job-1",
    "job cancel job-1",
    "job message job-1 1",
    "job answer job-1 yes",
    "job retry job-1",
    "job resolve job-1 --run-again",
    "job erase job-1 --yes",
    "job batch cancel --yes",
    "job batch retry --yes",
    "job tree job-1",
    "job cost job-1",
    "job trace job-1",
    "job steps job-1",
    "job transcript job-1",
    "job replay job-1",
    "job fork job-1 --from-step 2",
    "agent list",
    "agent search x",
    "agent show x",
    "agent schema x",
    "types x",
    "agent versions x",
    "agent revisions x@1.0.0",
    "agent rollback x@1.0.0",
    "agent diff x y",
    "agent data-set x",
    "agent eval x --data cases",
    "agent deprecate x 1.0.0",
    "agent resume x 1.0.0",
    "agent retire x 1.0.0",
    "agent delete x@1.0.0",
    "model add m --provider openai --name gpt --no-probe",
    "model list",
    "model show m",
    "model check m",
    "model login m --no-browser",
    "model logout m",
    "model remove m",
    "model tier fast m",
    "secret set s --file value",
    "secret rotate s --file value",
    "secret list",
    "secret show s",
    "secret who-can-read s",
    "secret remove s",
    "conversation list",
    "conversation show c",
    "conversation export c",
    "conversation branch c d",
    "conversation rename c d",
    "conversation delete c",
    "memory show",
    "memory append x",
    "memory set x",
    "memory history",
    "memory compact --model m",
    "memory clear --yes",
    "knowledge add x",
    "knowledge get x",
    "knowledge search x",
    "knowledge list",
    "knowledge update x y",
    "knowledge delete x",
    "knowledge domains",
    "knowledge acl",
    "knowledge import facts",
    "knowledge export out",
    "rag create x",
    "rag add x facts",
    "rag list",
    "rag list x",
    "rag show x",
    "rag search x y",
    "rag explain x y",
    "rag eval x judged",
    "rag remove x y",
    "rag rebuild x",
    "rag refresh x",
    "rag delete x --yes",
    "rag export x out",
    "rag import facts/base.yaml",
    "graph run x",
    "graph history job-1",
    "graph watch job-1",
    "graph resume job-1",
    "graph fork job-1 --from-step 2",
    "skill list",
    "skill show s",
    "skill test s",
    "skill remove s",
    "chain list",
    "chain show c",
    "chain check c",
    "chain graph c",
    "chain run c",
    "chain runs",
    "trigger create t --every 60s --agent x",
    "trigger list",
    "trigger show t",
    "trigger test t",
    "trigger pause t",
    "trigger resume t",
    "trigger fire t",
    "trigger next t",
    "trigger deliveries t",
    "trigger backfill t --from @1795348867",
    "trigger delete t",
    "question list",
    "question show question-0000000000000001",
    "question answer question-0000000000000001 yes",
    "orchestrator show",
    "orchestrator list",
    "orchestrator set o",
    "orchestrator reset",
    "orchestrator compare",
    "orchestrator swap",
    "orchestrator rollback",
    "policy list",
    "policy show p",
    "policy why x",
    "policy remove p",
    "auth token list",
    "auth token revoke t",
    "trace list",
    "trace show t",
    "mcp check",
    "mcp pin x",
    "mcp unpin x",
    "mcp add s --url http://127.0.0.1:1/mcp",
    "mcp list",
    "mcp show s",
    "mcp test s",
    "mcp accept-changes s",
    "mcp login s --no-browser",
    "mcp logout s",
    "mcp remove s",
    "peer add p=http://127.0.0.1:1/mcp",
    "peer list",
    "peer remove p",
    "event tail",
    "get job",
    "get webhook",
    "describe agent x",
    "apply hello",
    "diff hello",
    "delete webhook w",
    "edit webhook w",
    "label webhook w a=b",
    "wait job job-1",
];

/// Verbs about this machine, the cluster, or what belongs to the cluster, and those that ask a server only with more files than this test has.
const OTHERS: &[&str] = &[
    "dev",
    "dev kill",
    "dev start",
    "init",
    "test",
    "step",
    "node list",
    "node show",
    "node gpus",
    "node drain",
    "node cordon",
    "node uncordon",
    "node resume",
    "node label",
    "node remove",
    "node token",
    "node revoke",
    "model prices",
    "secret import",
    "import pallas",
    "import loki",
    "graph check",
    "graph show",
    "skill deploy",
    "auth whoami",
    "auth token create",
    "auth oidc set",
    "auth oidc list",
    "auth oidc show",
    "auth oidc remove",
    "auth bind",
    "auth unbind",
    "auth bindings",
    "auth roles",
    "auth root-token",
    "login",
    "logout",
    "audit tail",
    "audit query",
    "audit verify",
    "audit receipt",
    "audit export",
    "mcp connect",
    "mcp disconnect",
    "mcp stdio",
    "cluster status",
    "cluster members",
    "cluster join-token",
    "cluster transfer-leader",
    "cluster remove",
    "operator init",
    "operator secret",
    "operator snapshot save",
    "operator snapshot inspect",
    "operator snapshot restore",
    "operator raft log",
    "operator raft recover",
    "context list",
    "context show",
    "context use",
    "context add",
    "context remove",
    "config get",
    "config set",
    "config edit",
    "completion",
    "docs",
    "explain-error",
    "version",
];

/// The paths of operations that take a namespace, from the reference that the controller generates.
fn takes_namespace(path: &str) -> bool {
    let fits = |template: &str| {
        let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        let same = |(template, part): (&&str, &&str)| template.starts_with('{') || template == part;
        template.len() == path.len() && template.iter().zip(&path).all(same)
    };
    let sections = include_str!("../../../docs/reference/api.md").split("\n## ");
    let with = sections.filter(|section| section.contains("* `namespace`, in the query"));
    let paths = with.filter_map(|section| section.lines().next()?.split_once(' ').map(|(_, path)| path));
    path == "/mcp" || (path != "/api/audit" && paths.into_iter().any(fits))
}

/// Notes what is asked, and refuses everything that a namespace has. The rest is there and empty.
#[expect(clippy::disallowed_methods, reason = "the threads serve one test")]
fn recording() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, asked) = (listener.local_addr().expect("an address"), Arc::new(Mutex::new(Vec::new())));
    let notes = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let notes = Arc::clone(&notes);
            std::thread::spawn(move || answer(stream, &notes));
        }
    });
    (address, asked)
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.take(length).read_to_end(&mut Vec::new()).ok()?;
    let path = target.split('?').next().unwrap_or_default();
    let (status, body) = match path {
        path if takes_namespace(path) => ("404 Not Found", r#"{"code": "E3001", "detail": "nothing is here"}"#),
        "/api/nodes" => ("200 OK", "[]"),
        _ => ("200 OK", "{}"),
    };
    asked.lock().expect("not poisoned").push(target);
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: application/json");
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()
}

fn run(folder: &Path, server: SocketAddr, verb: &str) -> String {
    let mut command = Command::new(program("atlasctl"));
    command.args(["--server", &format!("http://{server}"), "-n", "team"]).args(verb.split(' '));
    command.env_clear().env("HOME", folder).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir(folder).stdin(Stdio::null());
    let output = command.output().expect("it runs");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_verb_sends_the_namespace() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(folder.path(), &HELLO);
    std::fs::write(folder.path().join("value"), "x").expect("written");
    std::fs::create_dir_all(folder.path().join("facts/general")).expect("a folder");
    std::fs::write(folder.path().join("facts/general/a.md"), "x").expect("written");
    std::fs::write(folder.path().join("facts/base.yaml"), "files: {}\n").expect("written");
    std::fs::write(folder.path().join("judged"), "{\"question\": \"a\", \"sources\": [\"b\"]}\n").expect("written");
    std::fs::write(folder.path().join("cases"), "{\"input\": {}}\n").expect("written");
    let (server, asked) = recording();
    let mut wrong = Vec::new();
    for verb in ASK {
        asked.lock().expect("not poisoned").clear();
        let said = run(folder.path(), server, verb);
        let asked = asked.lock().expect("not poisoned").clone();
        let of_namespace = |target: &&String| takes_namespace(target.split('?').next().unwrap_or_default());
        let about: Vec<&String> = asked.iter().filter(of_namespace).collect();
        let says = |target: &&String| target.split(['?', '&']).any(|part| part == "namespace=team");
        if about.is_empty() || !about.iter().all(says) {
            wrong.push(format!("{verb}: {asked:?} {said}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_verb_is_on_one_of_the_lists() {
    let headings = include_str!("../../../docs/reference/cli.md").lines();
    let verbs: BTreeSet<&str> = headings.filter_map(|line| line.strip_prefix("## atlasctl ")).collect();
    let is_group = |verb: &&str| verbs.iter().any(|other| other.starts_with(&format!("{verb} ")));
    let is_listed = |verb: &&str| {
        OTHERS.contains(verb) || ASK.iter().any(|line| line == verb || line.starts_with(&format!("{verb} ")))
    };
    let missing: Vec<&&str> = verbs.iter().filter(|verb| !is_listed(verb) && !is_group(verb)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}
