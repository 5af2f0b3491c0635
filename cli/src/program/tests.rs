use atlas_dev::{NodeJs, Python};

use super::*;

const CONTRACT: &str = "agent: {name: a, version: 1.0.0, PROVIDER}";

/// Creates an agent in a temporary folder, from its provider and its files.
fn agent(provider: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Contract) {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }
    let contract = CONTRACT.replace("PROVIDER", provider);
    (dir, atlas_contract::parse(contract.as_bytes()).expect("a contract"))
}

async fn findings(place: RunsOn, provider: &str, files: &[(&str, &str)]) -> Vec<String> {
    let (dir, contract) = agent(provider, files);
    let Findings { problems, warnings, .. } = Checker::new(place).program(dir.path(), &contract).await;
    let problems = problems.iter().map(|(at, what)| format!("{at}: {what}"));
    let root = format!("{}/", dir.path().display());
    let all = problems.chain(warnings.iter().map(|text| format!("warning: {text}")));
    all.map(|line| line.replace(&root, "")).collect()
}

async fn python(text: &str) -> Vec<String> {
    findings(TESTED, "provider: python", &[("agent.py", text)]).await
}

const TESTED: RunsOn = RunsOn::Workers { tested: true };

const AGENT: &str = "from atlas.runtime.base import AgentBase\n";

#[tokio::test]
async fn python_code_is_read_and_not_run() {
    if Python::find(None).is_err() {
        atlas_notice::skip("no Python");
        return;
    }
    let good = format!("{AGENT}import json\nclass A(AgentBase):\n    pass\n1 / 0\n");
    assert_eq!(python(&good).await, Vec::<String>::new());
    assert_eq!(python("class A:\n    def f(:\n").await, ["agent.py, line 2: SyntaxError: invalid syntax"]);
    let missing = "ModuleNotFoundError: No module named 'no_such_module'; list its package in dependencies.packages of \
                   agent.yaml, or deploy with --no-test if every worker has it";
    let code = format!("{AGENT}import no_such_module.deep\nclass A(AgentBase): pass\n");
    assert_eq!(python(&code).await, [format!("agent.py, line 2: {missing}")]);
    let warned = findings(RunsOn::Workers { tested: false }, "provider: python", &[("agent.py", &code)]).await;
    let here = "ModuleNotFoundError: No module named 'no_such_module' on this machine; every worker needs it";
    assert_eq!(warned, [format!("warning: agent.py, line 2: {here}")]);
    let no_class = ["agent.py: it defines no agent class: a subclass of AgentBase"];
    assert_eq!(python("").await, no_class);
    assert_eq!(python(&format!("{AGENT}class A(dict): pass\nclass B(A): pass\n")).await, no_class);
}

#[tokio::test]
async fn what_only_running_shows_is_not_refused() {
    if Python::find(None).is_err() {
        atlas_notice::skip("no Python");
        return;
    }
    for code in [
        "try:\n    import no_such_module\nexcept ImportError:\n    pass\nfrom helper import *\n",
        "from atlas.runtime import base as b\nclass Mixin: pass\nclass A(Mixin, b.AgentBase): pass\n",
        "import helper\nAgent = helper.make()\n",
        "from helper import Agent\n",
    ] {
        let files = [("agent.py", code), ("helper.py", "import util\n"), ("util/__init__.py", "")];
        assert_eq!(findings(TESTED, "provider: python", &files).await, Vec::<String>::new(), "{code}");
    }
    let files = [("agent.py", "import helper\nclass A(helper.B): pass"), ("helper.py", "x = = 1\n")];
    let found = findings(TESTED, "provider: python", &files).await;
    assert_eq!(found, ["helper.py, line 1: SyntaxError: invalid syntax"]);
}

#[tokio::test]
async fn declared_packages_may_provide_what_is_not_found_here() {
    if Python::find(None).is_err() {
        atlas_notice::skip("no Python");
        return;
    }
    let code = format!("{AGENT}import no_such_module, other_module\nclass A(AgentBase): pass\n");
    let provider = "provider: python, dependencies: {packages: ['no-such-module>=1']}";
    let found = findings(RunsOn::Here, provider, &[("agent.py", &code)]).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("warning: agent.py, line 2: no file and no package"), "{found:?}");
}

