//! `atlasctl job retry`.

use serde_json::json;

use crate::command::chain_run;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl job retry`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
    /// Continue after the recorded steps of the ended job instead of repeating them.
    #[arg(long)]
    resume: bool,
    /// What happens to the questions of the new jobs to people: fail, wait, or answer:TEXT; defaults to what happens to those of the
    /// ended ones.
    #[arg(long, value_name = "RULE")]
    questions: Option<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| retry(context, id, options).await).await
}

async fn retry(context: &Context, id: &str, options: &Options) -> Result<Exit, Failure> {
    if chain_run::is_one(id) {
        return chain_run::retry(context, id, options, async |job| of_job(context, job, options).await).await;
    }
    of_job(context, id, options).await
}

async fn of_job(context: &Context, id: &str, options: &Options) -> Result<Exit, Failure> {
    let mut query = Vec::new();
    query.extend(options.resume.then_some(("resume", "true")));
    query.extend(options.questions.as_deref().map(|rule| ("questions", rule)));
    let value = context.client()?.post(&["api", "jobs", id, "retry"], &query, &json!({})).await?;
    let id = value["id"].as_str().ok_or_else(|| Failure::answer("a retry is answered with an id"))?.to_owned();
    context.next(&format!("next: atlasctl job wait {id}"));
    context.show(&Shown { value, text: format!("{id}\n"), names: vec![format!("job/{id}")] })?;
    Ok(Exit::Done)
}

impl Options {
    /// Why a run of a chain, which is no job, cannot run again like this.
    pub(crate) fn refused_of_run(&self, id: &str) -> Option<Failure> {
        let why = match self {
            Self { resume: true, .. } => "which has no recorded steps to resume from",
            Self { questions: Some(_), .. } => "whose jobs keep their rule for questions",
            _ => return None,
        };
        let failure = Failure::usage(format!("{id} is a run of a chain, {why}"));
        Some(failure.with_next(format!("run it again from its first step: atlasctl job retry {id}")))
    }
}
