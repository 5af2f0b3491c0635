//! Tests Python agents.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::session::processes;
use crate::support::{Controller, End, Node, Stage, python, without_python};

const HEADER: &str = "from atlas.runtime.base import AgentBase\n";

impl Stage {
    /// Runs the agent with `code` on each of `inputs`.
    async fn run(&mut self, code: &str, more: &str, inputs: &[&str]) -> Vec<End> {
        let agent = self.controller.publish_owned(&python(&format!("{HEADER}{code}"), more));
        let mut ends = Vec::new();
        for input in inputs {
            let assignment = self.controller.assignment(&agent, input);
            ends.push(self.session.run(&assignment).await);
        }
        ends
    }
}

async fn fails(code: &str, more: &str) -> String {
    let mut stage = Stage::set().await;
    let error = stage.run(code, more, &["{}"]).await[0].error();
    stage.node.shutdown().await;
    error
}

#[tokio::test]
async fn state_survives_in_a_warm_slot() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
class Counter(AgentBase):
    async def on_startup(self):
        self.n = 0

    async def execute(self, input_data):
        self.n += input_data["by"]
        return {"n": self.n, "job": self.context.job_id, "team": self.context.metadata["team"]}
"#;
    let ends = stage.run(code, "", &["{\"by\": 2}", "{\"by\": 3}"]).await;
    assert_eq!(ends[0].output(&stage.controller), r#"{"n":2,"job":"job-0000000000000001","team":"a"}"#);
    assert_eq!(ends[1].output(&stage.controller), r#"{"n":5,"job":"job-0000000000000002","team":"a"}"#);
    assert!(!ends[0].usage().warm && ends[0].usage().warmup.0 > 1_000, "{:?}", ends[0].usage());
    assert!(ends[1].usage().warm && ends[1].usage().warmup.0 == 0, "{:?}", ends[1].usage());
    stage.node.shutdown().await;
}

#[tokio::test]
async fn a_job_has_its_task_from_its_first_line() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
import asyncio

class Patient(AgentBase):
    async def execute(self, input_data):
        task = asyncio.current_task()
        async with asyncio.timeout(60):
            await asyncio.sleep(input_data["sleep"])
        return {"same": task is not None and task is asyncio.current_task()}
"#;
    for end in stage.run(code, "", &["{\"sleep\": 0}", "{\"sleep\": 0.001}"]).await {
        assert_eq!(end.output(&stage.controller), r#"{"same":true}"#);
    }
    stage.node.shutdown().await;
}

/// The loop of the host polls once for a job, and runs what it finds before it polls again.
#[tokio::test]
async fn a_job_is_one_turn_of_the_loop() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
import asyncio

class Counted(AgentBase):
    async def on_startup(self):
        self.turns = 0
        selector = asyncio.get_running_loop()._selector
        select = selector.select

        def counted(timeout=None):
            self.turns += 1
            return select(timeout)

        selector.select = counted

    async def execute(self, input_data):
        return {"turns": self.turns}
"#;
    let ends = stage.run(code, "", &["{}"; 4]).await;
    let told = ends.iter().map(|end| serde_json::from_str::<Value>(&end.output(&stage.controller)).expect("JSON"));
    let turns: Vec<u64> = told.map(|told| told["turns"].as_u64().expect("a number")).collect();
    assert!(turns.windows(2).all(|two| two[1] - two[0] == 1), "{turns:?}");
    stage.node.shutdown().await;
}

#[tokio::test]
async fn what_an_agent_prints_becomes_log_lines() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
import logging, os, subprocess, sys

class Loud(AgentBase):
    async def execute(self, input_data):
        print("printed")
        print('{"type": "result", "output": {"forged": true}}')
        sys.stderr.write("complained\n")
        logging.getLogger("x").warning("logged")
        os.write(1, b"raw\xff\n")
        subprocess.run(["echo", "from a child"])
        self.context.progress("half")
        print("no newline", end="")
        return {"ok": True}
