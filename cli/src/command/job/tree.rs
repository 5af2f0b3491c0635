//! `atlasctl job tree`.

use atlas_api::types::Job;
use serde::Deserialize;
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::command::chain_run;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending::waits;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};
use crate::words;

/// Options of `atlasctl job tree`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Ids of jobs or of runs of chains, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::ran)]
    ids: Vec<String>,
}

/// The columns of a tree.
pub(crate) const HEADS: [&str; 6] = ["JOB", "AGENT", "STATUS", "TOOK", "NODE", "COST"];

/// A job, or a run of a chain, with the jobs below it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tree {
    #[serde(flatten)]
    pub(crate) job: Job,
    pub(crate) children: Vec<Tree>,
    /// The jobs that it was retried as.
    pub(crate) retries: Vec<Tree>,
    /// Which step of a chain it is; empty for none.
    #[serde(skip)]
    pub(crate) place: String,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| tree(context, id).await).await
}

async fn tree(context: &Context, id: &str) -> Result<Exit, Failure> {
    let (tree, value) = read(&context.client()?, id).await?;
    // Most trees call no model.
    let has_costs = costs(&tree);
    let mut table = Table::new(if has_costs { &HEADS } else { &HEADS[..5] });
    let mut names = Vec::new();
    rows(&tree, &mut table, &mut names);
    context.show(&Shown { value, text: table.text(), names })?;
    Ok(Exit::Done)
}

/// The tree of a job or of a run, with the answer of the server.
pub(crate) async fn read(client: &Client, id: &str) -> Result<(Tree, Value), Failure> {
    if !chain_run::is_one(id) {
        let value = client.get(&["api", "jobs", id, "tree"], &[]).await?;
        return Ok((answers::read(&value)?, value));
    }
    let value = client.get(&["api", "chains", id, "tree"], &[]).await?;
    let mut tree: Tree = answers::read(&value)?;
    tree.job.agent_name = format!("chain {}", value["chain_name"].as_str().unwrap_or_default());
    let steps = value["step_jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    for child in &mut tree.children {
        let step = steps.iter().find(|step| step["job_id"] == child.job.id.as_str());
        child.place = step.map(place).unwrap_or_default();
        child.retries.iter_mut().for_each(|retry| retry.place.clone_from(&child.place));
    }
    tree.children.extend(value["steps_left"].as_array().into_iter().flatten().map(left));
    Ok((tree, value))
}

/// Which step of a chain it is, from 1, with its name if it has one.
pub(crate) fn place(step: &Value) -> String {
    let number = step["step"].as_u64().unwrap_or_default();
    match step["name"].as_str().filter(|name| *name != format!("step_{number}")) {
        Some(name) => format!("{} {name}", number + 1),
        None => (number + 1).to_string(),
    }
}

/// A step of a chain that does not run.
fn left(step: &Value) -> Tree {
    let status = step["error"].as_str().unwrap_or("skipped").to_owned();
    Tree { job: Job { id: "-".to_owned(), status, ..Job::default() }, place: place(step), ..Tree::default() }
}

/// All jobs of a tree with their steps, each before its retries and the jobs below it.
pub(crate) fn jobs_of(tree: &Tree) -> Vec<(String, String)> {
    let mut jobs = Vec::new();
    let mut add = |tree: &Tree| {
        for one in std::iter::once(tree).chain(&tree.retries).filter(|one| one.job.id.starts_with("job-")) {
            jobs.push((one.place.clone(), one.job.id.clone()));
        }
    };
    add(tree);
    tree.children.iter().for_each(add);
    jobs
}

/// The jobs of a run's steps that have not ended, with their steps.
pub(crate) fn unfinished(tree: &Tree) -> Vec<(String, String)> {
    let steps = tree.children.iter().flat_map(|child| std::iter::once(child).chain(&child.retries));
    let open = steps.filter(|one| one.job.id.starts_with("job-") && !one.job.is_terminal());
    open.map(|one| (one.place.clone(), one.job.id.clone())).collect()
}

/// Whether any job of a tree cost anything.
pub(crate) fn costs(tree: &Tree) -> bool {
    let below = |trees: &[Tree]| trees.iter().any(costs);
    tree.job.cost_usd > 0.0 || tree.job.tree_cost_usd > 0.0 || below(&tree.children) || below(&tree.retries)
}

