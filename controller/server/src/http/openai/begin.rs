//! From a request to its job: what is named as a model decides which.

use std::collections::BTreeMap;

use atlas_model::{Capability, ModelSpec, Part, Purpose, Request, Role};
use atlas_openai::{Dialogue, DialogueMessage, WireError, job_input};
use atlas_service::{
    Caller, Mapping, Message, ModelCall, ShownAgent, Submission, SubmittedJob, UsableForm, UsableModel,
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use super::errors::Refusal;
use crate::http::HttpDoor;
use crate::http::answer::Response;

/// The label that says which operation of OpenAI's interface made a job.
pub(super) const OPERATION_LABEL: &str = "openai";
/// The label with the model as the client named it.
pub(super) const MODEL_LABEL: &str = "openai.model";
/// The label with the client's own user.
const USER_LABEL: &str = "openai.user";
/// Most bytes of a label.
const LABEL_BYTES_MAX: usize = 1_024;
/// The members of `requires` that give an agent no tools.
const NO_TOOLS: [&str; 1] = ["secrets"];

/// What a request asks for.
pub(super) struct Asked<'a> {
    /// The operation, for records: `chat`, `completion`, `embeddings` or `response`.
    pub(super) operation: &'static str,
    /// The model as the client names it.
    pub(super) model: &'a str,
    pub(super) purpose: Purpose,
    pub(super) request: &'a Request,
    /// Whether the answer is followed.
    pub(super) stream: bool,
    pub(super) user: Option<&'a str>,
    /// More labels.
    pub(super) labels: BTreeMap<String, String>,
    /// More labels of the job of an agent, whose input is its own.
    pub(super) agent_labels: BTreeMap<String, String>,
    /// Members of the input of a model call that the worker does not read.
    pub(super) beside: Map<String, Value>,
}

/// What an agent is asked, if the model is one. It refuses requests that an agent cannot follow.
pub(super) type Said<'a> = &'a (dyn Fn() -> Result<Dialogue, WireError> + Sync);

/// A job that was submitted.
pub(super) struct Begun {
    pub(super) job: SubmittedJob,
    /// Which pieces can be followed.
    pub(super) live: Live,
    limits: ModelLimits,
}

/// Limits of the model, for headers.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelLimits(Vec<(&'static str, u64)>);

/// What pieces of the answer mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Live {
    /// Those of one call, with thoughts and tool calls.
    Call,
    /// The text of an agent.
    Text,
    /// The answer is sent when it is complete: what the agent says meanwhile is no part of it.
    Nothing,
}

impl Begun {
    /// What is known of the limits of the model.
    pub(super) fn limits(&self) -> ModelLimits {
        self.limits.clone()
    }
}

impl ModelLimits {
    /// Adds them to an answer.
    pub(super) fn limited(&self, mut response: Response) -> Response {
        for (name, limit) in &self.0 {
            response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from(*limit));
        }
        response
    }
}

