//! Jobs that attempts spawn: submitted for the parent, and awaited with their retries (compatibility §10, ADR 11).

use std::time::Duration;

use atlas_api::Jobs;
use atlas_desk::requests;
use atlas_jobs::relations::{self, Family};
use atlas_types::{
    AgentName, Command, ForsakeChild, Job, JobId, JobStatus, Namespace, NodeId, Outcome, Spawn, SpawnEnd, Spawner,
};
use serde_json::Map;

use crate::{Caller, Consistency, Error, Service, Submission};

/// The result of a spawn request.
#[derive(Debug, Clone)]
pub enum Spawning {
    /// The child exists, and its parent waits for it.
    Child(Child),
    /// There is no child; the answer to the parent.
    End(SpawnEnd),
}

/// A child or its latest retry, with the caller on whose behalf it is watched.
#[derive(Debug, Clone)]
pub struct Child {
    caller: Caller,
    job: JobId,
}

impl Service {
    /// Submits the job that an attempt spawns. A repeat with the same number in another session gets the same child:
    /// its id is derived from the requester, so that no other record of the request is needed. A later attempt that
    /// asks for the same step of its journal gets the same child as well.
    pub async fn spawn_child(&self, number: u64, spawn: &Spawn) -> Result<Spawning, Error> {
        let refused = |why: String| Ok(Spawning::End(SpawnEnd::Refused(why)));
        let Spawner { job, token } = spawn.spawner;
        let state = self.shared.current().await?;
        let Some(parent) = state.job(job).filter(|job| job.lease.as_ref().is_some_and(|lease| lease.token == token))
        else {
            return refused("the lease is outdated".to_owned());
        };
        // What the parent may pass on, its children may too, if they name who gets it.
        let mut caller = self.shared.authenticator.caller_of_job(&state, parent).with_inbound(self.bearers().of(job));
        if caller.may(Jobs::SubmitJob.id()).is_err()
            && let Err(error) = self.admit(&caller, Jobs::SubmitJob.id(), &format!("agent/{}", spawn.agent)).await
        {
            return refused(error.to_string());
        }
        if spawn.skill {
            caller.namespace = Namespace::of_skills();
        }
        let id = spawn.child(number);
        if spawn.again {
            let known = match state.job(id) {
                Some(known) => Some(known.clone()),
                None => self.shared.archived(&state, id).await?,
            };
            if known.is_some() {
                return Ok(Spawning::Child(Child { caller, job: id }));
            }
        }
        let (agent, version) = if spawn.skill {
            match self.required_skill(&caller, parent, &spawn.agent).await? {
                Ok((agent, version)) => (agent, Some(version.to_string())),
                Err(why) => return refused(why),
            }
        } else {
            let Ok(agent) = AgentName::new(&spawn.agent) else {
                // The same error as for any unknown agent, except that there is no job with it.
                let error = format!("Pool error: Agent not found or no implementation: {}", spawn.agent);
                return Ok(Spawning::End(SpawnEnd::Failed(error)));
            };
            (agent, None)
        };
        let mut metadata = Map::new();
        metadata.insert("_spawn_depth".to_owned(), (parent.depth() + 1).into());
        metadata.insert("_parent_trace_id".to_owned(), job.to_string().into());
        let submission = Submission {
            version,
            priority: spawn.priority,
            questions: parent.questions.clone(),
            ..Submission::new(agent, self.bytes(&spawn.input).await?)
        };
        let mut submission = relations::spawned(submission, Family { spawner: spawn.spawner, metadata });
        if spawn.skill {
            submission = relations::called_from(submission, parent.namespace.clone());
        }
        // An earlier try may have made the child, with its turn.
        let turn = match state.job(id) {
            None => self.shared.conversations.child_turn(&caller, &mut submission, id).await?,
            Some(_) => None,
        };
        match self.shared.jobs.submit_as(&caller, &submission, Some(id)).await {
            Ok(child) => {
                if let Some(turn) = turn {
                    self.shared.conversations.watch_turn(&caller, turn, child);
                }
                Ok(Spawning::Child(Child { caller, job: child }))
            }
            Err(
                error @ (Error::SpawnRefused(_)
                | Error::QueueFull { .. }
                | Error::LimitReached(_)
                | Error::LevelTooLow(_)
                | Error::Malformed(_)
                | Error::TooLarge { .. }),
            ) => {
                if let Some(turn) = turn {
                    self.shared.conversations.release(&caller, &turn).await?;
                }
                refused(error.to_string())
            }
            Err(error) => {
                // One that passes is tried again, and finds its own turn.
                if let Some(turn) = turn.filter(|_| !error.is_transient() && !matches!(error, Error::OutcomeUnknown)) {
                    self.shared.conversations.release(&caller, &turn).await?;
                }
                Err(error)
            }
        }
    }

