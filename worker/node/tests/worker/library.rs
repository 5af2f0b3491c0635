//! Tests shared memory and knowledge of programs, with a controller that answers for both.

use atlas_types::{Assignment, Attempt, JobId, StepKey, ToolEnd, ToolRequest};
use atlas_wire::session::{ToLeader, ToWorker};
use serde_json::{Value, json};

use crate::support::{Agent, End, Stage, python, shell, without_python};

const MEMORY: &str = "  requires: {memory: true}\n";
const BOTH: &str = "  requires: {memory: true, knowledge: {write_domains: [general]}}\n";

/// What a controller answers that has one entry.
pub(crate) fn answer(call: &ToolRequest) -> ToolEnd {
    let arguments: Value = serde_json::from_slice(&call.arguments).expect("JSON");
    let entry = json!({
        "id": "general-1", "content": "the door is blue", "domain": "general", "tags": ["door"], "metadata": {"n": 1},
        "created_at": "2026-01-01T00:00:00+00:00", "updated_at": "2026-01-01T00:00:00+00:00", "later": "more"
    });
    let answer = match call.tool.as_str() {
        "atlas.memory.read" => json!({"text": "known\n"}),
        "atlas.memory.append" => json!({"status": "appended"}),
        "atlas.memory.write" => json!({"status": "written"}),
        "atlas.knowledge.search" => json!({"entries": [entry]}),
        "atlas.knowledge.store" if arguments["domain"] == "closed" => {
            return ToolEnd::Refused("Agent not allowed to write to knowledge domain 'closed'".to_owned());
        }
        "atlas.knowledge.get" | "atlas.knowledge.update" if arguments["id"] == "none" => json!({"entry": null}),
        "atlas.knowledge.get" | "atlas.knowledge.store" | "atlas.knowledge.update" => json!({"entry": entry}),
        "atlas.documents.search" if arguments["base"] == "closed" => {
            let why = "Agent not allowed to search the document base 'closed' — name it in requires.documents";
            return ToolEnd::Refused(why.to_owned());
        }
        "atlas.documents.search" => {
            let hit =
                json!({"source": "door.md", "text": "A blue door.", "score": 1.5, "document": "ab", "metadata": {}});
            json!({"hits": [hit]})
        }
        other => return ToolEnd::Refused(format!("Unknown tool: {other}")),
    };
    ToolEnd::Result(answer.to_string().into_bytes().into())
}

/// A worker, and what it asked for.
struct Asking {
    stage: Stage,
    asked: Vec<String>,
    keys: Vec<(StepKey, bool)>,
}

impl Asking {
    async fn set() -> Self {
        Self { stage: Stage::set().await, asked: Vec::new(), keys: Vec::new() }
    }

