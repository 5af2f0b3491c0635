//! `atlasctl job cost`: what the models called by a job and by the jobs below it cost.

use atlas_api::types::Job;
use serde_json::{Value, json};

use super::tree::{self, Tree};
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};
use crate::words;

/// Options of `atlasctl job cost`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
}

/// Sums of a tree.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Sum {
    tokens_input: u64,
    tokens_output: u64,
    cost_usd: f64,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| cost(context, id).await).await
}

async fn cost(context: &Context, id: &str) -> Result<Exit, Failure> {
    let (tree, _) = tree::read(&context.client()?, id).await?;
    let mut jobs = Vec::new();
    flatten(&tree, &mut jobs);
    let sum = jobs.iter().fold(Sum::default(), |sum, job| Sum {
        tokens_input: sum.tokens_input + job.tokens_input,
        tokens_output: sum.tokens_output + job.tokens_output,
        cost_usd: sum.cost_usd + job.cost_usd,
    });
    let names = jobs.iter().map(|job| format!("job/{}", job.id)).collect();
    let value = json!({
        "id": tree.job.id,
        "tokens_input": sum.tokens_input, "tokens_output": sum.tokens_output, "cost_usd": sum.cost_usd,
        "jobs": jobs.iter().map(|job| value(job)).collect::<Vec<_>>(),
    });
    context.show(&Shown { value, text: text(&jobs, sum), names })?;
    Ok(Exit::Done)
}

/// All jobs of a tree; a run of a chain is none.
fn flatten<'t>(tree: &'t Tree, jobs: &mut Vec<&'t Job>) {
    if tree.job.id.starts_with("job-") {
        jobs.push(&tree.job);
    }
    tree.children.iter().chain(&tree.retries).for_each(|below| flatten(below, jobs));
}

fn value(job: &Job) -> Value {
    json!({
        "id": job.id, "agent_name": job.agent_name, "status": job.status, "model": job.model(),
        "tokens_input": job.tokens_input, "tokens_output": job.tokens_output, "cost_usd": job.cost_usd,
    })
}

/// A row for each job that called a model, and the sum.
fn text(jobs: &[&Job], sum: Sum) -> String {
    let mut table = Table::new(&["JOB", "AGENT", "MODEL", "IN", "OUT", "COST"]);
    let tokens = |job: &&&Job| job.tokens_input + job.tokens_output > 0 || job.cost_usd > 0.0;
    for job in jobs.iter().filter(tokens) {
        let model = job.model().unwrap_or_default().to_owned();
        let (input, output) = (job.tokens_input.to_string(), job.tokens_output.to_string());
        table.row([job.id.clone(), job.agent(), model, input, output, words::dollars(job.cost_usd)]);
    }
    let all = words::count(jobs.len() as u64, "job");
    let (input, output) = (sum.tokens_input.to_string(), sum.tokens_output.to_string());
    table.row(["total".to_owned(), all, String::new(), input, output, words::dollars(sum.cost_usd)]);
    table.text()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_family_has_one_sum() {
        let job = |id: &str, cost_usd: f64, children| Tree {
            job: Job {
                id: id.to_owned(),
                agent_name: "a".to_owned(),
                agent_version: "1.0.0".to_owned(),
                tokens_input: (cost_usd * 1e4) as u64,
                cost_usd,
                ..Job::default()
            },
            children,
            ..Tree::default()
        };
        let mut tree = job("chain-1", 0.0, vec![job("job-1", 0.01, vec![job("job-2", 0.0, vec![])])]);
        tree.children[0].retries.push(job("job-3", 0.02, vec![]));
        let mut jobs = Vec::new();
        flatten(&tree, &mut jobs);
        let sum = Sum { tokens_input: 300, tokens_output: 0, cost_usd: 0.03 };
        expect![[r#"
            JOB    AGENT    MODEL  IN   OUT  COST
            job-1  a 1.0.0  -      100  0    $0.0100
            job-3  a 1.0.0  -      200  0    $0.0200
            total  3 jobs   -      300  0    $0.0300
        "#]]
        .assert_eq(&text(&jobs, sum));
    }
}
