//! Verbs that are about one job, given the id of a run.

use atlas_api::types::Job;
use serde_json::{Value, json};

use super::get;
use crate::client::Client;
use crate::command::job::RetryOptions;
use crate::command::job::tree::{self, Tree};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

/// The jobs of the steps of a run, each before its retries.
pub(crate) async fn jobs(client: &Client, id: &str) -> Result<Vec<String>, Failure> {
    let (family, _) = tree::read(client, id).await?;
    Ok(tree::jobs_of(&family).into_iter().map(|(_, job)| job).collect())
}

/// The only job of a run of which `fits` is true, in words `is`. Of several, the refusal names the command for one.
pub(crate) async fn only_job(
    client: &Client,
    id: &str,
    is: &str,
    fits: impl Fn(&Job) -> bool,
    again: impl Fn(&str) -> String,
) -> Result<String, Failure> {
    only(&tree::read(client, id).await?.0, id, is, fits, again)
}

fn only(
    family: &Tree,
    id: &str,
    is: &str,
    fits: impl Fn(&Job) -> bool,
    again: impl Fn(&str) -> String,
) -> Result<String, Failure> {
    let steps = family.children.iter().flat_map(|step| std::iter::once(step).chain(&step.retries));
    let jobs = steps.map(|step| &step.job).filter(|job| job.id.starts_with("job-") && fits(job));
    match jobs.map(|job| job.id.as_str()).collect::<Vec<_>>()[..] {
        [job] => Ok(job.to_owned()),
        [] => {
            let failure = Failure::new("E3005", Exit::Conflict, format!("no job of {id} {is}"));
            Err(failure.with_next(format!("show what it does: atlasctl job show {id}")))
        }
        [first, ..] => {
            let failure = Failure::usage(format!("{id} is a run of a chain of which more than one job {is}"));
            Err(failure.with_next(format!("name the job: {}   or list them: atlasctl job tree {id}", again(first))))
        }
    }
}

/// The refusal of a verb that works on one job. `again` is the command for a job: the one that failed, or the last one.
pub(crate) async fn is_several(
    client: &Client,
    id: &str,
    why: &str,
    again: impl Fn(&str) -> String,
) -> Result<Failure, Failure> {
    let (family, run) = tree::read(client, id).await?;
    let last = || tree::jobs_of(&family).pop().map(|(_, job)| job);
    let job = run["failure"]["job_id"].as_str().map(str::to_owned).or_else(last);
    let failure = Failure::usage(format!("{id} is a run of a chain; {why}"));
    Ok(failure.with_next(match job {
        Some(job) => format!("name the job of a step: {}   or list them: atlasctl job tree {id}", again(&job)),
        None => format!("no step of it has begun: atlasctl job show {id}"),
    }))
}

/// Runs the chain of a run that has ended again, with the same input. One that carries a job is run again by `of_job`.
pub(crate) async fn retry(
    context: &Context,
    id: &str,
    options: &RetryOptions,
    of_job: impl AsyncFn(&str) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let client = context.client()?;
    let run = get(&client, id).await?;
    let id = run["id"].as_str().unwrap_or(id);
    if let Some(job) = run["job_id"].as_str() {
        return of_job(job).await;
    }
    if !run["result"].is_object() {
        let status = run["status"].as_str().unwrap_or_default();
        let failure = Failure::new("E3005", Exit::Conflict, format!("{id} has not ended ({status})"));
        return Err(failure.with_next(format!("wait for it: atlasctl job wait {id}   or: atlasctl job cancel {id}")));
    }
    if let Some(refused) = options.refused_of_run(id) {
        return Err(refused);
    }
    let value = client.post(&["api", "chains"], &[], &again(&run)).await?;
    let new = value["id"].as_str().ok_or_else(|| Failure::answer("a run is answered with an id"))?.to_owned();
    context.next(&format!("next: atlasctl job wait {new}"));
    context.show(&Shown { value, text: format!("{new}\n"), names: vec![new] })?;
    Ok(Exit::Done)
}

/// The request for the same run: of a stored chain as it is now, as for jobs, and otherwise of the definition that it had.
fn again(run: &Value) -> Value {
    let chain = if run["revision"].is_null() { &run["definition"] } else { &run["chain_name"] };
    json!({"chain": chain, "input": run["input_data"], "priority": run["priority"]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::JobDisplay as _;

    fn step(id: &str, status: &str) -> Tree {
        Tree { job: Job { id: id.to_owned(), status: status.to_owned(), ..Job::default() }, ..Tree::default() }
    }

    #[test]
    fn the_job_that_a_verb_is_about_is_found_or_named() {
        let only = |steps: Vec<Tree>| {
            let family = Tree { children: steps, ..step("chain-1", "running") };
            let again = |job: &str| format!("atlasctl job message {job} …");
            only(&family, "chain-1", "runs", |job| !job.is_terminal(), again).map_err(|failure| failure.to_string())
        };
        assert_eq!(only(vec![step("job-1", "completed"), step("job-2", "running")]).as_deref(), Ok("job-2"));
        let retried = Tree { retries: vec![step("job-3", "pending")], ..step("job-2", "failed") };
        assert_eq!(only(vec![retried]).as_deref(), Ok("job-3"));
        let none = "error[E3005]: no job of chain-1 runs\nshow what it does: atlasctl job show chain-1";
        assert_eq!(only(vec![step("job-1", "completed"), step("-", "skipped")]), Err(none.to_owned()));
        let two = "error: chain-1 is a run of a chain of which more than one job runs\n\
                   name the job: atlasctl job message job-1 …   or list them: atlasctl job tree chain-1";
        assert_eq!(only(vec![step("job-1", "running"), step("job-2", "pending")]), Err(two.to_owned()));
    }

    #[test]
    fn a_run_is_repeated_with_the_stored_chain_or_its_own_definition() {
        let run = json!({
            "chain_name": "c", "revision": 7, "definition": {"name": "c", "steps": []}, "input_data": {"n": 1}, "priority": 3,
        });
        assert_eq!(again(&run), json!({"chain": "c", "input": {"n": 1}, "priority": 3}));
        let given =
            json!({"chain_name": "c", "revision": null, "definition": {"name": "c"}, "input_data": {}, "priority": 0});
        assert_eq!(again(&given)["chain"], json!({"name": "c"}));
    }
}
