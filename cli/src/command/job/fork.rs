//! `atlasctl job fork`: a new job that begins with recorded steps of another one and goes on with another model or version.

use atlas_turn::replay::{Difference, Replay};
use serde_json::json;

use super::recorded::Recorded;
use crate::command::chain_run;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job fork`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Job id, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::ran)]
    id: String,
    /// The first step that the new job makes itself; the steps before it are copied.
    #[arg(long, value_name = "STEP")]
    from_step: u64,
    /// The model or tier that it calls from there on; without it, that of the job.
    #[arg(long, value_name = "NAME", value_parser = names::model)]
    model: Option<String>,
    /// The version of the agent that goes on, or a requirement; without it, that of the job.
    #[arg(long, value_name = "REQUIREMENT")]
    version: Option<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let Options { id, from_step, model, version } = options;
    let client = context.client()?;
    if chain_run::is_one(id) {
        let what = "a fork begins with the recorded steps of one job";
        return Err(chain_run::is_several(&client, id, what, |job| {
            format!("atlasctl job fork {job} --from-step {from_step}")
        })
        .await?);
    }
    let recorded = Recorded::read(&client, id).await?;
    let id = recorded.job.id.as_str();
    if !recorded.is_program
        && let Some(count) = usize::try_from(*from_step).ok().filter(|count| (1..=recorded.steps.len()).contains(count))
        && let Replay::Differs(difference) = recorded.replay(count)?
    {
        // The new job would end there with this error.
        return Err(differs(id, &difference));
    }
    let body = json!({"steps": from_step, "model": model, "version": version});
    let value = client.post(&["api", "jobs", id, "fork"], &[], &body).await?;
    let new = value["id"].as_str().ok_or_else(|| Failure::answer("a fork is answered with an id"))?.to_owned();
    context.next(&format!("next: atlasctl job wait {new}"));
    context.show(&Shown { value, text: format!("{new}\n"), names: vec![format!("job/{new}")] })?;
    Ok(Exit::Done)
}

fn differs(id: &str, difference: &Difference) -> Failure {
    let Difference { step, recorded, asked } = difference;
    let text = format!("step {step} is recorded as {recorded}, and the agent would ask for {asked}");
    Failure::new("E3013", Exit::Conflict, text)
        .with_next(format!("fork it before that: atlasctl job fork {id} --from-step {}", step.max(&1)))
}
