//! A conversation with a provider of any protocol, and answers that no provider should give.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use atlas_http::Proxy;
use atlas_llm::client::{Backend, Client, Http, Target};
use atlas_llm::{Endpoint, Protocol};
use atlas_model::{Message, Part, Purpose, Request, Role, Stop, Tool, ToolResult};
use expect_test::Expect;
use serde_json::{Value, json};

use crate::machine::run;
use crate::server::{Check, Reply, Seen, Server};
pub(crate) use crate::strict::ensure;

/// The key that clients of these tests send. No error may repeat it.
pub(crate) const KEY: &str = "canary-0123456789abcdef";

pub(crate) const HOST: &str = "localhost:1";

/// A provider at [`HOST`], and what its server accepts.
pub(crate) struct Provider {
    pub(crate) protocol: Arc<dyn Protocol>,
    /// The path of the base address.
    pub(crate) path: &'static str,
    pub(crate) model: &'static str,
    pub(crate) strict: Check,
}

impl Provider {
    pub(crate) fn target(&self) -> Target {
        let http = Http {
            protocol: Arc::clone(&self.protocol),
            endpoint: Endpoint { base_url: format!("http://{HOST}{}", self.path), headers: Vec::new() },
            patches: Vec::new(),
            proxy: Proxy::Direct,
            login: None,
            plain: false,
            read_timeout: Duration::from_secs(20),
        };
        Target {
            name: "model".to_owned(),
            model: self.model.to_owned(),
            backend: Backend::Http(Box::new(http)),
            purpose: Purpose::Chat,
            stream: true,
            timeout: Duration::from_secs(60),
            attempts: 1,
            deadline: Duration::from_secs(600),
            context_window: None,
            output_tokens_max: None,
            capabilities: None,
            gate: None,
        }
    }
}

/// Asks for the weather with two tools. The first reply calls both, the second answers with `Sunny.`.
pub(crate) fn converse(provider: &Provider, stream: bool, replies: [Reply; 2]) {
    run(|env, network| async move {
        let server = Server::start(&env, &network, HOST, provider.strict, replies.into());
        let client = Client::new(env);
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let weather = Tool { name: "weather".into(), description: "Weather.".into(), input_schema: schema };
        let clock = Tool { name: "clock".into(), description: "Time.".into(), input_schema: json!({}) };
        let mut request = Request {
            system: "Be brief.".into(),
            messages: vec![Message::user("Weather?")].into(),
            tools: vec![weather, clock],
            stream,
            ..Request::default()
        };
        let minute = Duration::from_secs(60);
        let targets = [provider.target()];
        let first = client.call(&targets, &request, minute, &mut |_| {}).await.expect("an answer").answer;
        assert_eq!((first.stop.clone(), first.tool_calls().count()), (Stop::Tools, 2));
        request.messages.push(first.message());
        let result = |(at, call): (usize, &atlas_model::ToolCall)| {
            let content = if at == 0 { "{\"sky\": \"blue\"}" } else { "no clock" };
            let (call, name) = (call.id.clone(), call.name.clone());
            Part::ToolResult(ToolResult { call, name, content: content.into(), error: at == 1 })
        };
        let parts = first.tool_calls().enumerate().map(result).collect();
        request.messages.push(Message { role: Role::User, parts });
        let done = client.call(&targets, &request, minute, &mut |_| {}).await.expect("an answer");
        assert_eq!((done.answer.text().as_str(), done.answer.stop.clone()), ("Sunny.", Stop::End));
        assert_eq!((done.answer.usage.input, done.answer.usage.output), (3, 2));
        assert_eq!((server.seen().len(), server.left()), (2, 0));
    });
}

/// Compares the error of a call. Its message is shown without long rows of one letter.
pub(crate) fn check_error(provider: &Provider, stream: bool, reply: Reply, expected: &Expect) {
    let line = run(|env, network| async move {
        let server = Server::start(&env, &network, HOST, provider.strict, vec![reply]);
        let request = Request { messages: vec![Message::user("Hi")].into(), stream, ..Request::default() };
        let limit = Duration::from_secs(3600);
        let called = Client::new(env).call(&[provider.target()], &request, limit, &mut |_| {}).await;
        let error = called.expect_err("an error").error;
        assert_eq!(server.left(), 0, "the request was accepted");
        assert!(error.message.len() <= 2048, "bounded");
        let shown: String = error.message.replace(&"x".repeat(20), "").chars().take(150).collect();
        format!("{}: {shown}", error.kind.name())
    });
    assert!(!line.contains("canary"), "{line}");
    expected.assert_eq(&line);
}

/// Checks what all servers check, and returns the members of the body. A null is no member.
pub(crate) fn body<'a>(
    seen: &'a Seen,
    path: &str,
    known: &[&str],
) -> Result<&'a serde_json::Map<String, Value>, String> {
    ensure(seen.method == "POST", "method")?;
    let found = seen.uri.path_and_query().map_or("", |path| path.as_str());
    ensure(found == path, &format!("path {found}"))?;
    ensure(header(seen, "content-type") == "application/json", "content-type")?;
    ensure(header(seen, "user-agent").starts_with("atlas/"), "user-agent")?;
    let body = seen.body.as_object().ok_or("the body is no object")?;
    for (name, value) in body {
        ensure(known.contains(&name.as_str()), &format!("unknown member {name}"))?;
        ensure(!value.is_null(), &format!("{name} is null"))?;
    }
    Ok(body)
}

pub(crate) fn header<'a>(seen: &'a Seen, name: &str) -> &'a str {
    seen.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Refuses calls without a result, and results without a call.
pub(crate) fn ensure_answered(calls: &[String], results: &[String]) -> Result<(), String> {
    let (calls_set, results_set): (BTreeSet<_>, BTreeSet<_>) = (calls.iter().collect(), results.iter().collect());
    ensure(calls_set.len() == calls.len(), "an id twice")?;
    ensure(calls_set == results_set && calls.len() == results.len(), &format!("calls {calls:?}, results {results:?}"))
}

/// The elements of a list, or none.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text, or an error that names it.
pub(crate) fn text(value: &Value, name: &str) -> Result<String, String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned).ok_or(format!("{name} is no text"))
}
