//! `atlasctl job watch`: follows the events and log lines of a job.

use atlas_api::types::{Job, JobChange};
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::command::chain_run;
use crate::command::job::{events, logs};
use crate::context::Context;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job watch`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Id of a job or of a run of a chain, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::ran)]
    id: String,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    if chain_run::is_one(&options.id) {
        let each = async |_: &str, job: &str| follow(context, &client, job).await.map(drop);
        let run = context.as_one(false, chain_run::follow_jobs(&client, &options.id, each)).await?;
        context.next(&format!("next: atlasctl job result {}", options.id));
        return Ok(chain_run::exit(&run));
    }
    let job = context.as_one(false, follow(context, &client, &options.id)).await?;
    context.next(&format!("next: atlasctl job result {}", job.id));
    Ok(ending::exit(&job))
}

/// Follows one job until it has ended.
async fn follow(context: &Context, client: &Client, id: &str) -> Result<Job, Failure> {
    // Resolve the full id first: a prefix could become ambiguous when another job is submitted.
    let job: Job = answers::read(&client.get(&["api", "jobs", id], &[("view", "full")]).await?)?;
    let id = job.id.as_str();
    let path = ["api", "jobs", id, "events"];
    let happens = client.events(&path, &[("view", "full")], |frame| {
        let value: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
        let event: JobChange = answers::read(&value)?;
        context.show(&Shown { text: events::line(&event), value, names: vec![format!("job/{id}")] })?;
        Ok(true)
    });
    let says = logs::follow(client, id, |line, value| {
        context.show(&Shown { text: logs::line(line), value, names: Vec::new() })
    });
    let (happened, said) = tokio::join!(happens, says);
    happened.and(said)?;
    answers::read(&client.get(&["api", "jobs", id], &[("view", "full")]).await?)
}
