//! A job with its spawned jobs, recursively, and with its retries.

use std::sync::Arc;

use atlas_desk::{Caller, Consistency, Error};
use atlas_state::State;
use atlas_types::{Job, JobId, StepUsage};

use crate::Records;
use crate::view::{Shown, View, waiting};

/// The most jobs in one tree.
pub const JOBS_MAX: usize = 1_000;
/// When the JSON of a tree has reached this size, further jobs are left out.
const BYTES_MAX: usize = 4 << 20;

/// A job and its children, oldest first. Large payloads appear as null.
#[derive(Debug)]
pub struct Tree {
    shown: Shown,
    children: Vec<Tree>,
    /// The jobs that it was retried as, oldest first. A retry of a child is another child.
    retries: Vec<Tree>,
}

impl Records {
    /// The tree of a job, as far as it is in the state: ended jobs leave the state after a while, together with their
    /// children.
    pub async fn tree(&self, caller: &Caller, id: JobId, consistency: Consistency) -> Result<Tree, Error> {
        let state = self.desk.state(consistency).await?;
        self.tree_in(caller, &state, id, &mut { JOBS_MAX }).await
    }

    /// The same with at most `left` jobs.
    pub async fn tree_in(&self, caller: &Caller, state: &State, id: JobId, left: &mut usize) -> Result<Tree, Error> {
        let root = self.desk.job_in(caller, state, id).await?;
        // A retry of a spawned job is a child of the same parent.
        let mut next = root.successor.filter(|_| root.spawned.is_none());
        let mut family = tree(state, root, left);
        while let Some(id) = next.filter(|_| *left > 0) {
            let Ok(job) = self.desk.job_in(caller, state, id).await else { break };
            next = job.successor;
            family.retries.push(tree(state, job, left));
        }
        Ok(family)
    }
}

/// The jobs directly below a job: those that it spawned, and the steps of a run that carries it.
fn below(state: &State, job: JobId) -> impl Iterator<Item = &Arc<Job>> {
    let run = state.job(job).and_then(|job| state.run(job.carried?.run));
    let steps = run.into_iter().flat_map(|run| &run.steps).filter_map(|step| state.job(step.job));
    state.children(job).chain(steps)
}

fn tree(state: &State, job: Arc<Job>, left: &mut usize) -> Tree {
    *left = left.saturating_sub(1);
    let mut children = Vec::new();
    for child in below(state, job.id) {
        if *left == 0 {
            break;
        }
        children.push(tree(state, child.clone(), left));
    }
    let waiting = waiting(state, &job);
    let mut shown = Shown { waiting, ..Shown::inline(job).with_usage(state) };
    shown.tree = (!children.is_empty()).then(|| {
        let mut sum = shown.usage;
        children.iter().for_each(|child| sum += child.shown.tree.unwrap_or(child.shown.usage));
        sum
    });
    Tree { shown, children, retries: Vec::new() }
}

/// What a job and the jobs below it in the state cost, up to the size of a tree; none if it has no children there.
pub(crate) fn usage(state: &State, job: JobId) -> Option<StepUsage> {
    below(state, job).next()?;
    let mut sum = StepUsage::default();
    let (mut waiting, mut left) = (vec![job], JOBS_MAX);
    while let Some(job) = waiting.pop() {
        sum += state.journal(job).map(|journal| journal.usage()).unwrap_or_default();
        let children = below(state, job).take(left).map(|child| child.id);
        let before = waiting.len();
        waiting.extend(children);
        left -= waiting.len() - before;
    }
    Some(sum)
}

impl Tree {
    /// Appends the tree as JSON: the job's object in the full view with its children in `children`, and those that it was retried as in
    /// `retries`.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.shown.write(out, View::Full);
        // The closing brace is removed to add members.
        out.pop();
        out.extend_from_slice(b",\"children\":[");
        write_all(&self.children, out);
        if !self.retries.is_empty() {
            out.extend_from_slice(b"],\"retries\":[");
            write_all(&self.retries, out);
        }
        out.extend_from_slice(b"]}");
    }
}

/// Appends trees with commas between them, as long as there is room.
pub fn write_all(trees: &[Tree], out: &mut Vec<u8>) {
    for (index, tree) in trees.iter().enumerate() {
        if out.len() >= BYTES_MAX {
            break;
        }
        if index > 0 {
            out.push(b',');
        }
        tree.write(out);
    }
}
