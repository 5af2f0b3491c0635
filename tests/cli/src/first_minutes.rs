//! The first minutes of a new user: start, run, make a mistake.

use std::fs;
use std::net::TcpListener;

use atlas_cluster_tests::{Agent, Dev, write_agent};
use expect_test::expect_file;

use crate::laptop::Laptop;
use crate::mask::mask;
use crate::session::Session;

/// The agent from `docs/start.md`.
pub(crate) const HELLO: Agent<'static> = Agent {
    name: "hello",
    version: "0.1.0",
    contract: "  input:
    schema:
      type: object
      properties: { name: { type: string, minLength: 1 } }
      required: [name]
      additionalProperties: false
  output:
    schema:
      type: object
      properties: { greeting: { type: string } }
      required: [greeting]",
    script: r#"name=$(sed -n 's/.*"name": *"\([^"]*\)".*/\1/p')
printf '{"greeting":"Hello, %s"}' "$name""#,
};

#[test]
fn dev_says_where_everything_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(folder.path(), ["--agents", "./agents"]);
    expect_file!["../transcripts/dev.txt"].assert_eq(&mask(&dev.text()));
    assert_eq!(dev.interrupt(), Some(0));
    assert!(folder.path().join(".atlas").is_dir(), "state is kept between runs");
}

#[test]
fn dev_takes_the_options_of_controllers_and_workers() {
    let folder = tempfile::tempdir().expect("a folder");
    // The agent returns an environment variable that cargo sets for every test.
    let script = r#"printf '{"found":"%s"}' "$CARGO_PKG_NAME""#;
    let tells = Agent { name: "tells", version: "0.1.0", contract: "", script };
    write_agent(&folder.path().join("agents"), &tells);
    fs::write(folder.path().join("controller.toml"), "[http]\nbody-max = \"4KiB\"\n").expect("written");
    let options = ["--agents", "./agents", "--controller-config", "controller.toml", "--agent-env", "CARGO_PKG_NAME"];
    let dev = Dev::start(folder.path(), options.into_iter().chain(["--agent-env", "NOT_SET_ANYWHERE"]));
    let told = "PATH HOME LANG LC_ALL TMPDIR TZ CARGO_PKG_NAME NOT_SET_ANYWHERE (not set); more with --agent-env NAME";
    assert!(dev.text().contains(told), "{}", dev.text());
    let server = dev.server().to_owned();
    let mut session = Session::new("", folder.path(), Some(&server));
    assert_eq!(session.quiet("atlasctl run tells").trim(), r#"{"found":"atlas-cli-tests"}"#);
    let large = session.quiet(&format!("atlasctl run tells x={} 2>&1", "x".repeat(8_000)));
    assert!(large.contains("E3006"), "{large}");
    let wrong = session.quiet("atlasctl dev --port 0 --ephemeral --http-body-max much 2>&1; echo $?");
    assert!(wrong.contains("\"much\" is not a valid http.body-max"), "{wrong}");
    assert!(wrong.ends_with("2\n"), "{wrong}");
    assert_eq!(dev.interrupt(), Some(0));
}

#[test]
fn a_taken_port_is_told_with_its_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port();
    let mut session = Session::new("A port is taken", folder.path(), None);
    session.run(&format!("atlasctl dev --ephemeral --port {port}"));
    let page = session.page().replace(&format!("--port {port}"), "--port <port>");
    expect_file!["../transcripts/port-taken.txt"].assert_eq(&page);
}

