//! `atlasctl job replay`: runs the agent loop over the recorded steps of a job. No model and no tool is called.

use atlas_api::types::Job;
use atlas_turn::replay::{Difference, Ending, Replay};
use serde_json::{Value, json};

use super::recorded::Recorded;
use crate::command::chain_run;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
}

/// How the replay compares with the job.
#[derive(Debug, PartialEq)]
struct Verdict {
    /// How many recorded steps there are.
    steps: usize,
    /// None if they are identical.
    difference: Option<Different>,
    /// What the identical replay came to, in words.
    end: &'static str,
}

/// A difference, with both sides as text.
#[derive(Debug, PartialEq)]
struct Different {
    step: u64,
    recorded: String,
    replayed: String,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| replay(context, id).await).await
}

async fn replay(context: &Context, id: &str) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        let jobs = chain_run::jobs(&context.client()?, id).await?;
        if jobs.is_empty() {
            context.note(&format!("no step of {id} has begun"));
        }
        // An array also of one job: what a script reads does not depend on how many steps there are.
        let all = names::each(context, &jobs, async |job| of_job(context, job).await);
        return context.as_one(true, all).await;
    }
    of_job(context, id).await
}

async fn of_job(context: &Context, id: &str) -> Result<Exit, Failure> {
    let recorded = Recorded::read(&context.client()?, id).await?;
    let (job, steps) = (&recorded.job, recorded.steps.len());
    let verdict = verdict(job, steps, recorded.replay(steps)?);
    let exit = if verdict.difference.is_some() { Exit::Short } else { Exit::Done };
    context.show(&Shown {
        value: value(job, &verdict),
        text: text(job, &verdict),
        names: vec![format!("job/{}", job.id)],
    })?;
    context.next(&format!(
        "next: atlasctl job steps {0}   or: atlasctl job fork {0} --from-step {1}",
        job.id,
        steps.saturating_sub(1).max(1)
    ));
    Ok(exit)
}

/// Compares the end of a replay with the end of the job.
fn verdict(job: &Job, steps: usize, replayed: Replay) -> Verdict {
    let next = steps as u64;
    let differs = |step, recorded: String, replayed: String| Verdict {
        steps,
        difference: Some(Different { step, recorded, replayed }),
        end: "",
    };
    let same = |end| Verdict { steps, difference: None, end };
    match replayed {
        Replay::Differs(Difference { step, recorded, asked }) => differs(step, recorded.to_string(), asked.to_string()),
        Replay::Same(Ending::Finished { output, .. }) => match &job.output_data {
            Some(recorded) if *recorded == output => same("the output is the recorded one"),
            Some(recorded) => differs(next, format!("the output {recorded}"), format!("the output {output}")),
            None if job.status == "completed" => differs(next, "no output".to_owned(), format!("the output {output}")),
            None => same("the job ended before the loop did"),
        },
        Replay::Same(Ending::Failed(failure)) => match failure.to_string() {
            text if text == job.error => same("the failure is the recorded one"),
            text if job.status == "failed" => {
                differs(next, format!("the failure: {}", job.error), format!("the failure: {text}"))
            }
            text => differs(next, format!("the job is {}", job.status), format!("the failure: {text}")),
        },
        Replay::Same(Ending::Open { asked }) if job.status == "completed" => {
            differs(next, "nothing".to_owned(), asked.to_string())
        }
        Replay::Same(Ending::Open { .. }) if job.is_terminal() => same("the job ended during the next step"),
        Replay::Same(Ending::Open { .. }) => same("the job has not ended"),
    }
}

fn text(job: &Job, verdict: &Verdict) -> String {
    let steps = if verdict.steps == 1 { "1 step".to_owned() } else { format!("{} steps", verdict.steps) };
    match &verdict.difference {
        None => format!("{}   identical   {steps}   {}\n", job.id, verdict.end),
        Some(Different { step, recorded, replayed }) => {
            format!(
                "{}   differs at step {step} of {steps}\n  recorded   {recorded}\n  replayed   {replayed}\n",
                job.id
            )
        }
    }
}