    /// Waits until a child, or the last of its retries, has ended, at most `timeout`. After the timeout, the rest of
    /// the family is cancelled.
    pub async fn await_child(
        &self,
        node: &NodeId,
        spawner: Spawner,
        child: Child,
        timeout: Duration,
    ) -> Result<SpawnEnd, Error> {
        let over = self.shared.env.clock.sleep(timeout);
        tokio::select! {
            biased;
            end = self.family_end(&child) => end,
            () = over => {
                let status = self.last_of_family(&child).await?.status;
                self.forsake_child(node, spawner, &child).await?;
                Ok(SpawnEnd::Failed(format!("Child job {}", status.as_str())))
            }
        }
    }

    /// Handles a parent that no longer waits for its child.
    pub async fn forsake_child(&self, node: &NodeId, spawner: Spawner, child: &Child) -> Result<(), Error> {
        let command = ForsakeChild { spawner, node: node.clone(), child: child.job };
        match self.propose(requests::of(&child.caller, Command::ForsakeChild(command))).await {
            Ok(Outcome::Cancelled { .. }) => Ok(()),
            // The parent's lease has ended, which cancelled its children, or the child has left the state.
            Err(Error::SpawnRefused(_) | Error::UnknownJob) => Ok(()),
            Ok(_) => Err(Error::OutcomeUnknown),
            Err(error) => Err(error),
        }
    }

    async fn family_end(&self, child: &Child) -> Result<SpawnEnd, Error> {
        let mut id = child.job;
        loop {
            let mut waiter = self.shared.records.waiters().wait(id);
            let state = self.state(Consistency::Stale).await?;
            let job = match state.job(id) {
                Some(job) => job.clone(),
                None => self.shared.job_in(&child.caller, &state, id).await?,
            };
            let job = match job {
                job if job.status.is_terminal() => job,
                // The job seems not to have ended. Its end may have been missed, so it is looked up again.
                _ => match waiter.ended().await {
                    Some(job) if job.status.is_terminal() => job,
                    _ => continue,
                },
            };
            match job.successor {
                Some(next) => id = next,
                None => return end(&job),
            }
        }
    }

    async fn last_of_family(&self, child: &Child) -> Result<std::sync::Arc<Job>, Error> {
        let state = self.shared.current().await?;
        let mut job = self.shared.job_in(&child.caller, &state, child.job).await?;
        while let Some(next) = job.successor {
            job = self.shared.job_in(&child.caller, &state, next).await?;
        }
        Ok(job)
    }
}

/// The answer to the parent (compatibility §10).
fn end(job: &Job) -> Result<SpawnEnd, Error> {
    Ok(match (job.status, &job.output, &job.failure) {
        (JobStatus::Completed, Some(output), _) => SpawnEnd::Completed(output.clone()),
        (JobStatus::Completed, None, _) => return Err(Error::Internal),
        (_, _, Some(failure)) => SpawnEnd::Failed(failure.error.to_string()),
        (status, _, None) => SpawnEnd::Failed(format!("Child job {}", status.as_str())),
    })
}
