//! `atlasctl job show`.

use atlas_api::types::{Job, JobApproval, JobChange};
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::command::job::events;
use crate::command::{chain_run, policy};
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending::{self, waits};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::questions;
use crate::words;

/// Options of `atlasctl job show`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| show(context, id).await).await
}

/// Shows one job.
pub(crate) async fn show(context: &Context, id: &str) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        return chain_run::show(context, id).await;
    }
    let client = context.client()?;
    let value = client.get(&["api", "jobs", id], &[("view", "full")]).await?;
    let job: Job = answers::read(&value)?;
    let mut text = head(&job);
    let mut is_recorded = false;
    if context.form.is_text() {
        for asked in &job.needs_answer {
            // Without its text, the job still names the question.
            if let Ok((question, _)) = questions::get(&client, asked).await {
                text += &format!("  question   {}\n", question.line());
            }
        }
        is_recorded = has_record(&client, &job).await;
        text += &policy::left(&client.get_if_known(&["api", "jobs", &job.id, "policies"]).await?);
        text.push('\n');
        client
            .events(&["api", "jobs", &job.id, "events"], &[("view", "full"), ("follow", "false")], |frame| {
                let event: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
                let event: JobChange = answers::read(&event)?;
                text += &events::line(&event).lines().map(|line| format!("  {line}\n")).collect::<String>();
                Ok(true)
            })
            .await?;
    }
    context.show(&Shown { value, text, names: vec![format!("job/{}", job.id)] })?;
    context.next(&match job.reason.as_str() {
        "in_doubt" => format!("next: {}", ending::decide(&job.id)),
        _ if is_recorded => {
            let id = &job.id;
            let again = match job.error_code() {
                Some("E3017") => format!("atlasctl job retry --resume --questions wait {id}"),
                _ => format!("atlasctl job retry --resume {id}"),
            };
            format!("next: atlasctl job logs {id}   or go on after its recorded steps: {again}")
        }
        _ if job.is_terminal() => format!("next: atlasctl job logs {}", job.id),
        _ => format!("next: atlasctl job wait {}", job.id),
    });
    Ok(Exit::Done)
}

/// Whether a job has failed and a retry can go on after its recorded steps. One that differs from its record would do so again.
async fn has_record(client: &Client, job: &Job) -> bool {
    if job.status != "failed" || job.error_code() == Some("E3013") || !job.retried_by.is_empty() {
        return false;
    }
    // The first step only says what the job is fixed to. Who may not read the others is shown the job without this advice.
    let steps = client.get(&["api", "jobs", &job.id, "steps"], &[("limit", "2")]).await;
    steps.is_ok_and(|steps| steps.as_array().is_some_and(|steps| steps.len() > 1))
}

/// An approval of a job: who demands it, for which agent, and who gave it or may give it.
fn approved(job: &Job, approval: &JobApproval) -> String {
    let JobApproval { policy, rule, question, agent, approved_by } = approval;
    let needed = job.needs_approval.iter().find(|needed| needed.question == *question);
    let given = match needed {
        _ if !approved_by.is_empty() => format!("by {approved_by}"),
        Some(needed) => format!("to be given by {}", needed.who),
        None => "not given".to_owned(),
    };
    format!("{agent}, demanded by the rule \"{rule}\" of the policy \"{policy}\": {given}")
}