#[tokio::test]
async fn the_code_of_a_node_agent_is_read_and_not_run() {
    let node = async |files: &[(&str, &str)]| findings(TESTED, "provider: node", files).await;
    assert_eq!(
        node(&[]).await,
        ["agent.mjs: the file is missing; provider node requires agent.mjs, agent.js or agent.ts"]
    );
    if NodeJs::find(None).is_err() {
        atlas_notice::skip("no Node.js");
        return;
    }
    let good = "import x from 'no-such-package';\nexport default async () => { await null; };\nthrow 1;\n";
    assert_eq!(node(&[("agent.mjs", good)]).await, Vec::<String>::new());
    let broken = node(&[("agent.mjs", "let a;\nconst x = ;\n")]).await;
    assert_eq!(broken, ["agent.mjs, line 2: SyntaxError: Unexpected token ';'"]);
    // The first one counts.
    assert_eq!(node(&[("agent.mjs", ""), ("agent.js", "const x = ;")]).await, Vec::<String>::new());
    let module = ("package.json", r#"{"type": "module"}"#);
    assert_eq!(node(&[("agent.js", good), module]).await, Vec::<String>::new());
    assert_eq!(node(&[("agent.js", "module.exports = () => 1;\n")]).await, Vec::<String>::new());
    // What is a module of Node.js 22 is none of Node.js 20.
    let unsaid = node(&[("agent.js", good)]).await;
    assert!(unsaid.iter().all(|line| line.starts_with("warning: ") && line.contains("agent.mjs")), "{unsaid:?}");
}

#[tokio::test]
async fn a_program_must_be_there_and_executable() {
    let exec = |command: &str| format!("provider: {{type: exec, command: {command}}}");
    let check = async |place, command: &str| findings(place, &exec(command), &[("run.sh", "#!/bin/sh\n")]).await;
    let here = RunsOn::Here;
    assert_eq!(check(here, "[./run.sh]").await, ["run.sh: it is not executable: chmod +x run.sh"]);
    assert_eq!(check(here, "[./gone.sh]").await, ["gone.sh: the program is missing"]);
    assert_eq!(check(here, "[../run.sh]").await, ["../run.sh: the path is outside the package"]);
    assert_eq!(check(here, "[sh, gone.sh]").await, ["gone.sh: the file is missing: \"sh\" runs it"]);
    assert_eq!(check(here, "[sh, run.sh]").await, Vec::<String>::new());
    assert_eq!(check(here, "['@atlas', x]").await, Vec::<String>::new());
    let at = "agent.yaml /agent/provider/command";
    let missing = "missing; provider exec requires a program such as [\"./agent.sh\"]";
    assert_eq!(check(here, "[]").await, [format!("{at}: {missing}")]);
    assert_eq!(findings(here, "provider: exec", &[]).await, [format!("{at}: {missing}")]);
    let absent = "[no-such-program]";
    assert_eq!(check(here, absent).await, [format!("{at}: \"no-such-program\" is not in PATH on this machine")]);
    let warned = check(RunsOn::Workers { tested: false }, absent).await;
    assert_eq!(
        warned,
        [
            "warning: agent.yaml /agent/provider/command: \"no-such-program\" is not in PATH on this machine; every worker needs it"
        ]
    );
    let expected = format!(
        "{at}: \"no-such-program\" is not in PATH on this machine, which runs the tests; deploy with --no-test if every worker has it"
    );
    assert_eq!(check(TESTED, absent).await, [expected]);
}

#[tokio::test]
async fn the_interpreter_of_a_script_must_be_there() {
    let check = async |place, line: &str| {
        let (dir, contract) = agent("provider: {type: exec, command: [./run]}", &[("run", &format!("{line}\nrest"))]);
        fs::set_permissions(dir.path().join("run"), fs::Permissions::from_mode(0o755)).expect("executable");
        let Findings { problems, warnings, .. } = Checker::new(place).program(dir.path(), &contract).await;
        problems
            .into_iter()
            .map(|(_, what)| what)
            .chain(warnings.into_iter().map(|_| "warning".to_owned()))
            .collect::<Vec<_>>()
    };
    for good in ["#!/bin/sh", "#! /bin/sh -e", "#!/usr/bin/env sh", "#!/usr/bin/env -S X=1 sh -e", "no script"] {
        assert_eq!(check(RunsOn::Here, good).await, Vec::<String>::new(), "{good}");
    }
    let missing = "\"#!/no/such\": \"/no/such\" is missing on this machine";
    assert_eq!(check(RunsOn::Here, "#!/no/such -x").await, [missing.replace("such\":", "such -x\":")]);
    let looked_up = "\"#!/usr/bin/env no-such-program\": \"no-such-program\" is not in PATH on this machine";
    assert_eq!(check(RunsOn::Here, "#!/usr/bin/env no-such-program").await, [looked_up]);
    assert_eq!(check(TESTED, "#!/no/such").await, ["warning"]);
    assert_eq!(check(TESTED, "#!/bin/sh\r").await, ["its first line ends with CR LF; save it with LF"]);
    assert_eq!(check(RunsOn::Here, "#!").await, ["\"#!\": it names no interpreter"]);
}

#[tokio::test]
async fn agent_py_must_be_there() {
    let found = findings(TESTED, "provider: python", &[]).await;
    assert_eq!(found, ["agent.py: the file is missing; provider python requires it"]);
}

/// Packs an agent of these files, and lists what the check of a deployment finds, without the folder's path.
async fn deployed(files: &[(&str, &str)]) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("it");
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }
    let package = atlas_package::pack(&folder).expect("a package");
    let Findings { problems, faults, warnings } = Checker::new(TESTED).check(&folder, &package).await;
    let root = format!("{}/", dir.path().display());
    let wrong = problems.iter().chain(&faults).map(|(at, what)| format!("{at}: {what}"));
    let all = wrong.chain(warnings.iter().map(|warning| format!("warning: {warning}")));
    all.map(|line| line.replace(&root, "")).collect()
}