/// Submits the job of a request.
pub(super) async fn begin(
    door: &HttpDoor,
    caller: &Caller,
    asked: Asked<'_>,
    said: Said<'_>,
) -> Result<Begun, Refusal> {
    let found = door.service.usable_model(caller, asked.model).await?;
    let Some(UsableModel { form, .. }) = found else { return Err(WireError::model_not_found(asked.model).into()) };
    let mut labels = labels(&asked);
    match form {
        UsableForm::Model { name, spec } => {
            if spec.purpose != asked.purpose {
                let (is, wanted) = (word(spec.purpose), word(asked.purpose));
                let text = format!("the model {:?} has the type {is}, and {wanted} is needed", asked.model);
                return Err(WireError::invalid(text).at("model").into());
            }
            check_capabilities(&spec, &asked)?;
            let mut input = job_input(&name, asked.request);
            input["stream"] = asked.stream.into();
            if let Some(members) = input.as_object_mut() {
                members.extend(asked.beside);
            }
            let call = ModelCall { input, labels, request_id: caller.request_id.clone() };
            let job = door.service.call_model(caller, call).await?;
            let limits = [
                ("x-ratelimit-limit-requests", spec.limits.requests_per_minute.map(u64::from)),
                ("x-ratelimit-limit-tokens", spec.limits.tokens_per_minute),
            ];
            let limits = limits.into_iter().filter_map(|(name, limit)| Some((name, limit?))).collect();
            Ok(Begun { job, live: Live::Call, limits: ModelLimits(limits) })
        }
        UsableForm::Agent { agent, version, mapping } => {
            if asked.purpose != Purpose::Chat {
                return Err(WireError::invalid("the model is an agent, which makes no vectors").at("model").into());
            }
            let mapping = mapping.map_err(|why| {
                let text = format!("{:?} takes no messages: {why}; run it with its input at /api/jobs", asked.model);
                WireError::invalid(text).at("model")
            })?;
            let input = input_of(&mapping, said()?)?;
            let ShownAgent { agent, contract } = *agent;
            labels.extend(asked.agent_labels);
            let submission = Submission {
                version,
                labels: labels.into(),
                request_id: caller.request_id.clone(),
                refuse: true,
                ..Submission::new(agent.name.clone(), Bytes::from(input.to_string()))
            };
            let job = door.service.submit_to_wait(caller, submission).await?;
            let live = if says_its_answer(&contract.value) { Live::Text } else { Live::Nothing };
            Ok(Begun { job, live, limits: ModelLimits::default() })
        }
        // Names that are looked up become agents.
        UsableForm::Chain => Err(WireError::model_not_found(asked.model).into()),
    }
}

/// Refuses what the model does not declare: a worker would leave the form of the answer out, because agents check theirs themselves. What a
/// fallback may be able to do is not refused here.
fn check_capabilities(spec: &ModelSpec, asked: &Asked<'_>) -> Result<(), WireError> {
    let request = asked.request;
    let lacks = |capability| !spec.capabilities.contains(&capability);
    let why = |word: &str| format!("the model {:?} does not declare the capability {word}", asked.model);
    let is_image = |part: &Part| matches!(part, Part::Image(_));
    let format = if asked.operation == "response" { "text.format" } else { "response_format" };
    if request.output.is_some() && lacks(Capability::JsonSchema) {
        return Err(WireError::unsupported(format, &why("json_schema")));
    }
    if !spec.fallbacks.is_empty() {
        return Ok(());
    }
    if !request.tools.is_empty() && lacks(Capability::Tools) {
        return Err(WireError::unsupported("tools", &why("tools")));
    }
    let has_images = request.messages.iter().flat_map(|message| &message.parts).any(is_image);
    if has_images && lacks(Capability::Vision) {
        let list = if asked.operation == "response" { "input" } else { "messages" };
        return Err(WireError::unsupported(list, &why("vision")));
    }
    Ok(())
}

fn labels(asked: &Asked<'_>) -> BTreeMap<String, String> {
    let mut labels = asked.labels.clone();
    labels.insert(OPERATION_LABEL.to_owned(), asked.operation.to_owned());
    labels.insert(MODEL_LABEL.to_owned(), asked.model.to_owned());
    if let Some(user) = asked.user {
        labels.insert(USER_LABEL.to_owned(), label(user));
    }
    labels
}

/// A text of a client as the value of a label.
fn label(text: &str) -> String {
    let plain: String = text.chars().filter(|char| !char.is_control()).collect();
    plain[..plain.floor_char_boundary(LABEL_BYTES_MAX)].to_owned()
}

fn word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Chat => "chat",
        Purpose::Embedding => "embedding",
        Purpose::Reranker => "reranker",
    }
}