#[test]
fn an_agent_in_a_file() {
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("An agent in a file");
    session.run("atlasctl init hello");
    session.run("cat hello/agent.yaml");
    session.run("atlasctl deploy ./hello");
    session.run(r#"atlasctl run hello --input '{"name":"Ada"}'"#);
    session.run("atlasctl run hello name=Ada");
    session.run(r#"atlasctl run hello --input '{"nme":"Ada"}'"#);
    session.run("atlasctl init hello");
    session.run("atlasctl init --template python agents/polite && atlasctl test .");
    session.run("sed -i s/Hello/Goodbye/ hello/agent.sh && atlasctl test . --junit results.xml");
    session.run("grep -c testcase results.xml");
    session.run("atlasctl deploy hello");
    session.run("atlasctl deploy hello --replace");
    session.run("atlasctl deploy hello --replace --no-test -o name");
    session.run("echo 'inptu: {}' > hello/tests/wrong.yaml; atlasctl test hello");
    session.run("atlasctl test agents/polite/tests");
    session.run("atlasctl init --template rust x");
    expect_file!["../transcripts/init.txt"].assert_eq(&session.page());
}

#[test]
fn a_name_may_hold_blanks_and_slashes() {
    let laptop = Laptop::with(&[]);
    write_agent(laptop.folder(), &HELLO);
    let contract = laptop.folder().join("hello/agent.yaml");
    let text = fs::read_to_string(&contract).expect("there").replace("name: hello", "name: a b/c");
    fs::write(&contract, text).expect("written");
    let mut session = laptop.session("A name with a blank and a slash");
    session.run("atlasctl deploy hello");
    session.run("atlasctl run 'a b/c' name=Ada");
    session.run("atlasctl job list -o jsonpath=[*].agent_name");
    session.run("atlasctl agent show 'a b/c' -o name");
    session.run("atlasctl agent versions 'a b/c' -o name");
    session.run("atlasctl describe 'agent/a b/c' -o name");
    session.run("atlasctl agent retire 'a b/c' 0.1.0 -o name");
    session.run("atlasctl agent list -o name");
    session.run("sed -i 's|a b/c|../c|' hello/agent.yaml && atlasctl deploy hello");
    expect_file!["../transcripts/strange-name.txt"].assert_eq(&session.page());
}

#[test]
fn run_it_and_get_it_wrong_once() {
    let laptop = Laptop::with(&[&HELLO]);
    fs::write(laptop.folder().join("ada.json"), r#"{"name": "Ada"}"#).expect("written");
    let mut session = laptop.session("Run it, and get it wrong once");
    session.run(r#"atlasctl run hello --input '{"name":"Ada"}'"#);
    session.run("atlasctl run hello name=Ada");
    session.run(r#"atlasctl run hello '{"name":"Ada"}'"#);
    session.run("atlasctl run hello --input @ada.json");
    session.run("atlasctl run hello --input - < ada.json");
    session.run(r#"atlasctl run hello --input '{"nme":"Ada"}'"#);
    session.run("atlasctl run helo name=Ada");
    session.run("atlasctl run hello Ada");
    expect_file!["../transcripts/run.txt"].assert_eq(&session.page());
}

#[test]
fn watch_it() {
    let laptop = Laptop::with(&[&HELLO]);
    let mut session = laptop.session("Watch it");
    let id = session.run("atlasctl run hello name=Ada --label demo=1 --detach");
    let id = id.trim();
    session.run(&format!("atlasctl job wait {id}"));
    session.run(&format!("atlasctl job show {}", id.get(..12).unwrap_or(id)));
    session.run("atlasctl top");
    session.run(&format!("atlasctl job explain {id}"));
    session.run(&format!("atlasctl job result {id}"));
    session.run(&format!("atlasctl job watch {id}"));
    session.run(&format!("atlasctl job events {id}"));
    session.run(&format!("atlasctl job logs {id}"));
    session.run(&format!("atlasctl job cancel {id}"));
    session.run("atlasctl job list");
    session.run("atlasctl job list -o name");
    session.run("atlasctl job show job-0000000000000000");
    session.run("atlasctl agent list");
    session.run("atlasctl agent show hello");
    session.run("atlasctl agent schema hello --only-output");
    session.run("atlasctl node list -o name");
    session.run("atlasctl version");
    expect_file!["../transcripts/watch.txt"].assert_eq(&session.page());
}
