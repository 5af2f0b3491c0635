//! Clients: they submit with a request id, repeat the request while the outcome is unknown, read, and cancel.

use std::time::Duration;

use atlas_env::Env;
use atlas_sim::Rng;
use atlas_sim::workload::{self, Agent};
use atlas_types::{CancelJob, Command, JobId, Outcome, Rejection, Request, Seq, level};

use crate::cluster::Cluster;
use crate::machine;
use crate::seen::Seen;
use crate::wire::{Answer, Ask, ask};

/// One client.
struct Client {
    cluster: Cluster,
    index: usize,
    env: Env,
    rng: Rng,
    patience: Duration,
    jobs: Vec<JobId>,
    /// The newest state that the client has seen.
    seen: Seq,
}

/// Runs until the client has performed all operations of its options.
pub(crate) async fn run(cluster: Cluster, index: usize) -> turmoil::Result {
    let env = cluster.env(&format!("u{}", index + 1));
    let rng = Rng::new(cluster.draw());
    let options = cluster.options();
    let mut client = Client { cluster, index, env, rng, patience: options.patience, jobs: Vec::new(), seen: Seq(0) };
    client.set_up(options.jobs_ended_kept).await;
    let mut left = options.jobs_per_client;
    while left > 0 {
        if !client.jobs.is_empty() && client.rng.chance(550) {
            client.look().await;
        } else {
            left -= 1;
            client.submit().await;
        }
        client.pause(600).await;
    }
    client.cluster.client_done();
    Ok(())
}

impl Client {
    async fn pause(&mut self, max: u64) {
        let millis = self.rng.range(1, max);
        self.env.clock.sleep(Duration::from_millis(millis)).await;
    }

    /// The first client registers the agents; the others wait for that.
    async fn set_up(&mut self, jobs_ended_kept: u64) {
        if self.index == 0 {
            // Families are tested in the other simulation, because these workers do not support spawning.
            let known = |request: &Request| request.command.level() < level::SPAWN;
            for request in workload::setup(jobs_ended_kept).into_iter().filter(known) {
                let _ = self.change(request).await;
            }
            self.cluster.set_up();
        }
        while !self.cluster.is_set_up() {
            self.pause(100).await;
        }
    }

    async fn submit(&mut self) {
        // Limited to the range of the number in an input.
        let (op, id) = (self.rng.next() >> 16, JobId(self.rng.next()));
        let agent = self.rng.pick(&Agent::LONERS);
        let priority = self.rng.pick(&[0, 0, 0, 5, -1]);
        if let Ok(Outcome::Submitted { job, repeated }) = self.change(workload::submit(op, id, agent, priority)).await {
            self.cluster.count("acknowledged submissions");
            if repeated {
                self.cluster.count("repeated submissions");
            }
            self.jobs.push(job);
        }
    }

    async fn look(&mut self) {
        // The latest job is read most often, because members differ most in it.
        let any = self.rng.pick(&self.jobs);
        let latest = self.jobs.last().copied().unwrap_or(any);
        let job = if self.rng.chance(600) { latest } else { any };
        match self.rng.below(10) {
            0 | 1 => {
                let command = Command::CancelJob(CancelJob { job, running: true });
                let name = format!("cancel-{}-{}", job.0, self.rng.next());
                let request = workload::named(&name, command);
                if matches!(self.change(request).await, Ok(Outcome::Cancelled { accepted: true })) {
                    self.cluster.count("cancels accepted");
                }
            }
            2..=4 => self.read(Ask::Stale(job, self.seen)).await,
            5 => self.read(Ask::Wait(latest)).await,
            _ => self.read(Ask::Read(job)).await,
        }
    }

    /// Makes a change, and repeats the request with the same request id until the outcome is known.
    async fn change(&mut self, request: Request) -> Result<Outcome, Rejection> {
        let called = machine::now();
        let ask = Ask::Change(Box::new(request));
        loop {
            let answer = self.ask(ask.clone()).await;
            match answer {
                // The queue is full. The operation counts as not made.
                Some(Answer::Outcome(Err(Rejection::QueueFull { .. }))) => self.cluster.count("refused submissions"),
                Some(Answer::Outcome(outcome)) => {
                    let answer = Answer::Outcome(outcome.clone());
                    self.cluster.see(Seen::Answered { client: self.index, ask, called, answer });
                    return outcome;
                }
                Some(Answer::NotLeader | Answer::Job { .. }) => {}
                Some(Answer::Unknown) | None => {
                    self.cluster.count("unknown outcomes");
                    self.cluster.see(Seen::Unanswered { client: self.index, ask: ask.clone(), called });
                }
            }
            self.pause(300).await;
        }
    }

    async fn read(&mut self, ask: Ask) {
        let called = machine::now();
        if let Some(answer @ Answer::Job { seq, .. }) = self.ask(ask.clone()).await {
            self.seen = self.seen.max(seq);
            self.cluster.count("reads");
            self.cluster.see(Seen::Answered { client: self.index, ask, called, answer });
        }
    }

    async fn ask(&mut self, question: Ask) -> Option<Answer> {
        let member = self.rng.below(self.cluster.options().members as u64) as usize;
        ask(&self.cluster, &self.env, member, question, self.patience).await
    }
}