#[tokio::test]
async fn a_configuration_that_fails_each_job_is_found() {
    let tool = "def add(a: int):\n    \"\"\"Adds.\n    Args:\n        a: A number\n    \"\"\"\n    return a\n";
    let found = deployed(&[
        (
            "config.yaml",
            "name: A\nglobal_tools: [add]\ndocuments: ['https://example.com/x', gone.md]\ndynamic_instructions: true\n\
             conversation_starters: [hi]\ninstuctions: x\n",
        ),
        ("tools.sh", "# @cmd Lists\nls() { :; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n"),
        ("tools.py", tool),
        ("functions/tools/add.py", tool),
    ])
    .await;
    expect_test::expect![[r#"
        it/config.yaml /global_tools: "add" in global_tools is no file of functions/tools; did you mean "add.py"?
        it/config.yaml /dynamic_instructions: the tools have no function _instructions, which dynamic_instructions asks for
        it/config.yaml /documents/0: "https://example.com/x": documents are not fetched here; put the text into a file of the agent's folder
        it/config.yaml /documents/1: there is no document "gone.md" in the agent's folder
        warning: it/config.yaml /conversation_starters: has no effect; nothing suggests prompts to people
        warning: it/config.yaml /instuctions: unknown key, ignored; did you mean "instructions"?
        warning: it/tools.py: has no effect: an agent has one file of tools; tools.sh counts; put all tools into it, or into functions/tools"#]].assert_eq(&found.join("\n"));
}

#[tokio::test]
async fn tools_with_one_name_are_found() {
    let tool = "def run(a: int):\n    \"\"\"Adds.\n    Args:\n        a: A number\n    \"\"\"\n    return a\n";
    let found = deployed(&[
        ("config.yaml", "name: A\nglobal_tools: [add.py]\n"),
        ("tools.py", &tool.replace("run", "add")),
        ("functions/tools/add.py", tool),
    ])
    .await;
    assert_eq!(found, ["it/tools.py: two tools have the name \"add\": in functions/tools/add.py and in tools.py"]);
    let broken = deployed(&[("config.yaml", "name: A\n"), ("tools.py", "def add(:\n")]).await;
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert!(broken[0].starts_with("it/tools.py: the declarations of \"tools.py\" cannot be read"), "{broken:?}");
}

#[tokio::test]
async fn a_graph_that_fails_each_run_is_found() {
    let graph = "name: g\nstart: a\nglobal_tools: [none.sh]\nconversation_starters: [hi]\nmcp_servers: [github]\nvariables: [{name: k, description: d}]\nnodes:\n  \
                 a: {type: llm, prompt: p, tools: ['mcp:gitub', nope], output_schema: {type: string, enum: [1]}, next: b}\n  \
                 b: {type: rag, documents: ['https://example.com/x'], embedding_model: m, state_updates: {x: '{{output}}'}, next: e}\n  \
                 e: {type: end}\n";
    expect_test::expect![[r#"
        it/graph.yaml: line 8: [a] unknown tool 'nope' (V12-tool); did you mean "none"?
        it/graph.yaml: line 8: [a] unknown MCP server 'mcp:gitub' (V12-mcp); did you mean "github"?
        it/graph.yaml /global_tools: "none.sh" in global_tools is no file of functions/tools
        it/graph.yaml /nodes/a/output_schema/enum: no output satisfies it: none of its values has the type string
        it/graph.yaml /nodes/b/documents/0: "https://example.com/x": documents are not fetched here; put the text into a file of the agent's folder
        warning: it/graph.yaml /conversation_starters: line 4: the field 'conversation_starters' has no effect (unused-field)
        warning: it/graph.yaml /variables: variables without a default: k; each job must give them"#]].assert_eq(&deployed(&[("graph.yaml", graph)]).await.join("\n"));
}

#[tokio::test]
async fn an_output_that_no_agent_can_give_is_found() {
    let contract = |provider: &str, schema: &str| {
        format!("agent: {{name: it, version: 1.0.0, provider: {provider}, output: {{schema: {schema}}}}}")
    };
    let of = async |provider: &str, schema: &str| deployed(&[("agent.yaml", &contract(provider, schema))]).await;
    let text = "{type: llm, output_format: text}";
    let found = of(text, "{type: object, required: [summary], properties: {summary: {type: string}}}").await;
    assert_eq!(
        found,
        ["it/agent.yaml /agent/output/schema: its outputs have the members result: 'summary' is a required property"]
    );
    assert_eq!(
        of(text, "{type: object, properties: {result: {type: string, minLength: 5}}}").await,
        Vec::<String>::new()
    );
    let closed = "{type: object, required: [a], properties: {b: {}}, additionalProperties: false}";
    let never = "it/agent.yaml /agent/output/schema/required: no output satisfies it: \"a\" is required, and additionalProperties allows no such field";
    assert_eq!(of("llm", closed).await, [never]);
}