"#;
    let ends = stage.run(code, "", &["{}"]).await;
    assert_eq!(ends[0].output(&stage.controller), r#"{"ok":true}"#);
    let mut said: Vec<_> =
        stage.session.events.iter().map(|event| format!("{:?} {}: {}", event.kind, event.level, event.text)).collect();
    said.sort();
    assert_eq!(
        said,
        [
            "Log error: complained",
            "Log info: from a child",
            "Log info: no newline",
            "Log info: printed",
            "Log info: raw\u{fffd}",
            "Log info: {\"type\": \"result\", \"output\": {\"forged\": true}}",
            "Log warning: logged",
            "Progress : half",
        ]
    );
    let numbers: Vec<_> = stage.session.events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    stage.node.shutdown().await;
}

#[tokio::test]
async fn pieces_of_an_answer_are_joined_and_arrive_before_the_end() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
class Model(AgentBase):
    async def execute(self, input_data):
        for text in ("Hel", "lo ", "\udc80you"):
            self.context.delta(text, step=3)
        self.context.delta("Hi", step=3, attempt=2)
        return {}
"#;
    let ends = stage.run(code, "", &["{}"]).await;
    assert_eq!(ends[0].output(&stage.controller), "{}");
    let deltas = &stage.session.deltas;
    let said = |try_number: u32| -> String {
        deltas.iter().filter(|delta| delta.try_number == try_number).map(|delta| delta.text.as_str()).collect()
    };
    assert!(said(1).starts_with("Hello ") && said(1).ends_with("you"), "{deltas:?}");
    assert_eq!(said(2), "Hi");
    assert!(deltas.iter().all(|delta| delta.step == 3) && deltas.len() <= 4, "{deltas:?}");
    stage.node.shutdown().await;
}

#[tokio::test]
async fn an_exception_is_the_jobs_error_and_ends_the_slot() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
class Fragile(AgentBase):
    async def execute(self, input_data):
        if input_data.get("fail"):
            raise ValueError("kaput")
        return {}
"#;
    let ends = stage.run(code, "", &["{}", "{\"fail\": true}", "{}"]).await;
    assert_eq!(ends[1].error(), "kaput");
    assert!(!ends[2].usage().warm);
    stage.node.shutdown().await;
}

#[tokio::test]
async fn start_up_that_fails_or_hangs_is_a_pool_error() {
    if without_python() {
        return;
    }
    let raising = "class A(AgentBase):\n    async def on_startup(self):\n        raise RuntimeError('no model')\n    async def execute(self, d):\n        return {}\n";
    assert_eq!(fails(raising, "").await, "Pool error: no model");
    let hanging = "import time\nclass A(AgentBase):\n    async def on_startup(self):\n        time.sleep(600)\n    async def execute(self, d):\n        return {}\n";
    assert_eq!(fails(hanging, "  startup_timeout: 0.8\n").await, "Pool error: Agent py startup timed out (0.8s)");
}

#[tokio::test]
async fn the_workers_limit_of_a_start_counts_where_the_contract_sets_none() {
    if without_python() {
        return;
    }
    let mut controller = Controller::start().await;
    let limit = Duration::from_millis(300);
    let node = Node::start_with(&controller, |options| options.warmup_timeout = Some(limit)).await;
    let mut session = controller.welcomed(Vec::new()).await;
    let slow = "import asyncio\nclass A(AgentBase):\n    async def on_startup(self):\n        await asyncio.sleep(3)\n    async def execute(self, d):\n        return {}\n";
    let mut run = async |more: &str| {
        let agent = controller.publish_owned(&python(&format!("{HEADER}{slow}"), more));
        let assignment = controller.assignment(&agent, "{}");
        session.run(&assignment).await
    };
    assert_eq!(run("").await.error(), "Pool error: Agent py startup timed out (0.3s)");
    assert!(matches!(run("  startup_timeout: 60\n").await, End::Completed { .. }));
    node.shutdown().await;
}

#[tokio::test]
async fn no_agent_class_says_so_and_an_import_error_says_why() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let end = stage.run("", "", &["{}"]).await.remove(0);
    stage.node.shutdown().await;
    assert_eq!(end.error(), "Pool error: Agent not found or no implementation: py");
    assert_eq!(end.metadata()["_error_why"], "agent.py defines no agent class: a subclass of AgentBase");
    let header = HEADER.lines().count();
    for (code, line, error) in [
        ("import no_such_module", 1, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("\ndef f(:\n    pass\n", 2, "SyntaxError: invalid syntax"),
        ("x = {}\nx['missing']\n", 2, "KeyError: 'missing'"),
        ("import sys\nsys.exit(4)\n", 2, "SystemExit: 4"),
    ] {
        let line = header + line;
        assert_eq!(fails(code, "").await, format!("Pool error: agent.py, line {line}: {error}"));
    }
}