/// The first lines: status, caller, times, node and result.
fn head(job: &Job) -> String {
    let took = if job.is_terminal() { words::milliseconds(job.total_ms()) } else { String::new() };
    let status = if job.is_terminal() { job.status.clone() } else { waits(job) };
    let cells = [job.id.clone(), job.agent(), status, took, words::labels(&job.labels)];
    let mut text = cells.into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join("   ") + "\n";
    if !job.title.is_empty() {
        text += &format!("  title      {}\n", job.title);
    }
    text += &format!("  submitted  by {} over {}\n", job.principal, job.door);
    if !job.node.is_empty() {
        let slot =
            if job.warm { "warm".to_owned() } else { format!("cold start {}", words::milliseconds(job.warmup_ms)) };
        text += &format!("  where      {} · {slot} · attempt {}\n", job.node, job.attempts());
    }
    if !job.run.is_empty() {
        text += &format!("  carried    by {}\n", job.run);
    }
    if job.retry_count > 0 {
        text += &format!("  retry      {} of {}\n", job.retry_count, job.original_job_id);
    }
    if !job.retried_by.is_empty() {
        text += &format!("  retried    as {}\n", job.retried_by);
    }
    if !job.forked_from.is_empty() {
        let steps = if job.fork_steps == 1 { "1 step".to_owned() } else { format!("{} steps", job.fork_steps) };
        let model =
            if job.fork_model.is_empty() { String::new() } else { format!(", then the model {}", job.fork_model) };
        text += &format!("  fork       {steps} of {}{model}\n", job.forked_from);
    }
    if !job.cost().is_empty() || job.tokens_input > 0 {
        text += &format!(
            "  models     {}   {} in, {} out   {}\n",
            job.model().unwrap_or("-"),
            job.tokens_input,
            job.tokens_output,
            words::dollars(job.cost_usd)
        );
    }
    if let Some(budget) = job.budget_usd {
        text += &format!("  budget     {}\n", words::dollars(budget));
    }
    if job.tree_cost_usd > 0.0 {
        text += &format!("  tree       {} with the jobs below it\n", words::dollars(job.tree_cost_usd));
    }
    if !job.needs_answer.is_empty() {
        text += &format!("  asks       {}: {}\n", job.needs_answer.join(", "), ending::answer(job));
    }
    text.extend(job.approvals.iter().map(|approval| format!("  approval   {}\n", approved(job, approval))));
    if let Some(limits) = job.metadata.get("_limits").and_then(Value::as_str) {
        text += &format!("  limits     {limits}\n");
    }
    if let Some(sandbox) = job.metadata.get("_sandbox").and_then(Value::as_str) {
        text += &format!("  sandbox    {sandbox}\n");
    }
    if job.priority != 0 {
        text += &format!("  priority   {}\n", job.priority);
    }
    let error = job.error_text();
    if !error.is_empty() {
        text += &format!("  error      {error}\n");
    }
    if let Some(output) = &job.output_data {
        text += &format!("  output     {output}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_head_says_who_where_and_what_came_out() {
        let job = Job {
            id: "job-4f3a09c1d27be685".to_owned(),
            agent_name: "hello".to_owned(),
            agent_version: "0.1.0".to_owned(),
            status: "failed".to_owned(),
            error: "Process exited with code 3: no".to_owned(),
            node: "laptop".to_owned(),
            completed_at: 0.011,
            attempt: 1,
            max_attempts: 3,
            labels: [("demo".to_owned(), "1".to_owned())].into(),
            principal: "local".to_owned(),
            door: "http".to_owned(),
            warmup_ms: 38.0,
            retried_by: "job-00000000000000aa".to_owned(),
            metadata: [
                ("_limits".to_owned(), "memory 2 GiB a process by rlimit, cpu not enforced".into()),
                ("_sandbox".to_owned(), "files read-only, no network (namespaces, landlock 7, seccomp)".into()),
            ]
            .into_iter()
            .collect(),
            ..Job::default()
        };
        expect![[r#"
            job-4f3a09c1d27be685   hello 0.1.0   failed   11 ms   demo=1
              submitted  by local over http
              where      laptop · cold start 38 ms · attempt 1 of 3
              retried    as job-00000000000000aa
              limits     memory 2 GiB a process by rlimit, cpu not enforced
              sandbox    files read-only, no network (namespaces, landlock 7, seccomp)
              error      Process exited with code 3: no
        "#]]
        .assert_eq(&head(&job));
    }

    #[test]
    fn a_job_that_a_run_carries_names_the_run() {
        let job = Job {
            id: "job-4f3a09c1d27be685".to_owned(),
            agent_name: "pipeline".to_owned(),
            status: "running".to_owned(),
            run: "run-51c80e7a93d24b16".to_owned(),
            principal: "local".to_owned(),
            door: "http".to_owned(),
            ..Job::default()
        };
        expect![[r#"
            job-4f3a09c1d27be685   pipeline   running
              submitted  by local over http
              carried    by run-51c80e7a93d24b16
        "#]]
        .assert_eq(&head(&job));
    }

    #[test]
    fn a_job_that_was_never_leased_has_no_place() {
        let queued = Job {
            id: "job-4f3a09c1d27be685".to_owned(),
            agent_name: "hello".to_owned(),
            status: "pending".to_owned(),
            waiting_for: "a free place".to_owned(),
            principal: "local".to_owned(),
            door: "http".to_owned(),
            max_attempts: 3,
            ..Job::default()
        };
        expect![[r#"
            job-4f3a09c1d27be685   hello   pending: a free place
              submitted  by local over http
        "#]]
        .assert_eq(&head(&queued));
        let cancelled = Job { status: "cancelled".to_owned(), waiting_for: String::new(), ..queued };
        expect![[r#"
            job-4f3a09c1d27be685   hello   cancelled   <1 ms
              submitted  by local over http
        "#]]
        .assert_eq(&head(&cancelled));
    }
}
