//! The leader's side of the workers' streams over a `Handle`, a minimal version of the controller's own door: frames of
//! workers become requests, applied changes are sent to workers, and a worker that may have missed something must send
//! a new hello.

use std::io;
use std::sync::Arc;

use atlas_env::Env;
use atlas_raft::{AppliedBatch, Handle, Leadership};
use atlas_sim::workload;
use atlas_state::State;
use atlas_types::{
    BootId, Command, Event, FencingToken, Inventory, Job, JobChange, JobStatus, LoseNode, NodeEpoch, NodeHealth,
    NodeId, Outcome, Reason, RegisterNode, Report, ReportResult,
};
use tokio::sync::{broadcast, mpsc};

use crate::Bug;
use crate::cluster::Cluster;
use crate::frames::{Frame, PORT, Reader, ToLeader, ToWorker, split};

/// Serves workers at a member until the member ends.
pub(crate) async fn serve(cluster: Cluster, handle: Handle, env: Env) -> io::Result<()> {
    let any = (std::net::Ipv4Addr::UNSPECIFIED, PORT).into();
    let listener = env.net.listen(any).await?;
    loop {
        let connection = listener.accept().await?;
        let (reader, writer) = split(&cluster, connection);
        let (out, frames) = mpsc::unbounded_channel();
        let door = Session { cluster: cluster.clone(), handle: handle.clone(), env: env.clone(), out };
        env.spawn("worker-writer", writer.run(frames));
        env.spawn("worker-session", door.run(reader));
    }
}

/// One worker's stream.
#[derive(Clone)]
struct Session {
    cluster: Cluster,
    handle: Handle,
    env: Env,
    out: mpsc::UnboundedSender<Frame>,
}

