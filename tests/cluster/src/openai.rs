//! OpenAI's interface of a real cluster: models, agents and their streams for clients that know only that interface.

use std::fs;
use std::path::Path;
use std::pin::Pin;

use atlas_llm_server::chats::{Chats, Said};
use atlas_package::pack;
use futures::{Stream, StreamExt as _};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::dev::Dev;
use crate::members::Member;
use crate::patience::{LONG, eventually, eventually_async};
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

/// An agent that answers with a text of its model.
const POET: &str = "agent:\n  name: poet\n  version: 1.0.0\n  description: Writes\n  model: { name: small }\n  \
                    provider: { type: llm, output_format: text, system_prompt: Write., messages: messages }\n  \
                    input: { schema: { type: object, properties: { messages: { type: array } }, required: [messages] } }\n";
/// An agent that takes no messages.
const ADDER: &str = "agent:\n  name: adder\n  version: 1.0.0\n  description: Adds\n  provider: { type: exec, command: [cat] }\n  \
                     input: { schema: { type: object, properties: { a: { type: number } }, required: [a] } }\n";

/// A client of the interface.
struct Client {
    server: String,
    client: reqwest::Client,
}

/// An answer.
struct Answer {
    status: u16,
    job: String,
    body: Value,
}

impl Client {
    fn new(server: &str) -> Self {
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
        Self { server: format!("http://{}/v1", server.trim_start_matches("http://")), client }
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let answer = request.send().await.expect("an answer");
        let job = answer.headers().get("x-request-id").and_then(|job| job.to_str().ok()).unwrap_or_default().to_owned();
        Answer { status: answer.status().as_u16(), job, body: answer.json().await.expect("JSON") }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(self.client.get(format!("{}{path}", self.server))).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.client.post(format!("{}{path}", self.server)).json(&body)).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.send(self.client.delete(format!("{}{path}", self.server))).await
    }

    /// Begins a stream.
    async fn stream(&self, path: &str, body: Value) -> Events {
        let answer = self.client.post(format!("{}{path}", self.server)).json(&body).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200);
        let bytes = answer.bytes_stream().map(|bytes| bytes.expect("bytes").to_vec());
        Events { bytes: Box::pin(bytes), text: String::new() }
    }

    async fn refused(&self, path: &str, body: Value) -> (u16, Value) {
        let answer = self.post(path, body).await;
        (answer.status, answer.body["error"].clone())
    }
}

/// The data of a stream.
struct Events {
    bytes: Pin<Box<dyn Stream<Item = Vec<u8>> + Send>>,
    text: String,
}

impl Events {
    /// The next data; none at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.text = rest.to_owned();
                match data {
                    Some(data) => return Some(data),
                    None => continue,
                }
            }
            let more = self.bytes.next().await?;
            self.text.push_str(&String::from_utf8_lossy(&more));
        }
    }

    async fn rest(mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(data) = self.next().await {
            all.push(data);
        }
        all
    }
}

/// The values of data that are JSON.
fn values(data: &[String]) -> Vec<Value> {
    data.iter().filter_map(|data| serde_json::from_str(data).ok()).collect()
}

/// The text of chunks.
fn said(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
}

fn spec(server: &Chats, kind: &str) -> Value {
    json!({"spec": {
        "provider": "openai", "name": "tiny", "type": kind, "base_url": server.url(), "key": "${TINY_KEY}",
        "capabilities": if kind == "chat" { json!(["tools", "json_schema"]) } else { json!([]) },
        "prices": {"input": "1", "output": "2"}, "retry": {"attempts": 1},
    }})
}

fn package(folder: &Path, name: &str, contract: &str) -> Vec<u8> {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("agent.yaml"), contract).expect("written");
    pack(&folder).expect("a package").bytes
}

/// A cluster with a model for chats and one for vectors.
async fn cluster(folder: &Path, server: &Chats) -> (Dev, Client) {
    let dev = Dev::start_with(folder, ["--ephemeral"], [("TINY_KEY", "key")]);
    let api = Api::new(dev.server());
    for (name, kind) in [("small", "chat"), ("vectors", "embedding")] {
        let (status, code, body) = api.try_put(&format!("/api/objects/model/{name}"), spec(server, kind)).await;
        assert_eq!(status, 200, "{code} {body}");
    }
    api.register(package(folder, "poet", POET)).await;
    api.register(package(folder, "adder", ADDER)).await;
    let client = Client::new(dev.server());
    (dev, client)
}

