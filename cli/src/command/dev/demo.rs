//! `atlasctl dev --demo`: the bundled agents on real input, with a check for each step.
//!
//! It prints the commands as a user would type them, and their output.

use atlas_api::types::Job;
use atlas_dev::Python;
use atlas_env::Env;
use serde_json::{Value, json};

use crate::answers;
use crate::client::Client;
use crate::command::chain::{self, Start};
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::words;

/// This project's README, used if the current folder has none.
const README: &str = include_str!("../../../../README.md");

/// The chain of the demo.
const DIGEST: &str = include_str!("../../../../agents/bundled/chains/digest.yaml");

/// Runs every step; fails with the list of failed checks.
pub(super) async fn run(context: &Context, client: &Client, env: &Env) -> Result<(), Failure> {
    let mut demo = Demo { context, client, short: Vec::new(), last: String::new() };
    let (readme, from) = readme();
    demo.heading(&format!("Count the words of {from}: a Rust program"));
    demo.count(&readme).await;
    demo.heading(&format!("Summarise {from}: a language model, or prepared answers if none is configured"));
    demo.ask(&readme).await;
    let python = env.spawn_blocking("find Python", || Python::find(None)).join().await;
    let missing = python.unwrap_or_else(|_| Err("the search for Python failed".to_owned())).err();
    if missing.is_none() {
        demo.heading(&format!("Summarise {from}: a Python class, no model"));
        let summary = demo.summarise(&readme).await;
        demo.heading("Format the summary with a second agent");
        demo.format(&summary).await;
        demo.heading("Chain the two: the output of the first is converted to the input of the second");
        demo.chain(&readme).await;
        demo.heading("Submit a wrong input: the contract refuses it before a job exists");
        demo.refuse().await;
        demo.heading("Run an agent with a slow start twice: cold, then warm");
        demo.start_slowly().await;
    }
    if let Some(missing) = missing {
        demo.heading("Echo through a shell script");
        demo.echo().await;
        demo.heading("Submit a wrong input: the contract refuses it before a job exists");
        demo.refuse().await;
        context.note(&format!("\nSkipped: extract, formatter and slow-starter, because {missing}."));
    }
    let next = format!("next: atlasctl job list   ·   atlasctl job show {}   ·   atlasctl agent list", demo.last);
    context.note("");
    context.next(&next);
    if demo.short.is_empty() {
        return Ok(());
    }
    let message = format!("the demo failed: {}", demo.short.join("; "));
    Err(Failure::new("E0110", Exit::Short, message)
        .with_next("see the logs: ATLAS_LOG=info,openraft=warn atlasctl dev --demo"))
}

struct Demo<'a> {
    context: &'a Context,
    client: &'a Client,
    short: Vec<String>,
    last: String,
}

