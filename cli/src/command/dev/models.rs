//! Model servers that run on this machine, found by their usual ports. They are only named: a person decides to use one.

use std::time::Duration;

use atlas_env::Env;
use atlas_http::{ConnectOptions, Connector, Dial, Proxy, Trust, Versions, body, limited, pool};
use bytes::Bytes;
use futures::future::join_all;
use http_body_util::Empty;
use serde_json::Value;

/// The usual ports of servers that speak the protocol of OpenAI's chat completions.
const USUAL: [(u16, &str); 4] = [(1234, "LM Studio"), (8000, "vLLM"), (8080, "llama.cpp"), (11434, "Ollama")];

/// How long a server may take. A port without a server refuses at once.
const ANSWER_MAX: Duration = Duration::from_millis(300);

/// Longer answers come from no model server.
const BYTES_MAX: usize = 256 << 10;

/// Characters of a model's name that are shown.
const NAME_CHARS_MAX: usize = 60;

/// A server that lists models.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LocalModel {
    /// What usually serves on its port; it can be another program.
    program: &'static str,
    /// The base address of its API.
    base: String,
    /// The first model that it lists.
    model: String,
    /// How many it lists.
    count: usize,
}

impl LocalModel {
    /// A line for the first lines of `dev`.
    pub(super) fn line(&self) -> String {
        let Self { program, base, model, count } = self;
        let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        format!(
            "{model}{more} at {base} (probably {program}); to use it:\n{:14}atlasctl model add fast --provider openai --name {model} --base-url {base}",
            ""
        )
    }
}

/// The servers on the usual ports of this machine.
pub(super) async fn find() -> Vec<LocalModel> {
    let asked = USUAL.map(|(port, program)| ask(program, format!("http://127.0.0.1:{port}/v1")));
    join_all(asked).await.into_iter().flatten().collect()
}

/// None if no server answers, or something else than a list of models.
async fn ask(program: &'static str, base: String) -> Option<LocalModel> {
    let (dial, proxy, trust) = (Dial::machine(None), &Proxy::Direct, &Trust::only([]));
    let connector =
        Connector::with(ConnectOptions { dial, proxy, trust, versions: Versions::One, limit: None }).ok()?;
    let client = pool::<Empty<Bytes>>(connector, ANSWER_MAX);
    let address = format!("{base}/models").parse().ok()?;
    let answered = async {
        let mut response = client.get(address).await.ok().filter(|response| response.status().is_success())?;
        body::whole(response.body_mut(), BYTES_MAX).await.ok()
    };
    let body = limited(&*Env::system().clock, ANSWER_MAX, answered).await??;
    let answer: Value = serde_json::from_slice(&body).ok()?;
    let models: Vec<&str> = answer["data"].as_array()?.iter().filter_map(|model| model["id"].as_str()).collect();
    let model = models.first().filter(|model| is_plain(model))?;
    Some(LocalModel { program, base, model: (*model).to_owned(), count: models.len() })
}

/// Whether a name can be printed and pasted into a shell as it is.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+".contains(c);
    !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && name.chars().all(is_plain) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What `dev` says about a server that answers with `body`.
    async fn answer(status: &str, body: &str) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let response = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(response.as_bytes()).await;
            stream
        };
        let (found, _) = tokio::join!(ask("Ollama", base.clone()), server);
        found.map(|found| found.line().replace(&base, "BASE"))
    }

    #[tokio::test]
    async fn a_server_is_named_with_the_command_that_uses_it() {
        let line = answer("200 OK", r#"{"data":[{"id":"llama3.2:1b"},{"id":"b"}]}"#).await;
        expect_test::expect![[r"
            llama3.2:1b and 1 more at BASE (probably Ollama); to use it:
                          atlasctl model add fast --provider openai --name llama3.2:1b --base-url BASE"]]
        .assert_eq(&line.unwrap_or_default());
    }

    #[tokio::test]
    async fn other_programs_are_not_named() {
        assert_eq!(answer("404 Not LocalModel", r#"{"data":[{"id":"a"}]}"#).await, None);
        assert_eq!(answer("200 OK", "<html>").await, None);
        assert_eq!(answer("200 OK", r#"{"data":[]}"#).await, None);
        assert_eq!(answer("200 OK", r#"{"data":[{"id":"$(rm -r /)"}]}"#).await, None);
        assert_eq!(answer("200 OK", r#"{"data":[{"id":"--help"}]}"#).await, None);
        let long = format!(r#"{{"data":[{{"id":"{}"}}]}}"#, "a".repeat(BYTES_MAX));
        assert_eq!(answer("200 OK", &long).await, None);
    }
}
