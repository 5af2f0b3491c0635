//! Waits for the end of a job and reports it: the output on stdout, or the failure on stderr.

use std::time::Duration;

use atlas_api::types::{Job, Line, NeededApproval, Shortfall};
use atlas_env::Env;
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::questions::{self, Question};
use crate::words;

/// Longest wait of one request; a longer wait uses several requests, because proxies close long ones.
const WAIT_STEP: Duration = Duration::from_secs(30);
/// The same with a status line on a terminal.
const WATCHED_STEP: Duration = Duration::from_secs(1);

/// What comes before the id of a job that may have logged why it failed.
const LOGGED: &str = "what it logged: atlasctl job logs ";

/// How the error of a job begins that no node can run.
pub(crate) const NO_HARDWARE: &str = "Insufficient hardware for ";

/// The lines of a job so far.
pub(crate) async fn logs_so_far(client: &Client, id: &str) -> Result<Vec<(Line, Value)>, Failure> {
    let value = client.get(&["api", "jobs", id, "logs"], &[]).await?;
    let Value::Array(values) = value else { return Err(Failure::answer("log lines are a list")) };
    values.into_iter().map(|value| Ok((answers::read(&value)?, value))).collect()
}

/// Waits until the job has ended, is in doubt or needs an answer, or the timeout is reached; returns the job. Meanwhile it reports the
/// status to `tell`: as a status line on a terminal, otherwise as an occasional note.
pub(crate) async fn wait(
    client: &Client,
    id: &str,
    timeout: Option<Duration>,
    tell: Option<&Context>,
) -> Result<Value, Failure> {
    let clock = Env::system().clock;
    let since = clock.monotonic();
    let deadline = timeout.map(|timeout| since + timeout);
    let watched = tell.filter(|context| context.has_status_line());
    let step_max = if watched.is_some() { WATCHED_STEP } else { WAIT_STEP };
    let result = loop {
        let left = deadline.map(|deadline| deadline.saturating_sub(clock.monotonic()));
        let step = left.unwrap_or(step_max).min(step_max);
        let step = format!("{:.3}", step.as_secs_f64());
        let path = ["api", "jobs", id, "wait"];
        let value = match client.get(&path, &[("timeout", &step), ("view", "full"), ("questions", "true")]).await {
            Ok(value) => value,
            Err(failure) => break Err(failure),
        };
        let job: Job = match answers::read(&value) {
            Ok(job) => job,
            Err(failure) => break Err(failure),
        };
        let asks = !job.needs_answer.is_empty();
        if job.is_terminal() || job.reason == "in_doubt" || asks || left.is_some_and(|left| left <= step_max) {
            break Ok(value);
        }
        let waited = words::age((clock.monotonic() - since).as_secs_f64());
        match (watched, tell) {
            (Some(context), _) => context.status_line(&format!("{}  {waited}  {}", job.id, waits(&job))),
            (None, Some(context)) => context.note(&format!("{}  {waited}  {}", job.id, waits(&job))),
            (None, None) => {}
        }
    };
    if let Some(context) = watched {
        context.status_line("");
    }
    result
}

/// Like `wait`, without status reports.
pub async fn wait_quietly(client: &Client, id: &str, timeout: Option<Duration>) -> Result<Value, Failure> {
    wait(client, id, timeout, None).await
}

/// `job-…  hello 0.1.0  queued 1 ms → laptop, cold start 38 ms → completed in 61 ms`, or for an agent with a model
/// `job-…  summarize 0.1.0  MODEL  900 in, 28 out  $0.0006  completed in 1.9 s`
pub(crate) fn summary(job: &Job) -> String {
    let mut line = format!("{}  {}", job.id, job.agent());
    if let Some(model) = job.model() {
        line += &format!("  {model}  {} in, {} out", job.tokens_input, job.tokens_output);
        match job.budget_usd {
            Some(budget) => line += &format!("  {} of {}", words::dollars(job.cost_usd), words::dollars(budget)),
            None if !job.cost().is_empty() => line += &format!("  {}", job.cost()),
            None => {}
        }
        return format!("{line}  {} in {}", job.status, words::milliseconds(job.total_ms()));
    }
    if !job.node.is_empty() {
        let start =
            if job.warm { "warm".to_owned() } else { format!("cold start {}", words::milliseconds(job.warmup_ms)) };
        line += &format!("  queued {} → {}, {start} →", words::milliseconds(job.queued_ms()), job.node);
    } else {
        line += " ";
    }
    format!("{line} {} in {}", job.status, words::milliseconds(job.total_ms()))
}

