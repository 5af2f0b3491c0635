//! `atlasctl job explain`: what a job is waiting for, since when, and what to do about it.

use serde_json::json;

use crate::api::{self, Job, Route};
use crate::context::Context;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl job explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Job ids, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::job)]
    ids: Vec<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| explain(context, id).await).await
}

async fn explain(context: &Context, id: &str) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "jobs", id], &[("view", "full")]).await?;
    let job: Job = api::read(&value)?;
    let (id, now) = (&job.id, context.look.now);
    let value = json!({
        "id": id, "status": job.status, "reason": job.reason, "waiting_for": job.waiting_for, "since": job.created_at,
        "needs_answer": job.needs_answer, "route": value["route"],
    });
    context.show(&Shown { value, text: text(&job, now), names: vec![format!("job/{id}")] })?;
    if !job.needs_answer.is_empty() {
        context.next(&format!("answer: {}", ending::answer(id)));
        return Ok(Exit::Done);
    }
    context.next(&match (job.status.as_str(), job.reason.as_str()) {
        ("pending", "in_doubt") => format!("next: {}", ending::decide(id)),
        ("pending", "no_node") => "next: atlasctl node list".to_owned(),
        ("pending", "no_room" | "unsatisfiable") => {
            format!("next: atlasctl top   or: atlasctl job cancel {id}")
        }
        ("pending" | "running", _) => format!("next: atlasctl job watch {id}"),
        _ => format!("next: atlasctl job show {id}"),
    });
    Ok(Exit::Done)
}

fn text(job: &Job, now: f64) -> String {
    let asked = job.needs_answer.iter().map(|id| format!("  asks         {id}\n"));
    let routed = job.route.as_ref().and_then(Route::words).map(|words| format!("  orchestrator {words}\n"));
    standing(job, now) + &routed.unwrap_or_default() + &asked.collect::<String>()
}

fn standing(job: &Job, now: f64) -> String {
    let since = |from: f64| words::milliseconds((now - from) * 1000.0);
    let head = |what: &str| format!("{}   {}   {what}\n", job.id, job.agent());
    match job.status.as_str() {
        "pending" => {
            let why = if job.waiting_for.is_empty() { &job.reason } else { &job.waiting_for };
            head(&format!("waiting {}", since(job.created_at))) + &format!("  blocked by   {why}\n")
        }
        "running" => {
            let mut text = head(&format!("running {}", since(job.started_at)));
            text += &if job.run.is_empty() {
                format!("  where        {} · attempt {} of {}\n", job.node, job.attempt, job.max_attempts)
            } else {
                format!("  carried      by {}\n", job.run)
            };
            if job.reason != "running" && !job.reason.is_empty() {
                text += &format!("  warning      {}\n", job.reason);
            }
            text
        }
        status => {
            let mut text = head(&format!("not waiting: {status} after {}", words::milliseconds(job.total_ms())));
            let error = job.error_text();
            if !error.is_empty() {
                text += &format!("  error        {error}\n");
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_status_is_explained() {
        let job = |status: &str, reason: &str| Job {
            id: "job-4f3a09c1d27be685".to_owned(),
            agent_name: "vision".to_owned(),
            agent_version: "1.4.0".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            created_at: 100.0,
            started_at: 200.0,
            completed_at: 201.0,
            node: "laptop".to_owned(),
            attempt: 1,
            max_attempts: 3,
            ..Job::default()
        };
        let waits =
            Job { waiting_for: "waiting for a worker: none is registered".to_owned(), ..job("pending", "no_node") };
        let carried = Job { run: "run-51c80e7a93d24b16".to_owned(), ..job("running", "running") };
        let route = Route {
            action: "redirect".to_owned(),
            asked_agent: "see".to_owned(),
            rule: "long".to_owned(),
            ..Route::default()
        };
        let carried = Job { route: Some(route), ..carried };
        let all = [waits, job("running", "cancelling"), carried, Job { error: "no".to_owned(), ..job("failed", "") }];
        let all: String = all.iter().map(|job| text(job, 231.0)).collect();
        expect![[r#"
            job-4f3a09c1d27be685   vision 1.4.0   waiting 2 min 11 s
              blocked by   waiting for a worker: none is registered
            job-4f3a09c1d27be685   vision 1.4.0   running 31.0 s
              where        laptop · attempt 1 of 3
              warning      cancelling
            job-4f3a09c1d27be685   vision 1.4.0   running 31.0 s
              carried      by run-51c80e7a93d24b16
              orchestrator redirected from see by the rule "long"
            job-4f3a09c1d27be685   vision 1.4.0   not waiting: failed after 1 min 41 s
              error        no
        "#]]
        .assert_eq(&all);
    }
}