fn value(job: &Job, verdict: &Verdict) -> Value {
    let mut value = json!({"job": job.id, "identical": verdict.difference.is_none(), "steps": verdict.steps});
    if let Some(Different { step, recorded, replayed }) = &verdict.difference {
        value["difference"] = json!({"step": step, "recorded": recorded, "replayed": replayed});
    }
    value
}

#[cfg(test)]
mod tests {
    use atlas_turn::End;
    use atlas_turn::replay::Side;
    use expect_test::{Expect, expect};

    use super::*;

    fn job(status: &str, output: Option<Value>, error: &str) -> Job {
        let (status, error) = (status.to_owned(), error.to_owned());
        Job { id: "job-4f3a09c1d27be685".to_owned(), status, output_data: output, error, ..Job::default() }
    }

    fn check(job: &Job, replayed: Replay, expected: &Expect) {
        let verdict = verdict(job, 3, replayed);
        expected.assert_eq(&format!("{}{}\n", text(job, &verdict), value(job, &verdict)));
    }

    fn finished(output: Value) -> Replay {
        Replay::Same(Ending::Finished { output, end: End::Answer })
    }

    #[test]
    fn an_identical_replay_says_what_it_came_to() {
        check(
            &job("completed", Some(json!({"a": 1})), ""),
            finished(json!({"a": 1})),
            &expect![[r#"
            job-4f3a09c1d27be685   identical   3 steps   the output is the recorded one
            {"job":"job-4f3a09c1d27be685","identical":true,"steps":3}
        "#]],
        );
        let open = || Replay::Same(Ending::Open { asked: Side::Step { kind: "model".into(), key: "00".into() } });
        check(
            &job("running", None, ""),
            open(),
            &expect![[r#"
            job-4f3a09c1d27be685   identical   3 steps   the job has not ended
            {"job":"job-4f3a09c1d27be685","identical":true,"steps":3}
        "#]],
        );
        check(
            &job("failed", None, "overloaded"),
            open(),
            &expect![[r#"
            job-4f3a09c1d27be685   identical   3 steps   the job ended during the next step
            {"job":"job-4f3a09c1d27be685","identical":true,"steps":3}
        "#]],
        );
    }

    #[test]
    fn a_difference_has_both_sides() {
        check(
            &job("completed", Some(json!({"a": 1})), ""),
            finished(json!({"a": 2})),
            &expect![[r#"
            job-4f3a09c1d27be685   differs at step 3 of 3 steps
              recorded   the output {"a":1}
              replayed   the output {"a":2}
            {"job":"job-4f3a09c1d27be685","identical":false,"steps":3,"difference":{"step":3,"recorded":"the output {\"a\":1}","replayed":"the output {\"a\":2}"}}
        "#]],
        );
        let side = |kind: &str, key: &str| Side::Step { kind: kind.to_owned(), key: key.to_owned() };
        let difference = Difference { step: 1, recorded: side("model", "7ec3"), asked: side("tools", "92a8") };
        check(
            &job("completed", None, ""),
            Replay::Differs(difference),
            &expect![[r#"
            job-4f3a09c1d27be685   differs at step 1 of 3 steps
              recorded   model 7ec3
              replayed   tools 92a8
            {"job":"job-4f3a09c1d27be685","identical":false,"steps":3,"difference":{"step":1,"recorded":"model 7ec3","replayed":"tools 92a8"}}
        "#]],
        );
        let open = Replay::Same(Ending::Open { asked: side("model", "00") });
        check(
            &job("completed", Some(json!({})), ""),
            open,
            &expect![[r#"
            job-4f3a09c1d27be685   differs at step 3 of 3 steps
              recorded   nothing
              replayed   model 00
            {"job":"job-4f3a09c1d27be685","identical":false,"steps":3,"difference":{"step":3,"recorded":"nothing","replayed":"model 00"}}
        "#]],
        );
    }
}