impl Demo<'_> {
    fn heading(&self, text: &str) {
        self.context.note(&format!("\n── {text}"));
    }

    /// Records a failed check.
    fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.context.note(&format!("failed: {what}"));
            self.short.push(what.to_owned());
        }
    }

    async fn count(&mut self, text: &str) {
        let job = self.job("wordcount", json!({"text": text}), "atlasctl run wordcount text=@README.md").await;
        let words = job.output_data.unwrap_or_default()["words"].as_u64();
        self.check(words == Some(text.split_whitespace().count() as u64), "wordcount returned an unexpected count");
    }

    async fn ask(&mut self, text: &str) {
        let job = self.job("summarize", json!({"text": text}), "atlasctl run summarize text=@README.md").await;
        let output = job.output_data.unwrap_or_default();
        self.check(
            output["summary"].as_str().is_some_and(|summary| !summary.is_empty()),
            "summarize returned no summary",
        );
        self.context.note("to use a real model: docs/agents/llm.md");
    }

    async fn summarise(&mut self, text: &str) -> String {
        let job = self.job("extract", json!({"text": text}), "atlasctl run extract text=@README.md").await;
        let output = job.output_data.unwrap_or_default();
        let summary = output["summary"].as_str().unwrap_or_default().to_owned();
        self.check(!summary.is_empty() && summary.len() < text.len(), "extract returned no summary");
        summary
    }

    async fn format(&mut self, text: &str) {
        let command = "atlasctl run formatter style=bullet content=…";
        let job = self.job("formatter", json!({"content": text, "style": "bullet"}), command).await;
        let output = job.output_data.unwrap_or_default();
        let formatted = output["formatted"].as_str().unwrap_or_default();
        self.check(output["style_applied"] == "bullet" && formatted.contains('-'), "formatter returned no bullets");
    }

    async fn chain(&mut self, text: &str) {
        self.context.note("$ atlasctl deploy digest && atlasctl run digest text=@README.md");
        let start = Start {
            chain: "digest".into(),
            input: json!({"text": text}),
            priority: 0,
            detach: false,
            follow: false,
            timeout: None,
            idempotency_key: None,
        };
        let ran = async {
            chain::put_text(self.client, DIGEST).await?;
            chain::start(self.context, self.client, &start).await
        };
        match ran.await {
            Ok(exit) => self.check(exit == Exit::Done, "the chain did not complete"),
            Err(failure) => {
                self.context.report(&failure);
                self.check(false, "the chain did not complete");
            }
        }
    }

    async fn echo(&mut self) {
        let job = self.job("exec-echo", json!({"message": "hello"}), "atlasctl run exec-echo message=hello").await;
        self.check(
            job.output_data.unwrap_or_default() == json!({"message": "hello"}),
            "exec-echo did not return its input",
        );
    }

    async fn refuse(&mut self) {
        self.context.note("$ atlasctl run wordcount txt=hello");
        match self.submit("wordcount", &json!({"txt": "hello"})).await {
            Ok(_) => self.check(false, "a wrong input was accepted"),
            Err(failure) => {
                self.context.report(&failure);
                self.check(failure.code.as_deref() == Some("E1102"), "a wrong input was refused for another reason");
                self.context.note(&format!("(exit code {})", failure.exit as u8));
            }
        }
    }

    async fn start_slowly(&mut self) {
        let command = "atlasctl run slow-starter text=hello";
        let cold = self.job("slow-starter", json!({"text": "hello"}), command).await;
        let warm = self
            .job("slow-starter", json!({"text": "hello again"}), "atlasctl run slow-starter text='hello again'")
            .await;
        let times = [cold.total_ms(), warm.total_ms()].map(words::milliseconds);
        self.context.note(&format!("cold {}, warm {}", times[0], times[1]));
        self.check(!cold.warm && cold.warmup_ms >= 400.0, "the first run of slow-starter was not cold");
        self.check(warm.warm && warm.total_ms() < cold.total_ms(), "the second run of slow-starter was not warm");
    }

    /// Runs one job as `command` would, and prints the same output; a job that does not complete counts as failed.
    async fn job(&mut self, agent: &str, input: Value, command: &str) -> Job {
        self.context.note(&format!("$ {command}"));
        let ran = async {
            let id = self.submit(agent, &input).await?;
            answers::read::<Job>(&ending::wait(self.client, &id, None, None).await?)
        };
        match ran.await {
            Ok(job) => {
                self.last.clone_from(&job.id);
                self.context.note(&ending::summary(&job));
                if let Err(failure) = ending::conclude(self.context, self.client, &job).await {
                    self.context.report(&failure);
                    self.check(false, &format!("{agent} did not complete"));
                }
                job
            }
            Err(failure) => {
                self.context.report(&failure);
                self.check(false, &format!("{agent} did not run"));
                Job::default()
            }
        }
    }

    async fn submit(&self, agent: &str, input: &Value) -> Result<String, Failure> {
        let body = json!({"agent": agent, "input": input});
        let answer = self.client.post(&["api", "jobs"], &[("validate", "refuse")], &body).await?;
        answer["id"].as_str().map(str::to_owned).ok_or_else(|| Failure::answer("a submission is answered with an id"))
    }
}

/// The README in the current folder, otherwise the embedded one.
fn readme() -> (String, &'static str) {
    match std::fs::read_to_string("README.md") {
        Ok(text) if !text.trim().is_empty() => (text, "./README.md"),
        _ => (README.to_owned(), "Atlas's README"),
    }
}