/// The input of an agent. Texts of the system come before the first message that it sees: its own system text is its contract's.
fn input_of(mapping: &Mapping, said: Dialogue) -> Result<Value, WireError> {
    let Dialogue { system, messages } = said;
    if !mapping.sees() && messages.iter().any(|message| !message.images.is_empty()) {
        return Err(WireError::invalid("the model is an agent, and its input has no member for images"));
    }
    let mut messages: Vec<Message> = messages.into_iter().map(message).collect();
    if !system.is_empty() {
        let first = if mapping.remembers() { messages.first_mut() } else { messages.last_mut() };
        match first {
            Some(first) if first.role == atlas_service::Role::User => {
                first.content = format!("{system}\n\n{}", first.content);
            }
            _ => messages.insert(0, Message::user(system, Vec::new())),
        }
    }
    Ok(mapping.input(&messages))
}

fn message(said: DialogueMessage) -> Message {
    let DialogueMessage { role, text, images } = said;
    let images = images.into_iter().map(|image| json!({ "data": image.data, "mime_type": image.mime })).collect();
    let role = match role {
        Role::User => atlas_service::Role::User,
        Role::Assistant => atlas_service::Role::Assistant,
    };
    Message { role, ..Message::user(text, images) }
}

/// Whether what the model of an agent says is the reply of the agent: it answers with a text, and no tool comes between.
fn says_its_answer(contract: &Value) -> bool {
    let provider = &contract["provider"];
    let has_tools = |(name, value): (&String, &Value)| {
        let is_empty = match value {
            Value::Array(items) => items.is_empty(),
            Value::Bool(flag) => !flag,
            Value::Null => true,
            Value::Object(members) => members.get("enabled") == Some(&Value::Bool(false)),
            _ => false,
        };
        !is_empty && !NO_TOOLS.contains(&name.as_str())
    };
    let tools = contract["requires"].as_object().into_iter().flatten().any(has_tools);
    provider["type"] == "llm" && provider["output_format"] == "text" && !tools
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(more: &str) -> Value {
        let text = format!("agent: {{name: a, version: 1.0.0, {more}}}");
        atlas_contract::parse(text.as_bytes()).expect("a contract").to_json()
    }

    #[test]
    fn agents_that_say_their_answer_are_followed() {
        let says = |more: &str| says_its_answer(&contract(more));
        let text = "provider: {type: llm, output_format: text, system_prompt: x}";
        assert!(says(text));
        assert!(says(&format!("{text}, requires: {{secrets: [a]}}, permissions: {{secrets: [a]}}")));
        assert!(!says(&format!("{text}, requires: {{platform_tools: true}}")));
        assert!(!says("provider: {type: llm, system_prompt: x}"));
        assert!(!says("provider: {type: exec, command: [cat]}"));
    }

    #[test]
    fn the_system_text_comes_first() {
        let said = |texts: &[(Role, &str)]| Dialogue {
            system: "Be brief.".to_owned(),
            messages: texts
                .iter()
                .map(|(role, text)| DialogueMessage { role: *role, text: (*text).to_owned(), images: Vec::new() })
                .collect(),
        };
        let all = contract("provider: {type: llm, messages: m}, input: {schema: {properties: {m: {type: array}}}}");
        let all = Mapping::of(&all).expect("a mapping");
        let input =
            input_of(&all, said(&[(Role::User, "a"), (Role::Assistant, "b"), (Role::User, "c")])).expect("an input");
        assert_eq!(input["m"][0], json!({"role": "user", "content": "Be brief.\n\na"}));
        assert_eq!(input["m"][2], json!({"role": "user", "content": "c"}));
        let last = contract("provider: {type: exec, command: [cat]}");
        let last = Mapping::of(&last).expect("a mapping");
        let input =
            input_of(&last, said(&[(Role::User, "a"), (Role::Assistant, "b"), (Role::User, "c")])).expect("an input");
        assert_eq!(input, json!({"message": "Be brief.\n\nc"}));
    }

    #[test]
    fn labels_are_short_and_plain() {
        assert_eq!(label("a\nb\u{7f}c"), "abc");
        assert_eq!(label(&"é".repeat(1_000)).len(), 1_024);
    }
}