impl Session {
    /// Runs from the hello to the end. The stream ends when this returns.
    async fn run(self, mut reader: Reader) {
        let Some(Frame::ToLeader(ToLeader::Hello { node, boot, inventory, held })) = reader.next().await else {
            return;
        };
        let Some(epoch) = self.admit(&node, BootId(boot), *inventory).await else { return };
        let mut batches = self.handle.subscribe();
        let state = self.handle.applied();
        if !is_current(&state, &node, epoch) {
            return;
        }
        self.welcome(&state, (&node, epoch), &held);
        let from = state.seq();
        let mut before = state;
        let mut leadership = self.handle.leadership();
        loop {
            tokio::select! {
                biased;
                changed = leadership.changed() => {
                    if changed.is_err() || !leads(&self.handle) {
                        break;
                    }
                }
                batch = batches.recv() => match batch {
                    Ok(batch) if batch.seq <= from => {}
                    Ok(batch) => {
                        if !self.tell(&before, &batch, &node, epoch) {
                            break;
                        }
                        before = batch.state.clone();
                    }
                    Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed) => break,
                },
                frame = reader.next() => match frame {
                    Some(Frame::ToLeader(ToLeader::Renew(number))) => self.renew(&node, epoch, number),
                    Some(Frame::ToLeader(ToLeader::Report { number, report })) => self.report(&node, number, &report),
                    _ => break,
                },
            }
        }
        if self.cluster.has(Bug::LossByBrokenStream) {
            let request = workload::request(Command::LoseNode(LoseNode { node, epoch }));
            let _ = self.handle.propose(vec![request]).await;
        }
    }

    /// Registers the worker's process, unless the state already has this registration.
    async fn admit(&self, node: &NodeId, boot: BootId, inventory: Inventory) -> Option<NodeEpoch> {
        if !leads(&self.handle) {
            return None;
        }
        let state = self.handle.read().await.ok()?;
        let known = state.node(node).map(|known| &*known.node);
        let epoch = match known.filter(|known| known.boot_id == boot && known.health == NodeHealth::Ready) {
            Some(known) => {
                self.cluster.count("sessions resumed");
                known.epoch
            }
            None => {
                let register = RegisterNode { node: node.clone(), boot_id: boot, inventory };
                let request = workload::request(Command::RegisterNode(register));
                match self.handle.propose_here(vec![request]).await.ok()?.pop()? {
                    Ok(Outcome::NodeRegistered { epoch }) => epoch,
                    _ => return None,
                }
            }
        };
        if !leads(&self.handle) {
            return None;
        }
        self.handle.session_hello(node.clone(), epoch, 0).await.ok()?;
        Some(epoch)
    }

    /// Sends the leases that the leader knows. The worker compares them with its own.
    fn welcome(&self, state: &State, (node, epoch): (&NodeId, NodeEpoch), held: &[FencingToken]) {
        let known = |token| held.contains(&token) || !self.cluster.has(Bug::LostGrantForgotten);
        let leases = state.leases_of(node).filter(|lease| known(lease.token));
        let leases = leases.filter_map(|lease| self.cluster.assignment(state, lease.job)).collect();
        let ttl = self.cluster.options().session_ttl;
        let ttl = if self.cluster.has(Bug::DeafWorker) { 10 * ttl } else { ttl };
        self.send(ToWorker::Welcome { epoch, ttl, seq: state.seq(), leases });
        // A cancel that was sent on an earlier stream may be lost.
        for lease in state.leases_of(node) {
            if state.job(lease.job).is_some_and(|job| job.reason == Reason::Cancelling) {
                self.send(ToWorker::Cancel(lease.token));
            }
        }
    }

    /// Sends the worker the changes of an entry. False if its session has ended.
    fn tell(&self, before: &State, batch: &AppliedBatch, node: &NodeId, epoch: NodeEpoch) -> bool {
        for record in batch.events.iter() {
            if let Event::Job { change, job, .. } = &record.event {
                self.tell_of_job(before, &batch.state, *change, job, node);
            }
        }
        // A batch without events is a snapshot, and its changes are unknown.
        !batch.events.is_empty() && is_current(&batch.state, node, epoch)
    }

    fn tell_of_job(&self, before: &State, state: &State, change: JobChange, job: &Arc<Job>, node: &NodeId) {
        let old = before.lease(job.id).filter(|old| job.lease.as_ref().is_none_or(|lease| lease.token != old.token));
        if let Some(old) = old.filter(|old| old.node == *node) {
            self.send(ToWorker::Revoke(old.token));
        }
        let Some(lease) = job.lease.as_ref().filter(|lease| lease.node == *node) else { return };
        match change {
            JobChange::Granted => {
                // The entry that granted the lease may also have ended it.
                let assignment = self.cluster.assignment(state, job.id);
                if let Some(assignment) = assignment.filter(|assignment| assignment.token == lease.token) {
                    self.send(ToWorker::Grant(Box::new(assignment)));
                }
            }
            JobChange::Cancelling => self.send(ToWorker::Cancel(lease.token)),
            _ => {}
        }
    }

    fn renew(&self, node: &NodeId, epoch: NodeEpoch, number: u64) {
        let (session, node) = (self.clone(), node.clone());
        if self.cluster.has(Bug::RenewalWithoutQuorum) {
            session.send(ToWorker::RenewAck(number));
        }
        self.env.spawn("renew", async move {
            if let Ok(number) = session.handle.session_renew(node, epoch, number).await {
                session.send(ToWorker::RenewAck(number));
            }
        });
    }

    fn report(&self, node: &NodeId, number: u64, report: &Report) {
        let Report { job, mut token, kind } = report.clone();
        let mut node = node.clone();
        if self.cluster.has(Bug::NoFencing)
            && let Some(lease) = self.handle.applied().lease(job)
        {
            (token, node) = (lease.token, lease.node.clone());
        }
        let request = workload::request(workload::report(job, node, token, kind));
        let session = self.clone();
        if self.cluster.has(Bug::ReportAckedEarly) {
            session.send(ToWorker::ReportAck { number, result: ReportResult::Applied });
        }
        self.env.spawn("report", async move {
            // Without an answer the worker keeps the report and sends it again on its next stream.
            let Ok(mut answers) = session.handle.propose_here(vec![request]).await else { return };
            let Some(outcome) = answers.pop() else { return };
            // The start found its job cancelled and ended it, so there is nothing to run.
            let over = matches!(outcome, Ok(Outcome::Ended { status: JobStatus::Cancelled, .. }));
            let result = if outcome.is_ok() && !over { ReportResult::Applied } else { ReportResult::Fenced };
            if result == ReportResult::Fenced && !over {
                session.cluster.count("fenced reports");
            }
            session.send(ToWorker::ReportAck { number, result });
        });
    }

    fn send(&self, frame: ToWorker) {
        // If the writer has ended, the stream has closed as well.
        let _ = self.out.send(Frame::ToWorker(frame));
    }
}

fn leads(handle: &Handle) -> bool {
    matches!(*handle.leadership().borrow(), Leadership::Leader { .. })
}

fn is_current(state: &State, node: &NodeId, epoch: NodeEpoch) -> bool {
    state.node(node).is_some_and(|found| found.node.epoch == epoch && found.node.health == NodeHealth::Ready)
}