fn hello() -> Value {
    json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_openai_talk_to_models() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Chats::start(|request, _| match request["messages"].as_array().and_then(|all| all.last()) {
        Some(last) if last["role"] == "tool" => Said::text("It is 3."),
        _ if request["tools"].is_array() => Said::call("call_1", "add", r#"{"a":1,"b":2}"#),
        _ if request["response_format"].is_object() => Said::text(r#"{"ok":true}"#),
        _ => Said::text("Hello to you."),
    })
    .expect("a server");
    let (dev, client) = cluster(folder.path(), &server).await;

    let listed = client.get("/models").await.body;
    let ids: Vec<&str> =
        listed["data"].as_array().expect("a list").iter().filter_map(|one| one["id"].as_str()).collect();
    assert!(["small", "vectors", "poet"].iter().all(|id| ids.contains(id)) && !ids.contains(&"adder"), "{ids:?}");
    assert!(!ids.contains(&"model-call"), "{ids:?}");
    for id in ["small", "model/small", "agent%2Fpoet", "poet@1.0.0"] {
        assert_eq!(client.get(&format!("/models/{id}")).await.status, 200, "{id}");
    }
    assert_eq!(client.get("/models/agent/nobody").await.body["error"]["code"], "model_not_found");

    // A chat, whole.
    let chat = json!({"model": "small", "messages": hello(), "temperature": 0.5, "user": "ann"});
    let answer = client.post("/chat/completions", chat.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["choices"][0]["message"]["content"], "Hello to you.");
    assert_eq!((&answer.body["model"], &answer.body["usage"]["total_tokens"]), (&json!("small"), &json!(15)));
    assert_eq!(answer.body["id"], format!("chatcmpl-{}", answer.job));
    let job = Api::new(dev.server()).job(&answer.job).await;
    assert_eq!((&job["agent_name"], &job["labels"]["openai.user"]), (&json!("model-call"), &json!("ann")), "{job}");
    assert_eq!((&job["metadata"]["_trace_input_tokens"], &job["cost_usd"]), (&json!(10), &json!(0.00002)), "{job}");
    let asked = server.arrived().pop().expect("a request");
    assert_eq!(
        (&asked["temperature"], &asked["messages"][0]["content"]),
        (&json!(0.5), &json!("Be brief.")),
        "{asked}"
    );

    // A chat, in chunks.
    let mut streamed = chat.clone();
    (streamed["stream"], streamed["stream_options"]) = (json!(true), json!({"include_usage": true}));
    let data = client.stream("/chat/completions", streamed).await.rest().await;
    assert_eq!(data.last().map(String::as_str), Some("[DONE]"), "{data:?}");
    let chunks = values(&data);
    assert_eq!(said(&chunks), "Hello to you.");
    assert_eq!(chunks.last().expect("a chunk")["usage"]["total_tokens"], 15, "{data:?}");

    // Tools of the client, there and back.
    let tool = json!({"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}});
    let asked = json!({"model": "small", "messages": [{"role": "user", "content": "1+2?"}], "tools": [tool]});
    let called = client.post("/chat/completions", asked.clone()).await.body;
    let message = &called["choices"][0]["message"];
    assert_eq!(called["choices"][0]["finish_reason"], "tool_calls", "{called}");
    assert_eq!(message["tool_calls"][0]["function"]["name"], "add");
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "3"});
    let mut again = asked.clone();
    again["messages"] = json!([{"role": "user", "content": "1+2?"}, message, result]);
    let answer = client.post("/chat/completions", again).await.body;
    assert_eq!(answer["choices"][0]["message"]["content"], "It is 3.", "{answer}");
    let mut streamed = asked;
    streamed["stream"] = json!(true);
    let chunks = values(&client.stream("/chat/completions", streamed).await.rest().await);
    let arguments: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str())
        .collect();
    assert_eq!(serde_json::from_str::<Value>(&arguments).expect("JSON"), json!({"a": 1, "b": 2}), "{chunks:?}");

    // Answers in the form of a schema.
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "fine", "strict": true, "schema": schema}});
    let formed = json!({"model": "small", "messages": hello(), "response_format": format});
    let answer = client.post("/chat/completions", formed).await.body;
    assert_eq!(answer["choices"][0]["message"]["content"], r#"{"ok":true}"#, "{answer}");
    assert_eq!(server.arrived().pop().expect("a request")["response_format"]["type"], "json_schema");

    // An agent as a model: it gets the messages, and its text is the answer.
    let poet = json!({"model": "poet", "messages": hello()});
    let answer = client.post("/chat/completions", poet.clone()).await;
    assert_eq!(answer.body["choices"][0]["message"]["content"], "Hello to you.", "{}", answer.body);
    let mut streamed = poet;
    streamed["stream"] = json!(true);
    let chunks = values(&client.stream("/chat/completions", streamed).await.rest().await);
    assert_eq!(said(&chunks), "Hello to you.", "{chunks:?}");

    // Vectors.
    let answer = client.post("/embeddings", json!({"model": "vectors", "input": ["a", "abc"]})).await;
    assert_eq!(answer.body["data"][1]["embedding"], json!([3.0, 1.0]), "{}", answer.body);
    let texts: Vec<String> = (0..600).map(|number| "x".repeat(number % 7 + 1)).collect();
    let answer = client.post("/embeddings", json!({"model": "vectors", "input": texts})).await;
    let vectors = answer.body["data"].as_array().expect("vectors");
    assert_eq!(
        (vectors.len(), &vectors[599]["embedding"][0]),
        (600, &json!((599 % 7 + 1) as f64)),
        "{}",
        answer.status
    );

    // What is wrong is named.
    let chats = "/chat/completions";
    for (body, status, member, wanted) in [
        (json!({"model": "huge", "messages": hello()}), 404, "code", "model_not_found"),
        (json!({"model": "small", "messages": hello(), "temprature": 1}), 400, "param", "temprature"),
        (json!({"model": "adder", "messages": hello()}), 400, "param", "model"),
        (json!({"model": "vectors", "messages": hello()}), 400, "param", "model"),
        (json!({"model": "small"}), 400, "param", "messages"),
    ] {
        let (got, error) = client.refused(chats, body).await;
        assert_eq!((got, &error[member]), (status, &json!(wanted)), "{error}");
    }
    let (status, error) = client.refused("/nothing", json!({})).await;
    assert_eq!((status, &error["type"]), (404, &json!("invalid_request_error")), "{error}");
    assert_eq!(dev.interrupt(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_are_jobs_that_are_read_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Chats::start(|request, _| {
        let messages = request["messages"].as_array().map_or(0, Vec::len);
        match request["messages"].to_string().contains("wait") {
            true => Said::text("Done now.").held(1),
            false => Said::text(&format!("After {messages} messages.")),
        }
    })
    .expect("a server");
    let (dev, client) = cluster(folder.path(), &server).await;
    let first =
        client.post("/responses", json!({"model": "small", "input": "hello", "instructions": "Be brief."})).await;
    assert_eq!((first.status, &first.body["status"]), (200, &json!("completed")), "{}", first.body);
    assert_eq!(first.body["output"][0]["content"][0]["text"], "After 2 messages.", "{}", first.body);
    let id = first.body["id"].as_str().expect("an id").to_owned();
    assert_eq!(id, format!("resp_{}", first.job));
    let read = client.get(&format!("/responses/{id}")).await.body;
    assert_eq!((&read["output"], &read["instructions"]), (&first.body["output"], &json!("Be brief.")), "{read}");
    let items = client.get(&format!("/responses/{id}/input_items")).await.body;
    assert_eq!(
        (items["data"].as_array().map(Vec::len), &items["data"][0]["role"]),
        (Some(1), &json!("user")),
        "{items}"
    );

    // The next one goes on from it: its message and its answer come first.
    let next = json!({"model": "small", "input": "and now?", "previous_response_id": id, "stream": true});
    let events = values(&client.stream("/responses", next).await.rest().await);
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("response.created", "response.completed"), "{kinds:?}");
    let text: String = events
        .iter()
        .filter(|event| event["type"] == "response.output_text.delta")
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert_eq!(text, "After 3 messages.", "{events:?}");
    let second = events[events.len() - 1]["response"]["id"].as_str().expect("an id").to_owned();
    let items = client.get(&format!("/responses/{second}/input_items")).await.body;
    assert_eq!(items["data"].as_array().map(Vec::len), Some(1), "{items}");
    let events = client.client.get(format!("{}/responses/{second}?stream=true&starting_after=3", client.server)).send();
    let events = events.await.expect("an answer").text().await.expect("text");
    assert!(events.contains("event: response.completed") && !events.contains("event: response.created"), "{events}");

    // In the background, and cancelled.
    let waits = json!({"model": "small", "input": "wait", "background": true});
    let begun = client.post("/responses", waits.clone()).await.body;
    assert!(["queued", "in_progress"].contains(&begun["status"].as_str().unwrap_or_default()), "{begun}");
    let id = begun["id"].as_str().expect("an id").to_owned();
    eventually("the model is asked", LONG, || {
        server.arrived().iter().any(|asked| asked.to_string().contains("wait")).then_some(())
    });
    let cancelled = client.post(&format!("/responses/{id}/cancel"), json!({})).await;
    assert_eq!((cancelled.status, &cancelled.body["status"]), (200, &json!("cancelled")), "{}", cancelled.body);
    let begun = client.post("/responses", waits).await.body;
    server.release();
    let id = begun["id"].as_str().expect("an id");
    let ended = eventually_async("it ends", async || {
        let read = client.get(&format!("/responses/{id}")).await.body;
        if read["status"] == "completed" { Ok(read) } else { Err(read.to_string()) }
    })
    .await;
    assert_eq!(ended["output"][0]["content"][0]["text"], "Done now.", "{ended}");

    // What was not stored, or was deleted, is not there.
    let hidden = client.post("/responses", json!({"model": "small", "input": "hello", "store": false})).await;
    let hidden = hidden.body["id"].as_str().expect("an id").to_owned();
    assert_eq!(client.get(&format!("/responses/{hidden}")).await.status, 404);
    assert_eq!(client.delete(&format!("/responses/{id}")).await.body["deleted"], true);
    eventually_async("it is gone", async || match client.get(&format!("/responses/{id}")).await.status {
        404 => Ok(()),
        status => Err(status.to_string()),
    })
    .await;
    for (body, param) in [
        (
            json!({"model": "small", "input": "x", "previous_response_id": "resp_job-0000000000000001"}),
            "previous_response_id",
        ),
        (json!({"model": "small", "input": "x", "conversation": "c"}), "conversation"),
    ] {
        let (status, error) = client.refused("/responses", body).await;
        assert!(status >= 400 && error["param"] == param, "{error}");
    }
    assert_eq!(dev.interrupt(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_cancels_its_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Chats::start(|_, _| Said::text("One two three four.").held(2)).expect("a server");
    let (dev, client) = cluster(folder.path(), &server).await;
    let body = json!({"model": "small", "messages": hello(), "stream": true});
    let mut stream = client.stream("/chat/completions", body).await;
    let mut heard = String::new();
    while heard != "One two " {
        let data = stream.next().await.expect("a chunk");
        heard += &said(&values(&[data]));
    }
    drop(stream);
    let api = Api::new(dev.server());
    eventually_async("the job is cancelled", async || {
        let jobs = api.get("/api/jobs?agent=model-call").await;
        if jobs[0]["status"] == "cancelled" { Ok(()) } else { Err(jobs.to_string()) }
    })
    .await;
    assert_eq!(dev.interrupt(), Some(0));
}

fn worker(folder: &Path, name: &str, members: &[Member]) -> Process {
    let all: Vec<_> = members.iter().collect();
    let mut command = worker_command(program("atlas-worker"), folder, name, &all);
    Process::start(command.env("TINY_KEY", "key"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_comes_once_and_complete_when_its_worker_dies() {
    let folder = tempfile::tempdir().expect("a folder");
    // The first call stops in the middle, and those after it are answered.
    let server = Chats::start(|_, number| {
        let said = Said::text("One two three four.");
        if number == 0 { said.held(2) } else { said }
    })
    .expect("a server");
    let members = trio(folder.path(), &[]).await;
    let leads = leader(&members).await;
    let doomed = worker(folder.path(), "w1", &members);
    let follower = &members[(leads + 1) % 3];
    eventually_async("a model", async || {
        match Api::new(&follower.http.to_string()).try_put("/api/objects/model/small", spec(&server, "chat")).await {
            (200, ..) => Ok(()),
            refused => Err(format!("{refused:?}")),
        }
    })
    .await;
    let client = Client::new(&follower.http.to_string());
    let body = json!({"model": "small", "messages": hello(), "stream": true});
    let mut stream = client.stream("/chat/completions", body).await;
    let mut heard = String::new();
    while heard != "One two " {
        let data = stream.next().await.expect("a chunk");
        heard += &said(&values(&[data]));
    }
    doomed.kill();
    let second = worker(folder.path(), "w2", &members);
    let rest = stream.rest().await;
    heard += &said(&values(&rest));
    assert_eq!((heard.as_str(), rest.last().map(String::as_str)), ("One two three four.", Some("[DONE]")), "{rest:?}");
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}
