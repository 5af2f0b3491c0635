//! The extensions of `provider` for llm agents: what a contract can ask of the model and of the agent loop beyond Atlas
//! for Python.

use serde_json::{Map, Value, json};

use super::members::Members;

/// What an llm agent asks of its model and its loop. None means that the contract does not say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Llm {
    /// Most tokens of one answer.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    /// Texts that end an answer.
    pub stop: Option<Vec<String>>,
    /// `low`, `medium` or `high`.
    pub reasoning_effort: Option<String>,
    /// Whether answers are requested in pieces, so that followers see them form.
    pub stream: Option<bool>,
    /// Whether answers must match the output schema: the provider is asked for it, and the model is asked again.
    pub enforce_schema: Option<bool>,
    /// How often the model is asked again.
    pub repair_rounds: Option<u32>,
    /// Most tool calls at the same time.
    pub parallel_tools: Option<u32>,
    /// The number of equal rounds of tools in a row that ends the job; zero disables the guard.
    pub loop_repeat_threshold: Option<u32>,
    /// Whether a job whose requests are used up returns its last text.
    pub partial_at_limit: Option<bool>,
    /// The member of the input that has images.
    pub images: Option<String>,
    /// The member of the input that has the messages of a conversation.
    pub messages: Option<String>,
    /// The member of the input that has settings of the model for its job.
    pub settings: Option<String>,
    /// Whether jobs ask only whether their model can be reached, and call none.
    pub probe: Option<bool>,
    /// Whether jobs make vectors of texts or sort them, for document bases, and hold no conversation.
    pub documents: Option<bool>,
    /// Whether jobs make the one call that their input asks for, and return its answer: no loop, and no tools are run.
    pub direct: Option<bool>,
    /// Whether the agent answers the questions of the jobs that it starts.
    pub answers_helpers: Option<bool>,
    /// How long a question to people is open.
    pub question_timeout_seconds: Option<f64>,
    /// How long a job waits for the provider of its model while that is down.
    pub outage_wait_seconds: Option<f64>,
    /// The conversation that all jobs of an agent with a `config.yaml` continue.
    pub session: Option<String>,
    /// What happens to calls of some tools. The first rule for a tool counts.
    pub tool_permissions: Vec<ToolPermission>,
}

/// A rule for tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPermission {
    /// A name, or the beginning of names before `*`.
    pub tool: String,
    /// `allow`, `ask` or `deny`.
    pub action: String,
}

impl Llm {
    pub(super) fn read(provider: Members<'_>) -> Self {
        let count = |name| provider.amount(name).map(|amount| u32::try_from(amount).unwrap_or(u32::MAX));
        let number = |name| provider.get(name).and_then(Value::as_f64);
        let flag = |name| provider.get(name).and_then(Value::as_bool);
        let text = |name| provider.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            max_tokens: count("max_tokens"),
            temperature: number("temperature"),
            top_p: number("top_p"),
            top_k: count("top_k"),
            stop: provider.texts("stop"),
            reasoning_effort: text("reasoning_effort"),
            stream: flag("stream"),
            enforce_schema: flag("enforce_schema"),
            repair_rounds: count("repair_rounds"),
            parallel_tools: count("parallel_tools"),
            loop_repeat_threshold: count("loop_repeat_threshold"),
            partial_at_limit: flag("partial_at_limit"),
            images: text("images"),
            messages: text("messages"),
            settings: text("settings"),
            probe: flag("probe"),
            documents: flag("documents"),
            direct: flag("direct"),
            answers_helpers: flag("answers_helpers"),
            question_timeout_seconds: number("question_timeout_seconds"),
            outage_wait_seconds: number("outage_wait_seconds"),
            session: text("session"),
            tool_permissions: permissions(provider.get("tool_permissions")),
        }
    }

    /// Its members that are set, in the order of the documentation.
    pub(super) fn members(&self) -> Map<String, Value> {
        let rule = |rule: &ToolPermission| json!({"tool": rule.tool, "action": rule.action});
        let rules: Vec<Value> = self.tool_permissions.iter().map(rule).collect();
        let all: [(&str, Option<Value>); 23] = [
            ("max_tokens", self.max_tokens.map(Value::from)),
            ("temperature", self.temperature.map(Value::from)),
            ("top_p", self.top_p.map(Value::from)),
            ("top_k", self.top_k.map(Value::from)),
            ("stop", self.stop.clone().map(Value::from)),
            ("reasoning_effort", self.reasoning_effort.clone().map(Value::from)),
            ("stream", self.stream.map(Value::from)),
            ("enforce_schema", self.enforce_schema.map(Value::from)),
            ("repair_rounds", self.repair_rounds.map(Value::from)),
            ("parallel_tools", self.parallel_tools.map(Value::from)),
            ("loop_repeat_threshold", self.loop_repeat_threshold.map(Value::from)),
            ("partial_at_limit", self.partial_at_limit.map(Value::from)),
            ("images", self.images.clone().map(Value::from)),
            ("messages", self.messages.clone().map(Value::from)),
            ("settings", self.settings.clone().map(Value::from)),
            ("probe", self.probe.map(Value::from)),
            ("documents", self.documents.map(Value::from)),
            ("direct", self.direct.map(Value::from)),
            ("answers_helpers", self.answers_helpers.map(Value::from)),
            ("question_timeout_seconds", self.question_timeout_seconds.map(Value::from)),
            ("outage_wait_seconds", self.outage_wait_seconds.map(Value::from)),
            ("session", self.session.clone().map(Value::from)),
            ("tool_permissions", Some(rules).filter(|rules| !rules.is_empty()).map(Value::from)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

fn permissions(rules: Option<&Value>) -> Vec<ToolPermission> {
    let text = |rule: &Value, name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let rules = rules.and_then(Value::as_array).into_iter().flatten();
    rules.map(|rule| ToolPermission { tool: text(rule, "tool"), action: text(rule, "action") }).collect()
}
