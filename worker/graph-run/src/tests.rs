//! Runs of graphs in folders, with real scripts and a model that answers from a list.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use atlas_env::Env;
use atlas_graph::run::{Effect, Fault, FaultKind, Work};
use atlas_model::{Answer, CallError, CallErrorKind, Part, Request, Tool, ToolCall, Usage};
use atlas_package::{GRAPH_FILE, GraphFolder};
use atlas_turn::OfferedTool;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::{Beginning, Host, NodePlace, NodeQuestion, Piece, Ran, Runner};

/// A host whose model gives these answers in turn; `!` begins an error that may pass.
#[derive(Default)]
struct Here {
    answers: Mutex<Vec<&'static str>>,
    requests: Mutex<Vec<Request>>,
    abandoned: Mutex<Vec<String>>,
    warned: Mutex<Vec<String>>,
    /// Its run was recorded before answers were judged.
    old: bool,
    /// How much work goes on.
    active: AtomicUsize,
    /// How much there was at each question. If there is a list, questions are answered.
    at_questions: Option<Mutex<Vec<usize>>>,
}

/// A piece of work, and whether it goes on.
struct Counted<'h>(&'h AtomicUsize, bool);

impl Counted<'_> {
    fn goes(&mut self, on: bool) {
        match (std::mem::replace(&mut self.1, on), on) {
            (false, true) => self.0.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.0.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
    }
}

#[async_trait]
impl Piece for Counted<'_> {
    fn rests(&mut self) {
        self.goes(false);
    }

    async fn goes_on(&mut self) {
        self.goes(true);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.goes(false);
    }
}

#[async_trait]
impl Host for Here {
    async fn begin(&self, _: NodePlace<'_>, _: &Work) -> Beginning<'_> {
        let mut piece = Counted(&self.active, false);
        piece.goes(true);
        Beginning::Open(Box::new(piece))
    }

    async fn call(&self, _: NodePlace<'_>, _: Option<&str>, request: Request) -> Result<Answer, CallError> {
        self.requests.lock().expect("no panic").push(request);
        let mut answers = self.answers.lock().expect("no panic");
        let text = if answers.is_empty() { "!nothing left" } else { answers.remove(0) };
        if let Some(error) = text.strip_prefix('!') {
            return Err(CallError::new(CallErrorKind::Connection, error));
        }
        let (parts, stop) = match text.strip_prefix("call ") {
            Some(name) => {
                let call =
                    ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments: json!({}), opaque: Value::Null };
                (vec![Part::ToolCall(call)], atlas_model::Stop::Tools)
            }
            None => match text.strip_prefix("cut ") {
                Some(text) => (vec![Part::Text { text: text.to_owned() }], atlas_model::Stop::Length),
                None => (vec![Part::Text { text: text.to_owned() }], atlas_model::Stop::End),
            },
        };
        Ok(Answer { parts, stop, usage: Usage::default(), model: "m".to_owned(), id: None, raw: Default::default() })
    }

    async fn tools(&self, _: NodePlace<'_>, names: &[String]) -> Result<Vec<OfferedTool>, Fault> {
        let tool = |name: &String| Tool { name: name.clone(), description: String::new(), input_schema: json!({}) };
        Ok(names.iter().map(|name| OfferedTool { name: name.clone(), tool: tool(name) }).collect())
    }

    fn judges(&self, _: Option<&str>) -> bool {
        !self.old
    }

    async fn ask(&self, asked: NodeQuestion<'_>) -> Result<String, Fault> {
        if let Some(at_questions) = &self.at_questions {
            at_questions.lock().expect("no panic").push(self.active.load(Ordering::Relaxed));
            return Ok("yes".to_owned());
        }
        Err(Fault::new(FaultKind::NoAnswer, format!("nobody answers \"{}\"", asked.question.text)))
    }

    async fn warn(&self, _: NodePlace<'_>, text: String) {
        self.warned.lock().expect("no panic").push(text);
    }

    async fn abandon(&self, place: NodePlace<'_>) {
        self.abandoned.lock().expect("no panic").push(place.node.to_owned());
    }

    async fn agent(&self, _: NodePlace<'_>, agent: &str, prompt: &str) -> Result<String, Fault> {
        if prompt == "sleep" {
            std::future::pending::<()>().await;
        }
        Ok(format!("{agent} did {prompt}"))
    }