#[tokio::test]
async fn a_text_that_means_nothing_alone_comes_with_its_type() {
    if without_python() {
        return;
    }
    for (raised, text, kind) in [
        ("KeyError('missing')", "'missing'", Some("KeyError")),
        ("ValueError(4)", "4", Some("ValueError")),
        ("SystemExit(4)", "4", Some("SystemExit")),
        ("AssertionError()", "", Some("AssertionError")),
        ("KeyError('no such key')", "'no such key'", Some("KeyError")),
        ("ValueError('kaput')", "kaput", None),
    ] {
        let code = format!("class A(AgentBase):\n    async def execute(self, d):\n        raise {raised}\n");
        let mut stage = Stage::set().await;
        let end = stage.run(&code, "", &["{}"]).await.remove(0);
        stage.node.shutdown().await;
        assert_eq!((end.error(), end.metadata().get("_error_type").and_then(Value::as_str)), (text.to_owned(), kind));
        let code = format!(
            "class A(AgentBase):\n    async def on_startup(self):\n        raise {raised}\n    async def execute(self, d):\n        return {{}}\n"
        );
        let described = [kind.unwrap_or_default(), text].into_iter().filter(|part| !part.is_empty());
        let described = described.collect::<Vec<_>>().join(": ");
        assert_eq!(fails(&code, "").await, format!("Pool error: {described}"));
    }
}

#[tokio::test]
async fn an_agent_that_returns_nothing_completes_with_null() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let ends = stage.run("class A(AgentBase):\n    async def execute(self, d):\n        pass\n", "", &["{}"]).await;
    assert_eq!(ends[0].output(&stage.controller), "null");
    stage.node.shutdown().await;
}

#[tokio::test]
async fn execution_that_hangs_is_timed_out() {
    if without_python() {
        return;
    }
    for wait in ["await asyncio.sleep(600)", "time.sleep(600)"] {
        let code =
            format!("import asyncio, time\nclass A(AgentBase):\n    async def execute(self, d):\n        {wait}\n");
        assert_eq!(fails(&code, "  execution_timeout: 0.4\n").await, "Execution timed out after 0.4s");
    }
}

#[tokio::test]
async fn siblings_dataclasses_and_metadata_work() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"from __future__ import annotations
from dataclasses import dataclass
from pathlib import Path
from atlas.runtime.base import AgentBase
from atlas.runtime.context import SpawnError
import helper

@dataclass
class Point:
    x: int

class A(AgentBase):
    async def execute(self, input_data):
        self.context.execution_metadata["input_tokens"] = 3
        self.context.execution_metadata["note"] = "left out"
        try:
            await self.context.spawn("echo", {})
        except SpawnError as error:
            refused = str(error)
        data = (Path(__file__).parent / "data.txt").read_text()
        return {"x": Point(helper.VALUE).x, "data": data, "spawn": refused, "memory": await self.context.memory_read(),
                "timeout": self.contract.execution_timeout, "name": self.contract.name}