/// The exit code for the result of the job.
pub(crate) fn exit(job: &Job) -> Exit {
    match job.status.as_str() {
        "completed" => Exit::Done,
        "failed" if job.is_over_budget() => Exit::Denied,
        "failed" => Exit::JobFailed,
        "cancelled" => Exit::JobCancelled,
        _ if job.reason == "in_doubt" => Exit::JobInDoubt,
        _ if !job.needs_answer.is_empty() => Exit::NeedsAnswer,
        _ => Exit::WaitTimedOut,
    }
}

/// Prints the output of a completed job; any other end is reported on stderr.
pub(crate) async fn conclude(context: &Context, client: &Client, job: &Job) -> Result<Exit, Failure> {
    let failure = match result(job) {
        Ok(output) => {
            context.print(&output)?;
            if job.metadata.get("_halted").and_then(Value::as_str) == Some("length") {
                context.must_know(&format!("{}{}", words::WARNING, cut(client, &job.id).await));
            }
            return Ok(Exit::Done);
        }
        Err(failure) => failure,
    };
    if job.error.starts_with(NO_HARDWARE) {
        return Err(lacking(client, &job.id, failure).await);
    }
    let (logs, events) = (format!("{LOGGED}{}", job.id), format!("what happened: atlasctl job events {}", job.id));
    if let Some(next) = failure.next.as_deref().filter(|next| next.contains(&logs)) {
        // A failure to read the lines is no reason to hide that of the job.
        if logs_so_far(client, &job.id).await.is_ok_and(|lines| lines.is_empty()) {
            let next = next.replace(&logs, &events);
            return Err(failure.with_next(next));
        }
    }
    let asked =
        job.needs_answer.first().filter(|_| failure.exit == Exit::NeedsAnswer && asked_of_others(job).is_none());
    let Some(asked) = asked else { return Err(failure) };
    // Without its text, the failure still names the question.
    let Ok((question, _)) = questions::get(client, asked).await else { return Err(failure) };
    Err(asking(&job.id, &question, failure))
}

/// Why a text that a job completed with is not whole: what the job logged about it, with the limit that it reached.
async fn cut(client: &Client, id: &str) -> String {
    let lines = logs_so_far(client, id).await.unwrap_or_default();
    let said =
        lines.into_iter().map(|(line, _)| line.text).find(|text| text.contains("was cut at its limit of tokens"));
    said.unwrap_or_else(|| {
        "the answer was cut at the limit of tokens of its model: raise provider.max_tokens".to_owned()
    })
}

/// The failure of a job that no node can run, with what the closest one lacks.
async fn lacking(client: &Client, id: &str, failure: Failure) -> Failure {
    let explained = client.get_if_known(&["api", "jobs", id, "explain"]).await;
    let lacking: Shortfall = explained.ok().and_then(|value| answers::read(&value["lacking"]).ok()).unwrap_or_default();
    let places = lacking.short.into_iter().map(|short| (lacking.node.clone(), short)).collect();
    Failure { places, ..failure }
}

/// The failure of a job that waits for an answer, with what it asks.
fn asking(id: &str, question: &Question, failure: Failure) -> Failure {
    let message = format!("{id} asks: {}", question.line());
    Failure { message, ..failure }.with_next(format!("answer: atlasctl job answer {id} {}", question.example()))
}

/// The output of a completed job as a line; any other state of a job is an error.
pub(crate) fn result(job: &Job) -> Result<String, Failure> {
    let exit = exit(job);
    let id = &job.id;
    let (code, message, next) = match exit {
        Exit::Done => return Ok(format!("{}\n", job.output_data.clone().unwrap_or_default())),
        Exit::JobFailed | Exit::Denied => {
            let text = job.error_sentence();
            let why = if text.is_empty() { "the agent gave no message".to_owned() } else { text };
            let mut next = after_failure(job);
            if !job.retried_by.is_empty() {
                next = format!("retried as {0}: atlasctl job wait {0}   or {next}", job.retried_by);
            }
            (job.error_code().unwrap_or("E3101"), why, next)
        }
        Exit::JobCancelled => {
            ("E3102", format!("{id} was cancelled"), format!("what happened: atlasctl job events {id}"))
        }
        Exit::JobInDoubt => {
            let message = format!(
                "{id} is in doubt: its worker was lost, and its contract does not allow an automatic second attempt"
            );
            ("E3103", message, format!("decide: {}", decide(id)))
        }
        Exit::NeedsAnswer => {
            let asked = job.needs_answer.join(", ");
            ("E3105", format!("{id} needs an answer to {asked}"), next_answer(job))
        }
        _ => {
            let message = format!("{id} has not ended within the timeout; it continues ({})", waits(job));
            ("E3104", message, format!("wait again: atlasctl job wait {id}"))
        }
    };
    Err(Failure::new(code, exit, message).with_next(next))
}

