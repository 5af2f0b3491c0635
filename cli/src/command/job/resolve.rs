//! `atlasctl job resolve`.

use serde_json::json;

use crate::command::chain_run;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job resolve`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("decision").required(true)))]
pub(crate) struct Options {
    /// Id of a job, or of a run of a chain of which one job is in doubt, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::ran)]
    id: String,
    /// The lost attempt had no effect: run the job again.
    #[arg(long, group = "decision")]
    run_again: bool,
    /// The lost attempt succeeded: complete the job with this output, as JSON, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON|@FILE|-", group = "decision", allow_hyphen_values = true)]
    result: Option<String>,
    /// Mark the job as failed with this error, without a retry.
    #[arg(long, value_name = "TEXT", group = "decision")]
    error: Option<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let body = match (&options.result, &options.error) {
        (Some(text), _) => json!({"output": input::whole(text, "--result")?}),
        (None, Some(error)) => json!({"error": error}),
        (None, None) => json!({"run_again": true}),
    };
    let client = context.client()?;
    let mut job = options.id.clone();
    if chain_run::is_one(&job) {
        let again = |job: &str| format!("atlasctl job resolve {job} …");
        job = chain_run::only_job(&client, &job, "is in doubt", |job| job.reason == "in_doubt", again).await?;
    }
    let value = client.post(&["api", "jobs", &job, "resolve"], &[], &body).await?;
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let (Some(id), Some(status)) = (text("id"), text("status")) else {
        return Err(Failure::answer("a resolution is answered with an id and a status"));
    };
    if status == "pending" {
        context.next(&format!("next: atlasctl job wait {id}"));
    }
    context.show(&Shown { value, text: format!("{id}  {status}\n"), names: vec![format!("job/{id}")] })?;
    Ok(Exit::Done)
}