"#;
    let mut files = python(code, "");
    files.push(("helper.py", "VALUE = 7\n".to_owned()));
    files.push(("data.txt", "d".to_owned()));
    let agent = stage.controller.publish_owned(&files);
    let assignment = stage.controller.assignment(&agent, "{}");
    let end = stage.session.run(&assignment).await;
    assert_eq!(
        end.output(&stage.controller),
        r#"{"x":7,"data":"d","spawn":"Agent does not have spawn_agents permission","memory":"","timeout":60.0,"name":"py"}"#
    );
    let End::Completed { metadata, .. } = end else { panic!("{end:?}") };
    assert_eq!(metadata.as_deref(), Some(r#"{"team":"a","_trace_input_tokens":3}"#));
    stage.node.shutdown().await;
}

#[tokio::test]
async fn outputs_that_json_cannot_hold_are_an_error() {
    if without_python() {
        return;
    }
    let code = "class A(AgentBase):\n    async def execute(self, d):\n        return {'x': {1, 2}}\n";
    assert_eq!(fails(code, "").await, "Object of type set is not JSON serializable");
}

#[tokio::test]
async fn every_name_that_agents_import_is_there() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
from atlas import __version__, AgentBase
from atlas.runtime import AgentBase, AgentContext, AgentResult, run_agent
from atlas.runtime.llm_agent import LLMAgent
from atlas.runtime.context import AgentContext, SpawnResult, SpawnError, SkillInvocationError
from atlas.llm.provider import LLMResponse, LLMProvider
from atlas.llm import openai as o, anthropic as a
from atlas.orchestrator.protocol import RoutingDecision, Orchestrator
from atlas.contract.registry import AgentRegistry
from atlas.contract.types import (AgentContract, SchemaSpec, HardwareSpec, ModelSpec, RequiresSpec, RetrySpec, ProviderSpec,
                                  KnowledgeRequirement, AgentDependency)
from atlas.contract.permissions import PermissionsSpec
from atlas.pool.job import JobData
from atlas.knowledge.provider import KnowledgeEntry
from atlas.skills.types import SkillSpec, SkillError
from pathlib import Path

class Fake:
    async def complete(self, prompt, **kwargs):
        return LLMResponse(prompt.upper(), 3, 5, "fake")

class Shout(LLMAgent):
    async def on_startup(self):
        self.context.providers["llm_provider"] = Fake()
        await super().on_startup()
    def build_prompt(self, input_data):
        return input_data["text"]
    def parse_response(self, response, input_data):
        return {"text": response.text, "fast": o.model_for_preference("fast"), "other": a.model_for_preference("?"),
                "provider": isinstance(Fake(), LLMProvider), "route": RoutingDecision().action,
                "registry": len(AgentRegistry([self.contract])), "required": self.contract.input_schema.required,
                "read": self.context.permissions.filesystem, "knowledge": self.contract.requires.knowledge.enabled}
"#;
    let more = "  input:\n    schema: {type: object, required: [text]}\n";
    let ends = stage.run(code, more, &["{\"text\": \"hi\"}"]).await;
    assert_eq!(
        ends[0].output(&stage.controller),
        r#"{"text":"HI","fast":"gpt-4o-mini","other":"claude-sonnet-4-20250514","provider":true,"route":"execute","registry":1,"required":["text"],"read":["read"],"knowledge":false}"#
    );
    let End::Completed { metadata, .. } = &ends[0] else { panic!("{ends:?}") };
    assert_eq!(
        metadata.as_deref(),
        Some(r#"{"team":"a","_trace_input_tokens":3,"_trace_output_tokens":5,"_trace_model":"fake"}"#)
    );
    stage.node.shutdown().await;
}

#[tokio::test]
async fn on_shutdown_runs_when_the_worker_stops() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let mark = stage.node.dir.path().join("mark");
    let code = format!(
        "from pathlib import Path\nclass A(AgentBase):\n    async def execute(self, d):\n        return {{}}\n    async def on_shutdown(self):\n        Path({:?}).write_text('bye')\n",
        mark.display().to_string()
    );
    stage.run(&code, "", &["{}"]).await;
    let dir = stage.node.dir.path().to_owned();
    let Stage { node, mut session, .. } = stage;
    let kept = tempfile::tempdir().expect("temporary directory");
    let moved = kept.path().join("mark");
    let stopping = node.shutdown_after(move || std::fs::copy(dir.join("mark"), &moved).is_ok());
    let (_, stopped) = tokio::join!(session.until_closed(), stopping);
    assert!(stopped, "on_shutdown was called");
}

#[tokio::test]
async fn an_agent_that_cannot_even_say_why_it_does_not_load_fails_at_once() {
    if without_python() {
        return;
    }
    let mute = "class E(BaseException):\n    def __str__(self):\n        raise ValueError()\n";
    let line = HEADER.lines().count() + 4;
    for (end, error) in
        [("raise E()", format!("agent.py, line {line}: E")), ("def __dir__():\n    raise E()", "E".to_owned())]
    {
        let code = format!("{mute}{end}\n");
        assert_eq!(fails(&code, "").await, format!("Pool error: {error}"));
    }
}