/// What to try after a failure, by its code.
fn after_failure(job: &Job) -> String {
    let (id, agent) = (&job.id, &job.agent_name);
    match job.error_code() {
        Some("E2112" | "E2113") => format!("who was asked: atlasctl question list --all --job {id}"),
        Some("E3044") => {
            format!(
                "let it wait for an answer: atlasctl run {agent} --questions wait   or give one: --questions answer:TEXT"
            )
        }
        Some("E3017") => {
            format!("let it ask whether the step happened: atlasctl job retry --resume --questions wait {id}")
        }
        Some("E3202") => {
            "list models: atlasctl model list   or add one: atlasctl model add NAME --provider PROVIDER --name ID"
                .to_owned()
        }
        Some("E3203") => {
            format!("allow more: atlasctl run {agent} --budget USD   or what it spent: atlasctl job steps {id}")
        }
        Some("E3207") => "log in: atlasctl model login NAME   or: atlasctl mcp login NAME".to_owned(),
        Some("E3208") => "try the server: atlasctl mcp test NAME".to_owned(),
        Some(
            code @ ("E2104" | "E2105" | "E2111" | "E3020" | "E3106" | "E3107" | "E3108" | "E3209" | "E3210" | "E3211"
            | "E4007"),
        ) => {
            format!("what it means: atlasctl explain-error {code}")
        }
        _ if job.error.starts_with(NO_HARDWARE) => "what the nodes have: atlasctl node list -o wide".to_owned(),
        // Without a node it never ran, so it logged nothing.
        _ if job.node.is_empty() => format!("what happened: atlasctl explain {id}"),
        _ => format!("{LOGGED}{id}"),
    }
}

/// The command with which the user resolves a job in doubt.
pub(crate) fn decide(id: &str) -> String {
    format!("atlasctl job resolve {id} --run-again | --result JSON | --error TEXT")
}

/// The command with which a question of a job is answered. What a policy asks is usually for somebody else: then the one that shows it.
pub(crate) fn answer(job: &Job) -> String {
    match asked_of_others(job) {
        Some(needed) => format!("atlasctl question show {}", needed.question),
        None => format!("atlasctl job answer {} ANSWER", job.id),
    }
}

/// Who answers what a job waits for, and the command.
pub(crate) fn next_answer(job: &Job) -> String {
    let who = asked_of_others(job).map_or("answer".to_owned(), |needed| format!("for {}", needed.who));
    format!("{who}: {}", answer(job))
}

/// The first approval that a job needs, if it has no question of its own.
fn asked_of_others(job: &Job) -> Option<&NeededApproval> {
    job.needs_approval.first().filter(|_| job.needs_approval.len() == job.needs_answer.len())
}

