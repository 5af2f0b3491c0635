//! `atlasctl job explain`: what a job is waiting for, since when, and what to do about it.

use atlas_api::types::{Counterfactual, Estimate, Explanation, Job, JobRoute, Shortfall};
use serde_json::{Value, json};

use crate::answers;
use crate::command::chain_run;
use crate::context::Context;
use crate::display::{JobDisplay as _, RouteDisplay as _};
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Whether it is what a parked job waits for.
fn wakes(way: &Counterfactual) -> bool {
    way.changes.iter().any(|change| change.get("kind").is_some_and(|kind| kind == "wake"))
}

/// Options of `atlasctl job explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| explain(context, id).await).await
}

async fn explain(context: &Context, id: &str) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        return chain_run::explain(context, id, async |job| of_job(context, job).await).await;
    }
    of_job(context, id).await
}

async fn of_job(context: &Context, id: &str) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "jobs", id], &[("view", "full")]).await?;
    let job: Job = answers::read(&value)?;
    let (id, now) = (&job.id, context.look.now);
    let why = match job.status.as_str() {
        "pending" | "failed" => context.client()?.get_if_known(&["api", "jobs", id, "explain"]).await?,
        _ => Value::Null,
    };
    let explained = if why.is_null() { Explanation::default() } else { answers::read(&why)? };
    let value = json!({
        "id": id, "status": job.status, "reason": job.reason, "waiting_for": job.waiting_for, "since": job.created_at,
        "needs_answer": job.needs_answer, "route": value["route"],
        "position": why["position"], "class_jobs": why["class_jobs"], "estimate": why["estimate"],
        "starts_if": why["starts_if"], "lacking": why["lacking"],
    });
    context.show(&Shown { value, text: text(&job, &explained, now), names: vec![format!("job/{id}")] })?;
    if !job.needs_answer.is_empty() {
        context.next(&ending::next_answer(&job));
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

fn text(job: &Job, explained: &Explanation, now: f64) -> String {
    let asked = job.needs_answer.iter().map(|id| format!("  asks         {id}\n"));
    let routed = job.route.as_ref().and_then(JobRoute::words).map(|words| format!("  orchestrator {words}\n"));
    standing(job, explained, now) + &routed.unwrap_or_default() + &asked.collect::<String>()
}

/// When the job starts, and what would start it.
fn starts(job: &Job, explained: &Explanation) -> String {
    let mut text = String::new();
    if let Some(wakes) = explained.starts_if.iter().find(|way| wakes(way)) {
        let answer = if job.needs_answer.is_empty() { String::new() } else { format!(": {}", ending::answer(job)) };
        return format!("  starts       when {}{answer}\n", wakes.says);
    }
    let nothing = Estimate::default();
    let Estimate { known, seconds, seconds_low, seconds_high, says } = explained.estimate.as_ref().unwrap_or(&nothing);
    let words = |seconds: &f64| words::brief_seconds(seconds.round());
    let mut ways = explained.starts_if.iter().map(|way| way.says.as_str()).peekable();
    if *known && *seconds < 1.0 && explained.starts_if.is_empty() {
        text += "  starts       with the next plan\n";
    } else if *known {
        let when = ways.next_if(|_| true).map(|says| format!(", when {says}")).unwrap_or_default();
        let range = match seconds_low == seconds_high {
            true => String::new(),
            false => format!(" (80 %: {} to {})", words(seconds_low), words(seconds_high)),
        };
        text += &format!("  starts       in about {}{when}{range}\n", words(seconds));
    } else if !says.is_empty() {
        text += &format!("  starts       cannot be estimated: {says}\n");
    }
    for (index, says) in ways.enumerate() {
        text += &format!("  {:<12} if {says}\n", if index == 0 { "starts now" } else { "" });
    }
    text
}

fn standing(job: &Job, explained: &Explanation, now: f64) -> String {
    let since = |from: f64| words::milliseconds((now - from) * 1000.0);
    let head = |what: &str| format!("{}   {}   {what}\n", job.id, job.agent());
    match job.status.as_str() {
        "pending" => {
            let why = if job.waiting_for.is_empty() { &job.reason } else { &job.waiting_for };
            let position = match explained {
                Explanation { position: 0, .. } => String::new(),
                Explanation { position, class_jobs, .. } => format!("   position {position} of {class_jobs}"),
            };
            let waiting = format!("waiting {}{position}", since(job.created_at));
            head(&waiting) + &format!("  blocked by   {why}\n") + &starts(job, explained)
        }
        "running" => {
            let mut text = head(&format!("running {}", since(job.started_at)));
            text += &if job.run.is_empty() {
                format!("  where        {} · attempt {}\n", job.node, job.attempts())
            } else {
                format!("  carried      by {}\n", job.run)
            };
            if !job.waiting_for.is_empty() {
                text += &format!("  blocked by   {}\n", job.waiting_for);
            }
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
            if let Some(Shortfall { node, short }) = &explained.lacking {
                text += &format!("  missing      closest is \"{node}\": {}\n", short.join(", "));
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
        let route = JobRoute {
            action: "redirect".to_owned(),
            asked_agent: "see".to_owned(),
            rule: "long".to_owned(),
            ..JobRoute::default()
        };
        let carried = Job { route: Some(route), ..carried };
        let limited = Job {
            waiting_for: "waits for model \"fast\": 4 of 4 calls in flight".to_owned(),
            ..job("running", "running")
        };
        let all = [
            waits,
            job("running", "cancelling"),
            limited,
            carried,
            Job { error: "no".to_owned(), ..job("failed", "") },
        ];
        let nothing = Explanation::default();
        let all: String = all.iter().map(|job| text(job, &nothing, 231.0)).collect();
        expect![[r#"
            job-4f3a09c1d27be685   vision 1.4.0   waiting 2 min 11 s
              blocked by   waiting for a worker: none is registered
            job-4f3a09c1d27be685   vision 1.4.0   running 31.0 s
              where        laptop · attempt 1 of 3
              warning      cancelling
            job-4f3a09c1d27be685   vision 1.4.0   running 31.0 s
              where        laptop · attempt 1 of 3
              blocked by   waits for model "fast": 4 of 4 calls in flight
            job-4f3a09c1d27be685   vision 1.4.0   running 31.0 s
              carried      by run-51c80e7a93d24b16
              orchestrator redirected from see by the rule "long"
            job-4f3a09c1d27be685   vision 1.4.0   not waiting: failed after 1 min 41 s
              error        no
        "#]]
        .assert_eq(&all);
    }

    #[test]
    fn a_parked_job_says_what_wakes_it() {
        let wakes = json!([{ "says": "question-5d1b is answered", "changes": [{ "kind": "wake" }] }]);
        let unknown = json!({ "known": false, "says": "it does not wait for a running job" });
        let explained: Explanation =
            answers::read(&json!({ "estimate": unknown, "starts_if": wakes })).expect("readable");
        let asks = Job { id: "job-1".to_owned(), needs_answer: vec!["question-5d1b".to_owned()], ..Job::default() };
        let told = starts(&asks, &explained);
        assert_eq!(told, "  starts       when question-5d1b is answered: atlasctl job answer job-1 ANSWER\n");
        assert_eq!(starts(&Job::default(), &explained), "  starts       when question-5d1b is answered\n");
    }

    #[test]
    fn a_waiting_job_says_what_would_start_it() {
        let explained = |estimate: Value, ways: &[&str]| -> Explanation {
            let ways: Vec<_> = ways.iter().map(|says| json!({ "says": says, "changes": [] })).collect();
            let value = json!({ "position": 3, "class_jobs": 17, "estimate": estimate, "starts_if": ways });
            answers::read(&value).expect("an explanation")
        };
        let known = json!({ "known": true, "seconds": 35.2, "seconds_low": 20.0, "seconds_high": 70.4 });
        let unknown =
            json!({ "known": false, "says": "no job of agent \"a\" has ended since this controller started" });
        let ways = ["job-1 ends", "node \"n1\" is uncordoned", "its agent asks for at most 12GB VRAM"];
        let soon = json!({ "known": true, "seconds": 0.0, "seconds_low": 0.0, "seconds_high": 0.0 });
        let time = json!({ "known": true, "seconds": 90.0, "seconds_low": 90.0, "seconds_high": 90.0 });
        let all = [
            explained(known, &ways),
            explained(unknown, &ways[1..]),
            explained(soon, &[]),
            explained(time, &["it is 2026-01-01T00:00:00Z"]),
        ];
        let all: Vec<String> = all.iter().map(|explained| starts(&Job::default(), explained)).collect();
        expect![[r#"
              starts       in about 35 s, when job-1 ends (80 %: 20 s to 1 min 10 s)
              starts now   if node "n1" is uncordoned
                           if its agent asks for at most 12GB VRAM
            --
              starts       cannot be estimated: no job of agent "a" has ended since this controller started
              starts now   if node "n1" is uncordoned
                           if its agent asks for at most 12GB VRAM
            --
              starts       with the next plan
            --
              starts       in about 1 min 30 s, when it is 2026-01-01T00:00:00Z
        "#]]
        .assert_eq(&all.join("--\n"));
    }
}