#[tokio::test]
async fn a_process_that_a_job_leaves_running_ends_with_it() {
    if without_python() {
        return;
    }
    let code = "import subprocess\nfrom atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def on_startup(self):\n        subprocess.Popen(['sleep', '86351'])\n    async def execute(self, d):\n        subprocess.Popen(['sleep', '86352'], start_new_session=True)\n        subprocess.run(['true'])\n        return {}\n";
    let Stage { mut controller, node, mut session } = Stage::set().await;
    let agent = controller.publish_owned(&python(code, ""));
    for warm in [false, true] {
        let end = session.run(&controller.assignment(&agent, "{}")).await;
        assert_eq!(end.usage().warm, warm);
        assert_eq!((processes("86351"), processes("86352")), (1, 0));
        let line = session.events.pop().expect("it is told");
        assert_eq!(line.level, "warning");
        // A process in the middle of its exec has a name and no arguments yet.
        assert!(line.text.starts_with("killed a process that the job left running: sleep"), "{line:?}");
    }
    node.shutdown().await;
}

#[tokio::test]
async fn the_memory_of_the_contract_is_a_limit_and_a_default_is_none() {
    if without_python() {
        return;
    }
    let code = "from atlas.runtime.base import AgentBase\nclass A(AgentBase):\n    async def execute(self, d):\n        try:\n            return {'bytes': len(bytearray(3 << 29))}\n        except MemoryError:\n            return {'bytes': 0}\n";
    let mut controller = Controller::start().await;
    let node = Node::start_with(&controller, |options| options.cgroup = atlas_worker::Cgroup::Off).await;
    let mut session = controller.welcomed(Vec::new()).await;
    let agent = controller.publish_owned(&python(code, "  hardware: {min_memory_gb: 1, min_cpu_cores: 1}\n"));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    assert_eq!(end.output(&controller), r#"{"bytes":0}"#);
    let End::Completed { metadata, .. } = &end else { panic!("{end:?}") };
    let said = r#"{"team":"a","_limits":"memory 1 GiB a process by rlimit, cpu not enforced"}"#;
    assert_eq!(metadata.as_deref(), Some(said));
    let agent = controller.publish_owned(&python(code, ""));
    let end = session.run(&controller.assignment(&agent, "{}")).await;
    assert_eq!(end.output(&controller), r#"{"bytes":1610612736}"#);
    assert!(matches!(&end, End::Completed { metadata: None, .. }), "{end:?}");
    node.shutdown().await;
}

/// An interpreter that turns out to be none once `gate` exists.
fn no_interpreter(folder: &Path, gate: &Path) -> PathBuf {
    let program = folder.join("python3");
    std::fs::write(&program, format!("#!/bin/sh\nwhile [ ! -e {} ]; do sleep 0.02; done\nexit 1\n", gate.display()))
        .expect("writable");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("its own file");
    program
}

#[tokio::test]
async fn a_node_without_python_says_so_and_returns_what_came_before() {
    let mut controller = Controller::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let gate = folder.path().join("gate");
    let node = Node::start_with(&controller, |options| {
        options.python = Some(no_interpreter(folder.path(), &gate));
    })
    .await;
    let mut session = controller.session().await;
    assert_eq!(session.hello().await.inventory.labels.get("python"), None);
    let agent = controller.publish_owned(&python(&format!("{HEADER}class A(AgentBase): pass\n"), ""));
    let early = controller.assignment(&agent, "{}");
    session.welcome(vec![early.clone()]).await;
    std::fs::write(&gate, "").expect("writable");
    session = controller.session().await;
    let hello = session.hello().await;
    assert_eq!(hello.inventory.labels.get("python").map(String::as_str), Some("none"));
    session.welcome(vec![early.clone()]).await;
    let (token, end) = session.end().await;
    assert!(token == early.token && matches!(end, End::NotHeld), "{end:?}");

    // What comes although the leader knows fails, and says why.
    let error = session.run(&controller.assignment(&agent, "{}")).await.error();
    assert!(error.contains("this node has no Python"), "{error}");
    node.shutdown().await;
}
