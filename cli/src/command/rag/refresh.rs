//! `atlasctl rag refresh`: the cluster reads the sources of a base again.

use atlas_api::types::{BaseCollecting, Job};
use serde::Deserialize;
use serde_json::json;

use super::{BASES, listed};
use crate::answers;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl rag refresh`.
#[derive(Debug, clap::Args)]
pub(crate) struct Refresh {
    /// The base's name.
    #[arg(value_name = "NAME", value_parser = names::base)]
    name: String,
    /// Do not wait until they are read.
    #[arg(long)]
    no_wait: bool,
}

/// The output of the job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Output {
    documents: u64,
    added: u64,
    replaced: u64,
    unchanged: u64,
    removed: u64,
    errors: Vec<String>,
    more_errors: u64,
}

pub(super) async fn run(context: &Context, options: &Refresh) -> Result<Exit, Failure> {
    sources(context, &options.name, !options.no_wait).await
}

/// Lets the cluster read the sources of a base.
pub(super) async fn sources(context: &Context, name: &str, waits: bool) -> Result<Exit, Failure> {
    let client = context.client()?;
    let path = [BASES[0], BASES[1], name, "collect"];
    let value = client.post(&path, &[], &json!({})).await.map_err(listed)?;
    let BaseCollecting { job: id } = answers::read(&value)?;
    let names = vec![format!("base/{name}")];
    if !waits {
        let text = format!("base/{name}  its sources are read by {id}\n");
        context.show(&Shown { value, text, names })?;
        return Ok(Exit::Done);
    }
    let value = ending::wait(&client, &id, None, Some(context)).await?;
    let job: Job = answers::read(&value)?;
    match ending::exit(&job) {
        Exit::Done => {}
        Exit::JobFailed => {
            let failure = Failure::new("E4004", Exit::JobFailed, job.error.clone());
            return Err(failure.with_next(format!("atlasctl job explain {id}")));
        }
        exit => {
            let text = format!("the sources of \"{name}\" were not read: the job {id} is {}", job.standing());
            return Err(Failure::new("E4004", exit, text).with_next(format!("atlasctl job explain {id}")));
        }
    }
    let output: Output = answers::read(&value["output_data"])?;
    context.show(&Shown { value: value["output_data"].clone(), text: text(name, &output), names })?;
    for error in &output.errors {
        context.note(&format!("{}{error}", words::WARNING));
    }
    if !output.errors.is_empty() {
        context.note("what the base has of sources that could not be read stays, except what is known to be gone");
    }
    if output.more_errors > 0 {
        context.note(&format!("{}{} more", words::WARNING, words::count(output.more_errors, "error")));
    }
    Ok(if output.errors.is_empty() { Exit::Done } else { Exit::Short })
}

fn text(name: &str, output: &Output) -> String {
    let Output { documents, added, replaced, unchanged, removed, .. } = output;
    let documents = words::count(*documents, "document");
    format!(
        "base/{name}  {documents} read from its sources: {added} added, {replaced} replaced, {unchanged} unchanged, {removed} removed\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_documents_is_one_line() {
        let output = Output { documents: 3, added: 1, unchanged: 2, removed: 4, ..Output::default() };
        assert_eq!(
            text("wiki", &output),
            "base/wiki  3 documents read from its sources: 1 added, 0 replaced, 2 unchanged, 4 removed\n"
        );
    }
}