/// Status and reason of a job that has not ended.
pub(crate) fn waits(job: &Job) -> String {
    let why = if job.waiting_for.is_empty() { &job.reason } else { &job.waiting_for };
    if why.is_empty() || *why == job.status { job.status.clone() } else { format!("{}: {why}", job.status) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn job() -> Job {
        Job {
            id: "job-4f3a09c1d27be685".to_owned(),
            agent_name: "hello".to_owned(),
            agent_version: "0.1.0".to_owned(),
            status: "completed".to_owned(),
            node: "laptop".to_owned(),
            created_at: 100.0,
            started_at: 100.001,
            completed_at: 100.061,
            warmup_ms: 38.2,
            ..Job::default()
        }
    }

    #[test]
    fn the_line_about_a_job_says_where_and_how_long() {
        let cold = summary(&job());
        expect!["job-4f3a09c1d27be685  hello 0.1.0  queued 1 ms → laptop, cold start 38 ms → completed in 61 ms"]
            .assert_eq(&cold);
        let warm = summary(&Job { warm: true, warmup_ms: 0.0, completed_at: 100.009, ..job() });
        expect!["job-4f3a09c1d27be685  hello 0.1.0  queued 1 ms → laptop, warm → completed in 9 ms"].assert_eq(&warm);
    }

    #[test]
    fn an_approval_is_for_somebody_else() {
        let needed = |question: &str| NeededApproval {
            question: question.to_owned(),
            job: String::new(),
            who: "ann, bob".to_owned(),
        };
        let asks = ["question-1", "question-2"].map(str::to_owned).to_vec();
        let waits = Job { status: "pending".to_owned(), needs_answer: asks, ..job() };
        assert_eq!(next_answer(&waits), "answer: atlasctl job answer job-4f3a09c1d27be685 ANSWER");
        let mixed = Job { needs_approval: vec![needed("question-2")], ..waits.clone() };
        assert_eq!(next_answer(&mixed), "answer: atlasctl job answer job-4f3a09c1d27be685 ANSWER");
        let waits = Job { needs_approval: ["question-1", "question-2"].map(needed).to_vec(), ..waits };
        assert_eq!(next_answer(&waits), "for ann, bob: atlasctl question show question-1");
    }

    #[test]
    fn a_job_that_its_budget_stopped_was_refused() {
        let failed = |code: &str| {
            let metadata = [("_error_code".to_owned(), code.into())].into_iter().collect();
            Job { status: "failed".to_owned(), error: "too much".to_owned(), metadata, ..job() }
        };
        assert_eq!(exit(&failed("E3203")), Exit::Denied);
        assert_eq!(exit(&failed("E3201")), Exit::JobFailed);
        let failure = result(&failed("E3203")).expect_err("refused");
        assert_eq!((failure.exit, failure.message.as_str()), (Exit::Denied, "too much"));
    }

    #[test]
    fn a_failure_has_one_code_and_a_hint_that_fits() {
        let told = |error: &str, code: Option<&str>, node: &str| {
            let metadata = code.map(|code| ("_error_code".to_owned(), code.into())).into_iter().collect();
            let failed =
                Job { status: "failed".to_owned(), error: error.to_owned(), metadata, node: node.to_owned(), ..job() };
            format!("{}\n", result(&failed).expect_err("failed"))
        };
        let all = [
            told("there is no model \"x\"", Some("E3202"), "laptop"),
            told("E3044: the job asks a question and nobody is there to answer: Which?", None, "laptop"),
            told("E3017: step \"charge\" (agent.py:31) is in doubt", None, "laptop"),
            told("E2112: bob rejected the job", None, ""),
            told("5 is no number", None, "laptop"),
            told("Insufficient hardware for hello: GPU", None, ""),
            told("", None, ""),
        ];
        expect![[r#"
            error[E3202]: there is no model "x"
            list models: atlasctl model list   or add one: atlasctl model add NAME --provider PROVIDER --name ID
            error[E3044]: the job asks a question and nobody is there to answer: Which?
            let it wait for an answer: atlasctl run hello --questions wait   or give one: --questions answer:TEXT
            error[E3017]: step "charge" (agent.py:31) is in doubt
            let it ask whether the step happened: atlasctl job retry --resume --questions wait job-4f3a09c1d27be685
            error[E2112]: bob rejected the job
            who was asked: atlasctl question list --all --job job-4f3a09c1d27be685
            error[E3101]: 5 is no number
            what it logged: atlasctl job logs job-4f3a09c1d27be685
            error[E3101]: Insufficient hardware for hello: GPU
            what the nodes have: atlasctl node list -o wide
            error[E3101]: the agent gave no message
            what happened: atlasctl explain job-4f3a09c1d27be685
        "#]]
        .assert_eq(&all.concat());
    }

    #[test]
    fn a_job_that_asks_says_what() {
        let options = ["a", "b c"].map(str::to_owned).to_vec();
        let question = Question { prompt: "Which?".to_owned(), options, other: true, ..Question::default() };
        let failure = Failure::new("E3105", Exit::NeedsAnswer, "job-1 needs an answer to question-1");
        expect![[r#"
            error[E3105]: job-1 asks: Which?  [a, b c or another text]
            answer: atlasctl job answer job-1 a"#]]
        .assert_eq(&asking("job-1", &question, failure).to_string());
    }

    #[test]
    fn the_model_of_a_job_is_named() {
        let check = |model: &str, cost: f64, expected: &str| {
            let job = serde_json::json!({
                "id": "job-1", "agent_name": "a", "agent_version": "1.0.0", "status": "completed", "node": "n",
                "completed_at": 1.9, "metadata": {"_trace_model": model}, "tokens_input": 1204, "tokens_output": 96,
                "cost_usd": cost,
            });
            let job: Job = serde_json::from_value(job).expect("a job");
            assert_eq!(summary(&job), expected);
        };
        check("fast-1", 0.000_635, "job-1  a 1.0.0  fast-1  1204 in, 96 out  $0.0006  completed in 1.9 s");
        check("mock", 0.0, "job-1  a 1.0.0  mock (no model configured)  1204 in, 96 out  completed in 1.9 s");
    }
}
