//! Deployment files that are accepted and refused.

use expect_test::expect;
use serde_json::json;

use super::*;

fn read(text: &str) -> Result<Deployment, String> {
    Deployment::read(text.as_bytes(), Path::new("."))
}

const FILE: &str = "
name: my-project
version: '1.2.0'
host: my-host.example.com
namespace: com.example.project
registry_port: 8200
agents:
  jarvis:
    module: agents.jarvis
    port: 8201
    title: Jarvis
    description: My assistant
    depends_on: [research]
    instance_scope: shared
  research:
    module: agents.research
    max_iterations: 7
    loop_repeat_threshold: 0
";

#[test]
fn an_agent_comes_after_those_that_it_needs() {
    let deployment = read(FILE).expect("a deployment");
    let names: Vec<&str> = deployment.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["research", "jarvis"]);
    assert_eq!(deployment.listeners("127.0.0.1"), "jarvis=127.0.0.1:8201");
    let [research, jarvis] = &deployment.agents[..] else { panic!("two agents") };
    assert_eq!((research.max_iterations, research.loop_repeat_threshold), (Some(7), Some(0)));
    assert_eq!((jarvis.max_iterations, deployment.registry_port), (None, Some(8200)));
}

#[test]
fn ports_are_at_the_host_of_the_file() {
    let address = |host: &str| {
        let text = FILE.replace("my-host.example.com", host);
        read(&text).expect("a deployment").address()
    };
    for (host, wanted) in [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("'::1'", "[::1]"),
        ("'[::1]'", "[::1]"),
        ("192.168.1.7", "192.168.1.7"),
        ("my-host.example.com", "0.0.0.0"),
    ] {
        assert_eq!(address(host), wanted, "{host}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let agent = |members: &str| format!("name: x\nagents: {{a: {{module: m, {members}}}}}");
    let circle = "name: x\nagents: {a: {module: m, depends_on: [b]}, b: {module: m, depends_on: [c]}, c: {module: m, depends_on: [b]}}";
    let mut told = String::new();
    for text in [
        "[]",
        "name: x",
        "agents: {a: {module: m}}",
        "nam: x\nagents: {a: {module: m}}",
        "name: x\nagents: {a: {port: 1}}",
        "name: x\nagents: {a: 1}",
        "name: x\nregistry_port: 70000\nagents: {a: {module: m}}",
        &agent("dependson: [b]"),
        &agent("depends_on: [b]"),
        &agent("depends_on: b"),
        &agent("port: 0"),
        &agent("max_iterations: 0"),
        &agent("instance_scope: all"),
        circle,
        "name: x\nagents: {a: {module: m, depends_on: [a]}}",
    ] {
        told.push_str(&format!("{}\n", read(text).expect_err(text)));
    }
    expect![[r#"
        it is not a mapping
        agents is missing: a mapping with at least one agent
        name is missing
        unknown key nam; did you mean "name"?
        agents.a.module is missing
        agents.a is not a mapping
        registry_port is not a whole number from 1 to 65535
        unknown key agents.a.dependson; did you mean "depends_on"?
        agents.a.depends_on names "b", which is no agent of the file; did you mean "a"?
        agents.a.depends_on is not a list of names
        agents.a.port is not a whole number from 1 to 65535
        agents.a.max_iterations is not a whole number from 1 to 1000000
        agents.a.instance_scope is none of shared, connection and request
        agents depend on each other in a circle: b -> c -> b
        agents depend on each other in a circle: a -> a
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_contract_gets_what_the_file_says() {
    let deployment = read(FILE).expect("a deployment");
    let text = b"agent: {name: other, version: 0.1.0, provider: {type: llm}, requires: {agents: [x]}}";
    let contract = deployment.contract(&deployment.agents[1], text).expect("a contract");
    assert_eq!(
        contract,
        json!({ "agent": {
            "name": "jarvis", "version": "1.2.0", "title": "Jarvis", "description": "My assistant", "conversation": "shared",
            "provider": { "type": "llm", "max_iterations": 15, "loop_repeat_threshold": 3, "partial_at_limit": true },
            "requires": { "agents": ["x", "research"] }
        } })
    );
}

#[test]
fn a_module_without_a_contract_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("agents.yaml"), FILE).expect("written");
    let deployment = Deployment::open(&dir.path().join("agents.yaml")).expect("a deployment");
    let refused = deployment.package(&deployment.agents[0]).expect_err("no folder");
    assert!(refused.message.contains("\"agents.research\" is no folder with agent.yaml"), "{}", refused.message);
    let folder = dir.path().join("agents/research");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("agent.yaml"), "agent: {name: r, version: 0.1.0, provider: {type: llm}}")
        .expect("written");
    let (_, package) = deployment.package(&deployment.agents[0]).expect("a package");
    assert_eq!((package.contract.name.as_str(), package.contract.version.to_string().as_str()), ("research", "1.2.0"));
}

#[test]
fn a_module_can_be_an_agent_of_loki() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = "name: x\nversion: 2.0.0\nagents: {chatty: {module: agents.chat, title: Chatty}, capped: {module: agents.chat, max_iterations: 3}}";
    std::fs::write(dir.path().join("agents.yaml"), file).expect("written");
    let deployment = Deployment::open(&dir.path().join("agents.yaml")).expect("a deployment");
    let folder = dir.path().join("agents/chat");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("config.yaml"), "name: chat\nversion: '1'\ninstructions: Be kind.\n").expect("written");
    let (_, package) = deployment.package(&deployment.agents[0]).expect("a package");
    let contract = &package.contract;
    assert_eq!((contract.name.as_str(), contract.version.to_string().as_str()), ("chatty", "2.0.0"));
    let contract = contract.to_json();
    assert_eq!((&contract["title"], &contract["provider"]["type"]), (&json!("Chatty"), &json!("normal")));
    let refused = deployment.package(&deployment.agents[1]).expect_err("the cap does nothing");
    assert!(refused.message.contains("max_iterations is for agents with the provider llm"), "{}", refused.message);
}