/// Adds a row for the root of a tree with its retries, and for each job below them.
pub(crate) fn rows(tree: &Tree, table: &mut Table, names: &mut Vec<String>) {
    for root in std::iter::once(tree).chain(&tree.retries) {
        row(root, "", "", table, names);
    }
}

/// Adds a row for the job and each job below it. `branch` is the line drawing before the job's own row, `trunk` the one
/// before the rows of its children.
fn row(tree: &Tree, branch: &str, trunk: &str, table: &mut Table, names: &mut Vec<String>) {
    let job = &tree.job;
    let took = if job.is_terminal() { words::milliseconds(job.total_ms()) } else { String::new() };
    let mut status = if job.is_terminal() { job.status.clone() } else { waits(job) };
    if job.retry_count > 0 {
        status += &format!(", retry {}", job.retry_count);
    }
    let agent = match (tree.place.is_empty(), job.agent()) {
        (true, agent) => agent,
        (false, agent) => format!("step {}  {agent}", tree.place).trim_end().to_owned(),
    };
    let cells = [format!("{branch}{}", job.id), agent, status, took, job.node.clone(), job.cost()];
    table.row(cells.into_iter().take(table.width()));
    if job.id.starts_with("job-") {
        names.push(format!("job/{}", job.id));
    }
    let below: Vec<&Tree> =
        tree.children.iter().flat_map(|child| std::iter::once(child).chain(&child.retries)).collect();
    for (index, child) in below.iter().enumerate() {
        let (elbow, side) = if index + 1 == below.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        row(child, &format!("{trunk}{elbow}"), &format!("{trunk}{side}"), table, names);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn job(id: &str, children: Vec<Tree>) -> Tree {
        Tree {
            job: Job {
                id: id.to_owned(),
                agent_name: "a".to_owned(),
                agent_version: "1.0.0".to_owned(),
                status: "completed".to_owned(),
                created_at: 1.0,
                completed_at: 1.25,
                node: "n1".to_owned(),
                ..Job::default()
            },
            children,
            ..Tree::default()
        }
    }

    #[test]
    fn families_are_drawn_with_their_branches_and_retries() {
        let mut tree = job("job-1", vec![job("job-2", vec![job("job-3", vec![])]), job("job-4", vec![])]);
        tree.retries.push(job("job-5", vec![job("job-6", vec![])]));
        tree.retries[0].job.retry_count = 1;
        let (mut table, mut names) = (Table::new(&["JOB", "", "", "", ""]), Vec::new());
        rows(&tree, &mut table, &mut names);
        expect![[r#"
            JOB
            job-1        a 1.0.0  completed           250 ms  n1
            ├─ job-2     a 1.0.0  completed           250 ms  n1
            │  └─ job-3  a 1.0.0  completed           250 ms  n1
            └─ job-4     a 1.0.0  completed           250 ms  n1
            job-5        a 1.0.0  completed, retry 1  250 ms  n1
            └─ job-6     a 1.0.0  completed           250 ms  n1
        "#]]
        .assert_eq(&table.text());
        assert_eq!(names.len(), 6);
    }

    #[test]
    fn the_jobs_of_an_execution_have_the_numbers_of_their_steps() {
        assert_eq!(place(&json!({"step": 0, "name": "step_0"})), "1");
        assert_eq!(place(&json!({"step": 1, "name": "greet"})), "2 greet");
        let mut tree =
            job("chain-1", vec![job("job-2", vec![]), left(&json!({"step": 1, "name": "b", "error": null}))]);
        tree.children[0].place = "1".to_owned();
        let (mut table, mut names) = (Table::new(&["JOB", "", "", "", ""]), Vec::new());
        rows(&tree, &mut table, &mut names);
        expect![[r#"
            JOB
            chain-1   a 1.0.0          completed  250 ms  n1
            ├─ job-2  step 1  a 1.0.0  completed  250 ms  n1
            └─ -      step 2 b         skipped    -       -
        "#]]
        .assert_eq(&table.text());
        assert_eq!((names.len(), jobs_of(&tree)), (1, vec![("1".to_owned(), "job-2".to_owned())]));
    }
}