    fn observe(&self, _: u32, _: &str, _: &Effect) {}
}

/// Writes agents: pairs of a path below the folder of all agents, and a text.
fn agents(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = root.path().join("agents").join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    root
}

async fn run(root: &Path, host: &Here) -> Ran {
    let env = Env::system();
    let runner = Runner {
        env: &env,
        host,
        workspace: root.to_owned(),
        variables: Vec::new(),
        inherits: true,
        asks_again: 0,
        special: Map::from_iter([("__shell__".to_owned(), json!("sh"))]),
        set: Default::default(),
    };
    let folder = GraphFolder::new(&root.join("agents/g"));
    let loaded = folder.read().expect("a graph");
    let run = runner.prepare(&folder, &loaded, "go").expect("a valid graph");
    let (_stopper, stop) = watch::channel(false);
    runner.run(&folder, run, stop).await
}

/// Runs a graph `g` with these nodes and files; the output, or the kind of the error.
async fn check(nodes: &str, files: &[(&str, &str)], answers: &[&'static str], expected: &str) -> Here {
    let graph = format!("name: g\nstart: a\nnodes:\n{nodes}");
    let path = format!("g/{GRAPH_FILE}");
    let all: Vec<(&str, &str)> = files.iter().copied().chain([(path.as_str(), graph.as_str())]).collect();
    let root = agents(&all);
    let host = Here { answers: Mutex::new(answers.to_vec()), ..Here::default() };
    let ran = run(root.path(), &host).await;
    let shown = ran.result.map_err(|error| error.kind.code());
    assert_eq!(shown.as_deref().unwrap_or_else(|code| code), expected);
    host
}

const ONE: &str = "  a: {type: script, script: a.sh, next: e, timeout: 2}\n  e: {type: end, output: '{{x}}'}\n";

#[tokio::test]
async fn a_script_gets_the_state_and_prints_changes() {
    let body = "[ -t 0 ] || read -r line; echo noise >&2; printf '  {\"x\": \"%s %s %s\"}\\n' \"$GRAPH_STATE\" \"${GRAPH_STATE_FILE-no}\" \"$AUTO_CONFIRM$line\" | sed 's/{\"initial_prompt\":\"go\"}/state/'";
    check(ONE, &[("g/a.sh", body)], &[], "state no true").await;
}

#[tokio::test]
async fn a_search_finds_parts_of_documents() {
    let nodes = "  a: {type: rag, documents: [notes], query: 'moon {{initial_prompt}}', state_updates: {found: '{{output.context}} | {{output.sources}}'}, next: e}\n  e: {type: end, output: '{{found}}'}\n";
    let files = [("g/notes/tides.md", "The moon causes the tides."), ("g/notes/sun.md", "The sun is hot.")];
    check(nodes, &files, &[], "Source: notes/tides.md\nThe moon causes the tides. | [\"notes/tides.md\"]").await;
    check(&nodes.replace("[notes]", "[none]"), &[], &[], "rag").await;
}

#[tokio::test]
async fn a_script_that_does_not_keep_the_protocol_fails() {
    for (body, expected) in [
        ("exit 3", "script-exit"),
        (":", "script-empty"),
        ("echo '[1]'", "script-object"),
        ("echo '{} x'", "script-json"),
        ("head -c 9000000 /dev/zero | tr '\\0' 'x'", "script-output"),
    ] {
        check(ONE, &[("g/a.sh", body)], &[], expected).await;
    }
    let ruby = "  a: {type: script, script: a.rb, next: e}\n  e: {type: end}\n";
    check(ruby, &[("g/a.rb", "")], &[], "script-extension").await;
}

/// T36: the size from which the state is in a file.
#[tokio::test]
async fn a_large_state_is_in_a_file() {
    let script = "import json, os\nf = os.environ.get('GRAPH_STATE_FILE')\nt = open(f).read() if f else os.environ['GRAPH_STATE']\nprint(json.dumps({'x': f'{len(t)} {f is not None}'}))\n";
    for (bytes, expected) in [(32_768, "32768 False"), (32_769, "32769 True")] {
        let pad = "p".repeat(bytes - r#"{"pad":"","initial_prompt":"go"}"#.len());
        let nodes = "  a: {type: script, script: a.py, next: e}\n  e: {type: end, output: '{{x}}'}\n";
        let graph = format!("name: g\nstart: a\ninitial_state: {{pad: {pad}}}\nnodes:\n{nodes}");
        let root = agents(&[("g/a.py", script), ("g/graph.yaml", &graph)]);
        let ran = run(root.path(), &Here::default()).await;
        assert_eq!(ran.result.as_deref(), Ok(expected));
    }
}

/// T23: what a script started is killed when its time is over.
#[tokio::test]
async fn a_script_that_takes_too_long_is_killed_with_its_children() {
    let root = agents(&[
        ("g/a.sh", "(sleep 3; touch late) & sleep 3; touch late; echo '{}'"),
        (
            "g/graph.yaml",
            "name: g\nstart: a\nsettings: {timeout: 1}\nnodes:\n  a: {type: script, script: a.sh, next: e}\n  e: {type: end}\n",
        ),
    ]);
    let ran = run(root.path(), &Here::default()).await;
    assert_eq!(ran.result.map_err(|error| error.kind), Err(FaultKind::TimedOut));
    // Until they would have written the file.
    Env::system().clock.sleep(Duration::from_secs(3)).await;
    assert!(!root.path().join("late").exists());
}

#[tokio::test]
async fn a_model_node_has_its_own_conversation() {
    let nodes = "  a: {type: llm, prompt: 'say {{initial_prompt}}', instructions: 'A\n\n\n    ---\n\n\n    B', next: b, state_updates: {x: '{{output}}'}}\n  b: {type: llm, prompt: 'and {{x}}', next: e, temperature: 0.5, state_updates: {y: '{{output}}'}}\n  e: {type: end, output: '{{y}}'}\n";
    let host = check(nodes, &[], &["one", "two"], "two").await;
    let requests = host.requests.lock().expect("no panic");
    let shown: Vec<(String, Vec<String>, Option<f64>)> = requests
        .iter()
        .map(|request| {
            let texts = request.messages.iter().map(atlas_model::Message::text).collect();
            (request.system.clone(), texts, request.temperature)
        })
        .collect();
    let expected = [
        ("A\n---\nB".to_owned(), vec!["say go".to_owned()], None),
        (String::new(), vec!["and one".to_owned()], Some(0.5)),
    ];
    assert_eq!(shown.len(), 2);
    assert!(shown[0].0.contains("---") && shown[0].0.starts_with('A') && shown[0].0.ends_with('B'), "{shown:?}");
    assert_eq!((&shown[0].1, &shown[1]), (&expected[0].1, &expected[1]));
}

#[tokio::test]
async fn transient_failures_are_tried_again() {
    let nodes = |attempts: u32| {
        format!(
            "  a: {{type: llm, prompt: p, max_attempts: {attempts}, next: e, state_updates: {{x: '{{{{output}}}}'}}}}\n  e: {{type: end, output: '{{{{x}}}}'}}\n"
        )
    };
    check(&nodes(3), &[], &["!reset", "", "ok"], "ok").await;
    check(&nodes(2), &[], &["!reset", "!reset", "ok"], "llm").await;
}

/// T25 and T26: an answer that has not the form is extracted once and repaired once.
#[tokio::test]
async fn an_answer_is_brought_into_the_form_of_its_schema() {
    let nodes = "  a:\n    type: llm\n    prompt: p\n    output_schema: {type: object, required: [x], properties: {x: {type: string}}}\n    next: e\n  e: {type: end, output: '{{x}}'}\n";
    let host = check(nodes, &[], &["```json\n{\"x\": \"a\"}\n```"], "a").await;
    let prompt = host.requests.lock().expect("no panic")[0].messages[0].text();
    assert!(prompt.starts_with("p\n\nAnswer with one JSON object") && prompt.ends_with('}'), "{prompt}");
    check(nodes, &[], &["x is a", "{\"x\": \"b\"}"], "b").await;
    let host = check(nodes, &[], &["42", "{\"x\": 5}", "{\"x\": \"c\"}"], "c").await;
    let repair = host.requests.lock().expect("no panic")[2].messages[0].text();
    assert!(repair.contains("at /x"), "{repair}");
    check(nodes, &[], &["42", "42", "42"], "extraction").await;
}

#[tokio::test]
async fn a_cut_answer_is_said_and_is_no_value() {
    let end = "    next: e\n  e: {type: end, output: '{{x}}'}\n";
    let plain = format!("  a:\n    type: llm\n    prompt: p\n    state_updates: {{x: '{{{{output}}}}'}}\n{end}");
    let host = check(&plain, &[], &["cut Once upon"], "Once upon").await;
    let warned = host.warned.lock().expect("no panic").join("\n");
    assert!(warned.starts_with("node \"a\": the answer of the model \"m\" was cut at its limit of tokens"), "{warned}");
    let formed =
        format!("  a:\n    type: llm\n    prompt: p\n    output_schema: {{type: object, required: [x]}}\n{end}");
    // Nothing is extracted from a half.
    let host = check(&formed, &[], &["cut {\"x\": \"on", "{\"x\": \"b\"}"], "extraction").await;
    assert_eq!(host.requests.lock().expect("no panic").len(), 1);
    check(&formed, &[], &["cut {\"x\": \"a\"}"], "a").await;
}

/// A node in flight keeps what its run was recorded with.
#[tokio::test]
async fn a_run_from_before_answers_were_judged_goes_on_unjudged() {
    let root = agents(&[(
        "g/graph.yaml",
        "name: g\nstart: a\nnodes:\n  a: {type: llm, prompt: p, state_updates: {x: '{{output}}'}, next: e}\n  e: {type: end, output: '{{x}}'}\n",
    )]);
    let host = Here { answers: Mutex::new(vec!["cut Once upon"]), old: true, ..Here::default() };
    let ran = run(root.path(), &host).await;
    assert_eq!(ran.result.expect("an output"), "Once upon");
    assert!(host.warned.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn a_node_that_gets_no_answer_asks_again() {
    let nodes = "  a:\n    type: llm\n    prompt: p\n    state_updates: {x: '{{output}}'}\n    next: e\n  e: {type: end, output: '{{x}}'}\n";
    check(nodes, &[], &[" ", "fine"], "fine").await;
    check(nodes, &[], &["", "", ""], "llm").await;
}

#[tokio::test]
async fn agents_run_inside_a_graph() {
    let nodes = "  a: {type: agent, agent: kid, prompt: 'do {{initial_prompt}}', next: b, state_updates: {x: '{{output}}'}}\n  b: {type: agent, agent: other, prompt: '{{x}}', next: e, state_updates: {y: '{{output}}'}}\n  e: {type: end, output: '{{y}}'}\n";
    let kid = "name: kid\nstart: e\nnodes:\n  e: {type: end, output: 'kid got {{initial_prompt}}'}\n";
    let files = [("kid/graph.yaml", kid), ("other/config.yaml", "name: other\n")];
    check(nodes, &files, &[], "other did kid got do go").await;
    let itself = "  a: {type: agent, agent: g, prompt: p, next: e}\n  e: {type: end}\n";
    let root = agents(&[("g/graph.yaml", &format!("name: g\nstart: a\nnodes:\n{itself}"))]);
    let error = run(root.path(), &Here::default()).await.result.expect_err("too deep").to_string();
    assert!(error.ends_with("agent \"g\" would run at depth 4, and 3 is the deepest"), "{error}");
}

/// A job parks when all work that goes on waits.
#[tokio::test]
async fn only_the_work_that_asks_goes_on_meanwhile() {
    let ask = "{type: approval, question: 'go on?', options: [yes, no], routes: {yes: e, no: e}, on_other: e}";
    let end = "{type: end, output: done}";
    let asking = format!("start: ask\nnodes:\n  ask: {ask}\n  e: {end}\n");
    let slow = |settings: &str| {
        format!("{settings}start: s\nnodes:\n  s: {{type: agent, agent: slow, prompt: sleep, next: e}}\n  e: {end}\n")
    };
    for (kid, timeout, questions) in [
        (asking, 60, vec![1, 1]),
        // Its own limit ends it, or that of the node.
        (slow("settings: {timeout: 1}\n"), 60, vec![1]),
        (slow(""), 1, vec![1]),
    ] {
        let map = "{type: map, over: '{{l}}', as: i, branch: a, collect_into: o, on_item_error: skip, next: ask}";
        let kids = format!("{{type: agent, agent: kid, prompt: p, timeout: {timeout}}}");
        let nodes = format!("  m: {map}\n  a: {kids}\n  ask: {ask}\n  e: {end}\n");
        let root = agents(&[
            ("g/graph.yaml", &format!("name: g\nstart: m\ninitial_state: {{l: [1]}}\nnodes:\n{nodes}")),
            ("kid/graph.yaml", &format!("name: kid\n{kid}")),
            ("slow/config.yaml", "name: slow\n"),
        ]);
        let host = Here { at_questions: Some(Mutex::default()), ..Here::default() };
        assert_eq!(run(root.path(), &host).await.result.as_deref(), Ok("done"));
        assert_eq!(host.at_questions.map(|seen| seen.into_inner().expect("no panic")), Some(questions), "{kid}");
        assert_eq!(host.active.into_inner(), 0);
    }
}

/// T33: an agent for which its node has waited too long is ended.
#[tokio::test]
async fn an_agent_that_takes_too_long_is_abandoned() {
    let nodes = "  a: {type: agent, agent: slow, prompt: sleep, timeout: 1, next: e}\n  e: {type: end}\n";
    let host = check(nodes, &[("slow/config.yaml", "name: slow\n")], &[], "agent-timeout").await;
    assert_eq!(*host.abandoned.lock().expect("no panic"), ["a"]);
}

/// T29: a model that still calls tools at its last turn has failed.
#[tokio::test]
async fn a_model_that_calls_tools_to_the_end_fails() {
    let nodes = |next: &str| {
        format!(
            "  a: {{type: llm, prompt: p, tools: [look], max_iterations: 2, {next}, state_updates: {{x: '{{{{output}}}}'}}}}\n  e: {{type: end}}\n  f: {{type: end, output: '{{{{x}}}}'}}\n"
        )
    };
    let text = "LLM node failed: the model still called tools after 2 turns";
    let host = check(&nodes("next: e, fallback: f"), &[], &["call look", "call look", "done"], text).await;
    assert_eq!(host.requests.lock().expect("no panic").len(), 2);
    check(&nodes("next: e"), &[], &["call look", "call look", "done"], "llm").await;
}

/// T31: prompts can name what the run knows and the state does not have.
#[tokio::test]
async fn a_prompt_can_name_the_folder_of_the_run() {
    let nodes = "  a: {type: llm, prompt: 'in {{__cwd__}} with {{__shell__}} on {{__os__}}', next: e}\n  e: {type: end, output: 'ok'}\n";
    let host = check(nodes, &[], &["done"], "ok").await;
    let prompt = host.requests.lock().expect("no panic")[0].messages[0].text();
    assert!(
        prompt.starts_with("in /") && prompt.contains(" with sh on ") && prompt.ends_with(std::env::consts::OS),
        "{prompt}"
    );
}

#[tokio::test]
async fn a_question_without_an_answer_fails_the_run() {
    let nodes =
        "  a: {type: approval, question: 'ok?', options: [yes], routes: {yes: e}, on_other: e}\n  e: {type: end}\n";
    check(nodes, &[], &[], "no-answer").await;
}

/// T13: items run at the same time.
#[tokio::test]
async fn items_of_a_map_run_at_the_same_time() {
    let script = "import json, os, time\ns = json.loads(os.environ['GRAPH_STATE'])\ntime.sleep(0.3 * (5 - s['i']))\nprint(json.dumps({'output': 2 * s['i']}))\n";
    let graph = "name: g\nstart: a\ninitial_state: {l: [1, 2, 3, 4]}\nnodes:\n  a: {type: map, over: '{{l}}', as: i, branch: b, collect_into: o, next: e}\n  b: {type: script, script: b.py}\n  e: {type: end, output: '{{o}}'}\n";
    let root = agents(&[("g/b.py", script), ("g/graph.yaml", graph)]);
    let ran = run(root.path(), &Here::default()).await;
    assert_eq!(ran.result.as_deref(), Ok("[2,4,6,8]"));
    assert_eq!(ran.state.get("o"), Some(&Value::from(vec![2, 4, 6, 8])));
}
