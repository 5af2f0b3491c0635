//! `atlasctl job tree`.

use serde::Deserialize;

use crate::api::{self, Job};
use crate::context::Context;
use crate::ending::waits;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};
use crate::words;

/// Options of `atlasctl job tree`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Job ids, or unique prefixes of them, also as printed by -o name.
    #[arg(required = true, value_name = "ID", value_parser = names::job)]
    ids: Vec<String>,
}

/// A job with the jobs that it spawned.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tree {
    #[serde(flatten)]
    job: Job,
    children: Vec<Tree>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.ids, async |id| tree(context, id).await).await
}

async fn tree(context: &Context, id: &str) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "jobs", id, "tree"], &[]).await?;
    let tree: Tree = api::read(&value)?;
    // Most trees call no model.
    let has_costs = tree.job.cost_usd > 0.0 || tree.job.tree_cost_usd > 0.0;
    let heads = ["JOB", "AGENT", "STATUS", "TOOK", "NODE", "COST"];
    let mut table = Table::new(if has_costs { &heads } else { &heads[..5] });
    let mut names = Vec::new();
    rows(&tree, "", "", &mut table, &mut names);
    context.show(&Shown { value, text: table.text(), names })?;
    Ok(Exit::Done)
}

/// Adds a row for the job and each job below it. `branch` is the line drawing before the job's own row, `trunk` the one
/// before the rows of its children.
fn rows(tree: &Tree, branch: &str, trunk: &str, table: &mut Table, names: &mut Vec<String>) {
    let job = &tree.job;
    let took = if job.is_terminal() { words::milliseconds(job.total_ms()) } else { String::new() };
    let status = if job.is_terminal() { job.status.clone() } else { waits(job) };
    let cells = [format!("{branch}{}", job.id), job.agent(), status, took, job.node.clone(), job.cost()];
    table.row(cells.into_iter().take(table.width()));
    names.push(format!("job/{}", job.id));
    for (index, child) in tree.children.iter().enumerate() {
        let (elbow, side) = if index + 1 == tree.children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        rows(child, &format!("{trunk}{elbow}"), &format!("{trunk}{side}"), table, names);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn families_are_drawn_with_their_branches() {
        let job = |id: &str, children| Tree {
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
        };
        let tree = job("job-1", vec![job("job-2", vec![job("job-3", vec![])]), job("job-4", vec![])]);
        let (mut table, mut names) = (Table::new(&["JOB", "", "", "", ""]), Vec::new());
        rows(&tree, "", "", &mut table, &mut names);
        expect![[r#"
            JOB
            job-1        a 1.0.0  completed  250 ms  n1
            ├─ job-2     a 1.0.0  completed  250 ms  n1
            │  └─ job-3  a 1.0.0  completed  250 ms  n1
            └─ job-4     a 1.0.0  completed  250 ms  n1
        "#]]
        .assert_eq(&table.text());
        assert_eq!(names.len(), 4);
    }
}