    fn publish(&mut self, files: &[(&'static str, String)]) -> Agent {
        self.stage.controller.publish_owned(files)
    }

    /// Runs an attempt of one job.
    async fn attempt(&mut self, agent: &Agent, attempt: u32, input: &str) -> End {
        let assignment = self.stage.controller.assignment(agent, input);
        let assignment = Assignment { job: JobId(7), attempt: Attempt(attempt), ..assignment };
        self.stage.session.grant(&assignment).await;
        loop {
            match self.stage.session.next().await {
                ToLeader::CallTool { number, call } => {
                    self.asked.push(format!("{} {}", call.tool, String::from_utf8_lossy(&call.arguments)));
                    self.keys.push((call.key, call.again));
                    self.stage.session.say(ToWorker::ToolCalled { number, end: answer(&call) }).await;
                }
                ToLeader::Renew { number } => self.stage.session.say(ToWorker::RenewAck { number }).await,
                ToLeader::Report { number, report } => {
                    let result = atlas_types::ReportResult::Applied;
                    self.stage.session.say(ToWorker::ReportAck { number, result }).await;
                    if let Some(end) = End::of(report.kind) {
                        return end;
                    }
                }
                _ => {}
            }
        }
    }

    /// Runs one job.
    async fn once(&mut self, files: &[(&'static str, String)], input: &str) -> End {
        let agent = self.publish(files);
        self.attempt(&agent, 1, input).await
    }

    fn output(&self, end: &End) -> Value {
        serde_json::from_str(&end.output(&self.stage.controller)).expect("JSON")
    }

    async fn over(self) {
        self.stage.node.shutdown().await;
    }
}

#[tokio::test]
async fn a_document_has_what_the_contract_enables() {
    let mut asking = Asking::set().await;
    let end = asking.once(&shell("cat", ""), r#"{"message": "door"}"#).await;
    let document = asking.output(&end);
    assert_eq!((document.get("memory"), document.get("knowledge"), asking.asked.len()), (None, None, 0));
    let end = asking.once(&shell("cat", MEMORY), r#"{"message": "door"}"#).await;
    let document = asking.output(&end);
    assert_eq!((&document["memory"], document.get("knowledge")), (&json!("known\n"), None));
    let knowledge = "  requires: {knowledge: true}\n";
    let end = asking.once(&shell("cat", knowledge), r#"{"other": "b", "message": " door "}"#).await;
    let document = asking.output(&end);
    let entry = json!({"id": "general-1", "domain": "general", "content": "the door is blue", "tags": ["door"]});
    assert_eq!((document.get("memory"), &document["knowledge"]), (None, &json!([entry])));
    let asked = ["atlas.memory.read {}", r#"atlas.knowledge.search {"query":"door b","limit":5}"#];
    assert_eq!(asking.asked, asked);
    let end = asking.once(&shell("cat", knowledge), r#"{"n": 1}"#).await;
    assert_eq!(asking.output(&end)["knowledge"], json!([]));
    assert_eq!(asking.asked.len(), 2, "an input without a text asks for nothing");
    asking.over().await;
}

#[tokio::test]
async fn instructions_are_carried_out_before_the_output_is_validated() {
    let mut asking = Asking::set().await;
    let output = r#"{"a": 1, "_memory_append": "seen", "_knowledge_store": [{"content": "x", "tags": ["t"]}]}"#;
    let strict =
        "  output:\n    schema: {type: object, additionalProperties: false, properties: {a: {type: integer}}}\n";
    let files = shell(&format!("echo '{output}'"), &format!("{BOTH}{strict}"));
    let agent = asking.publish(&files);
    let end = asking.attempt(&agent, 1, "{}").await;
    assert_eq!(end.output(&asking.stage.controller), r#"{"a":1}"#);
    let asked = [
        "atlas.memory.read {}",
        r#"atlas.memory.append {"text":"seen"}"#,
        r#"atlas.knowledge.store {"content":"x","domain":"general","tags":["t"]}"#,
    ];
    assert_eq!(asking.asked, asked);
    asking.attempt(&agent, 2, "{}").await;
    let (first, second) = asking.keys.split_at(3);
    let of = |keys: &[(StepKey, bool)]| keys.iter().map(|(key, _)| *key).collect::<Vec<_>>();
    assert_eq!(of(first), of(second), "another attempt makes the same calls");
    assert!(first.iter().all(|(_, again)| !again) && second.iter().all(|(_, again)| *again));
    // A worker that appends and fails in its output has appended.
    let wrong = shell(r#"echo '{"a": "x", "_memory_append": "seen"}'"#, &format!("{MEMORY}{strict}"));
    let end = asking.once(&wrong, "{}").await;
    assert!(end.error().starts_with("Output validation: "), "{end:?}");
    assert_eq!(asking.asked.last().map(String::as_str), Some(r#"atlas.memory.append {"text":"seen"}"#));
    asking.over().await;
}

#[tokio::test]
async fn a_denial_fails_the_job_and_what_is_not_enabled_is_only_removed() {
    let mut asking = Asking::set().await;
    let closed = r#"{"_knowledge_store": {"content": "x", "domain": "closed"}}"#;
    let end = asking.once(&shell(&format!("echo '{closed}'"), BOTH), "{}").await;
    assert_eq!(end.error(), "Agent not allowed to write to knowledge domain 'closed'");
    let end = asking.once(&shell("echo '{\"_knowledge_store\": 5}'", BOTH), "{}").await;
    assert!(end.error().starts_with("_knowledge_store is an object"), "{end:?}");
    asking.asked.clear();
    let both = r#"{"a": 1, "_memory_append": "x", "_knowledge_store": 5}"#;
    let end = asking.once(&shell(&format!("echo '{both}'"), ""), "{}").await;
    assert_eq!((end.output(&asking.stage.controller).as_str(), asking.asked.len()), (r#"{"a":1}"#, 0));
    asking.over().await;
}

#[tokio::test]
async fn a_warm_program_has_the_memory_of_each_job() {
    let mut asking = Asking::set().await;
    let script = r#"while read -r line; do printf '{"output": {"line": %s, "_memory_append": "one"}}\n' "$line"; done"#;
    let agent = asking.publish(&shell(script, &format!("    mode: warm\n{MEMORY}")));
    for _ in 0..2 {
        let end = asking.attempt(&agent, 1, "{}").await;
        let output = asking.output(&end);
        assert_eq!((&output["line"]["memory"], output.get("_memory_append")), (&json!("known\n"), None));
    }
    let expected = ["atlas.memory.read {}", r#"atlas.memory.append {"text":"one"}"#];
    assert_eq!(asking.asked, [expected, expected].concat());
    asking.over().await;
}

const PYTHON: &str = r#"
from atlas.runtime.base import AgentBase

class Keeper(AgentBase):
    async def execute(self, input_data):
        context, said = self.context, []
        said.append(await context.memory_read())
        await context.memory_append("a")
        await context.memory_append("a")
        await context.memory_write("b")
        mine = context.memory.of("agent")
        said.append([mine.scope, context.memory.scope, await mine.read()])
        await mine.append("c")
        (found,) = await context.knowledge_search("door", tags=["door"], limit=3)
        said.append([type(found).__name__, found.id, found.content, found.tags, found.metadata, found.created_at])
        said.append(await context.knowledge_get("none"))
        said.append((await context.knowledge_store("x", domain="general")).id)
        said.append((await context.knowledge_update("general-1", content="y")).id)
        said.append(await context.knowledge_update("none", content="y"))
        try:
            await context.knowledge_store("x", domain="closed")
        except PermissionError as error:
            said.append(str(error))
        return {"said": said}
"#;

#[tokio::test]
async fn python_agents_use_memory_and_knowledge() {
    if without_python() {
        return;
    }
    let mut asking = Asking::set().await;
    let agent = asking.publish(&python(PYTHON, BOTH));
    let end = asking.attempt(&agent, 1, "{}").await;
    let found =
        json!(["KnowledgeEntry", "general-1", "the door is blue", ["door"], {"n": 1}, "2026-01-01T00:00:00+00:00"]);
    let denied = "Agent not allowed to write to knowledge domain 'closed'";
    let said =
        json!(["known\n", ["agent", "namespace", "known\n"], found, null, "general-1", "general-1", null, denied]);
    assert_eq!(asking.output(&end)["said"], said);
    let asked = [
        "atlas.memory.read {}",
        r#"atlas.memory.append {"text":"a"}"#,
        r#"atlas.memory.append {"text":"a"}"#,
        r#"atlas.memory.write {"text":"b"}"#,
        r#"atlas.memory.read {"scope":"agent"}"#,
        r#"atlas.memory.append {"text":"c","scope":"agent"}"#,
        r#"atlas.knowledge.search {"query":"door","limit":3,"tags":["door"]}"#,
        r#"atlas.knowledge.get {"id":"none"}"#,
        r#"atlas.knowledge.store {"content":"x","domain":"general"}"#,
        r#"atlas.knowledge.update {"id":"general-1","content":"y"}"#,
        r#"atlas.knowledge.update {"id":"none","content":"y"}"#,
        r#"atlas.knowledge.store {"content":"x","domain":"closed"}"#,
    ];
    assert_eq!(asking.asked, asked);
    assert_ne!(asking.keys[1].0, asking.keys[2].0, "two equal entries are two");
    asking.attempt(&agent, 2, "{}").await;
    let (first, second) = asking.keys.split_at(asked.len());
    assert!(first.iter().zip(second).all(|(one, other)| one.0 == other.0 && !one.1 && other.1), "{first:?} {second:?}");
    asking.over().await;
}

#[tokio::test]
async fn python_agents_without_them_call_nothing() {
    if without_python() {
        return;
    }
    const CODE: &str = r#"
from atlas.runtime.base import AgentBase

class Keeper(AgentBase):
    async def execute(self, input_data):
        context = self.context
        said = [await context.memory_read(), await context.knowledge_search("x"), await context.knowledge_get("x")]
        for call in (context.memory_append, context.memory_write, context.knowledge_store, context.knowledge_update):
            try:
                await call("x")
            except RuntimeError as error:
                said.append(str(error))
        return {"said": said}
"#;
    let mut asking = Asking::set().await;
    let end = asking.once(&python(CODE, ""), "{}").await;
    let memory = "Memory not enabled — set requires.memory: true in contract";
    let knowledge = "Knowledge not enabled — set requires.knowledge in contract";
    assert_eq!(asking.output(&end)["said"], json!(["", [], null, memory, memory, knowledge, knowledge]));
    assert!(asking.asked.is_empty(), "{:?}", asking.asked);
    asking.over().await;
}

#[tokio::test]
async fn python_agents_search_document_bases() {
    if without_python() {
        return;
    }
    const CODE: &str = r#"
from atlas.runtime.base import AgentBase

class Searcher(AgentBase):
    async def execute(self, input_data):
        search = self.context.search_documents
        said = [hit["source"] for hit in await search("handbook", "door")]
        await search("handbook", "door", top_k=2, source="doors/", metadata={"team": "ops"})
        try:
            await search("closed", "door")
        except PermissionError as error:
            said.append(str(error))
        return {"said": said}
"#;
    let mut asking = Asking::set().await;
    let end = asking.once(&python(CODE, "  requires: {documents: [handbook]}\n"), "{}").await;
    let denied = "Agent not allowed to search the document base 'closed' — name it in requires.documents";
    assert_eq!(asking.output(&end)["said"], json!(["door.md", denied]));
    let asked = [
        r#"atlas.documents.search {"base":"handbook","query":"door"}"#,
        r#"atlas.documents.search {"base":"handbook","query":"door","top_k":2,"source":"doors/","metadata":{"team":"ops"}}"#,
        r#"atlas.documents.search {"base":"closed","query":"door"}"#,
    ];
    assert_eq!(asking.asked, asked);
    asking.over().await;
}
