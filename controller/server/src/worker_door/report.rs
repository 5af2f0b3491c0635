//! From reports to requests, and from outcomes to acknowledgements.

use std::sync::Arc;

use atlas_raft::ProposeError;
use atlas_service::{Service, json};
use atlas_telemetry::ByReportResult;
use atlas_types::{
    Attempt, Command, CompleteJob, Door, FailJob, Failure, FailureKind, FencingToken, INLINE_BYTES_MAX, JobId,
    LoseLease, Namespace, NodeId, Origin, Outcome, Payload, PayloadBody, Principal, Rejection, Report, ReportKind,
    ReportResult, Request, StartJob, Usage,
};
use atlas_wire::session::ToWorker;
use serde::de::IgnoredAny;
use tonic::Status;

use super::hub::{Leases, Seat};

/// What a worker asked for in one go: proposed together, answered one by one.
#[derive(Default)]
pub(super) struct Batch {
    requests: Vec<Request>,
    /// What each request answers; none for what the worker does not wait for.
    reports: Vec<Option<Reported>>,
    /// Requests whose stream is too large to be inline, with it.
    streams: Vec<(usize, Vec<u8>)>,
    /// Requests whose output is an artifact that has to be looked at.
    artifacts: Vec<usize>,
}

/// A report that waits for its outcome.
struct Reported {
    number: u64,
    job: JobId,
    token: FencingToken,
    started: bool,
    /// The last stream event that the report takes along.
    stream: Option<(Attempt, u64)>,
}

/// Why a batch was not answered. The worker sends it again on its next stream.
#[derive(Debug)]
pub(super) enum NotAnswered {
    /// The log did not take it, or nobody knows.
    Propose(ProposeError),
    /// The log lines of an attempt could not be stored.
    Stream(atlas_service::Error),
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Adds what the worker does not wait for.
    pub(super) fn command(&mut self, command: Command) {
        self.push(Namespace::default_namespace(), command, None);
    }

    /// Adds a report. One of a lease that the worker does not hold is fenced at once: what took the lease is committed.
    pub(super) fn report(
        &mut self,
        (service, seat, leases): (&Service, &Seat, &mut Leases),
        number: u64,
        report: Report,
    ) -> Result<(), Status> {
        let Report { job, token, kind } = report;
        check(&kind)?;
        let Some(held) = leases.held(job, token) else {
            seat.out.send(ToWorker::ReportAck { number, result: ReportResult::Fenced });
            count(service, ReportResult::Fenced, 1);
            return Ok(());
        };
        let started = kind == ReportKind::Started;
        held.reported |= !started;
        let said = if started { None } else { service.streams().collect(job, held.attempt) };
        let last = said.as_ref().map(|(_, last)| (held.attempt, *last));
        let stream = said.and_then(|(lines, _)| {
            if lines.len() <= INLINE_BYTES_MAX {
                return Some(Payload::inline(&lines));
            }
            self.streams.push((self.requests.len(), lines));
            None
        });
        let command = command(&seat.node, job, token, kind, stream);
        if output(&command).is_some_and(|output| matches!(output.body, PayloadBody::Artifact { .. })) {
            self.artifacts.push(self.requests.len());
        }
        self.push(held.namespace.clone(), command, Some(Reported { number, job, token, started, stream: last }));
        Ok(())
    }

    fn push(&mut self, namespace: Namespace, command: Command, reported: Option<Reported>) {
        let principal = Principal::cluster();
        let origin = Origin { namespace, principal, door: Door::Worker, request_id: None, body_hash: 0, trace: None };
        self.requests.push(Request { origin, command });
        self.reports.push(reported);
    }

    /// Proposes everything and returns the acknowledgements.
    pub(super) async fn propose(mut self, service: Service, node: NodeId) -> Result<Vec<ToWorker>, NotAnswered> {
        self.check_artifacts(&service, &node).await;
        self.store_streams(&service).await?;
        let namespaces: Vec<_> = self.requests.iter().map(|request| request.origin.namespace.clone()).collect();
        let outcomes = service.handle().propose(self.requests).await.map_err(NotAnswered::Propose)?;
        let mut answers = Answers::default();
        let mut unrecorded = Self::default();
        for ((reported, outcome), namespace) in self.reports.into_iter().zip(outcomes).zip(namespaces) {
            let Some(reported) = reported else { continue };
            match result(&reported, outcome) {
                Ok(result) => answers.push(&reported, result),
                Err(rejection) => {
                    tracing::error!(job = %reported.job, %rejection, "a report could not be recorded");
                    // Without its lines: they may be what could not be recorded.
                    let command = unrecordable(&node, &reported, &rejection.to_string(), None);
                    unrecorded.push(namespace, command, Some(reported));
                }
            }
        }
        if !unrecorded.is_empty() {
            let outcomes = service.handle().propose(unrecorded.requests).await.map_err(NotAnswered::Propose)?;
            for (reported, outcome) in unrecorded.reports.into_iter().flatten().zip(outcomes) {
                // Whatever came of it: sending it again would not change it.
                answers.push(&reported, outcome.map_or(ReportResult::Fenced, |_| ReportResult::Applied));
            }
        }
        count(&service, ReportResult::Applied, answers.applied);
        count(&service, ReportResult::Fenced, answers.fenced);
        Ok(answers.acks)
    }

    /// Puts streams that are too large to be inline where their reports can name them.
    async fn store_streams(&mut self, service: &Service) -> Result<(), NotAnswered> {
        for (index, lines) in std::mem::take(&mut self.streams) {
            let payload = service.payload(lines.into()).await.map_err(NotAnswered::Stream)?;
            let command = self.requests.get_mut(index).map(|request| &mut request.command);
            // A lost lease takes no lines along: the next attempt has its own.
            if let Some(Command::CompleteJob(CompleteJob { stream, .. }) | Command::FailJob(FailJob { stream, .. })) =
                command
            {
                *stream = Some(payload);
            }
        }
        Ok(())
    }

    /// An output that is not here, or is no JSON, would end a job with a result that nobody can read: it fails instead.
    async fn check_artifacts(&mut self, service: &Service, node: &NodeId) {
        for index in std::mem::take(&mut self.artifacts) {
            let (Some(request), Some(Some(reported))) = (self.requests.get_mut(index), self.reports.get(index)) else {
                continue;
            };
            let Some(PayloadBody::Artifact { digest, size_bytes }) =
                output(&request.command).map(|output| &output.body)
            else {
                continue;
            };
            let size_bytes = *size_bytes;
            let reason = match service.artifacts().read(*digest).await {
                Ok(bytes) if bytes.len() as u64 == size_bytes && is_json(&bytes) => continue,
                Ok(_) => "the output is not the JSON text that was announced".to_owned(),
                Err(error) => error.to_string(),
            };
            let stream = match &mut request.command {
                Command::CompleteJob(command) => command.stream.take(),
                Command::FailJob(command) => command.stream.take(),
                _ => None,
            };
            request.command = unrecordable(node, reported, &reason, stream);
        }
    }
}

/// What a worker is told of its reports.
#[derive(Default)]
struct Answers {
    acks: Vec<ToWorker>,
    applied: u64,
    fenced: u64,
}

impl Answers {
    fn push(&mut self, reported: &Reported, result: ReportResult) {
        let Reported { number, job, stream, .. } = *reported;
        self.acks.push(ToWorker::ReportAck { number, result });
        match result {
            ReportResult::Fenced => self.fenced += 1,
            ReportResult::Applied => {
                self.applied += 1;
                let stored = stream.map(|(attempt, number)| ToWorker::StreamAck { job, attempt, number });
                self.acks.extend(stored);
            }
        }
    }
}

/// What to answer; an error for a refusal that does not come from an outdated lease.
fn result(reported: &Reported, outcome: Result<Outcome, Rejection>) -> Result<ReportResult, Rejection> {
    match outcome {
        // Cancelled before it started: it ended, and must not run.
        Ok(Outcome::Ended { .. }) if reported.started => Ok(ReportResult::Fenced),
        Ok(_) => Ok(ReportResult::Applied),
        Err(
            Rejection::Fenced
            | Rejection::UnknownJob { .. }
            | Rejection::WrongStatus { .. }
            | Rejection::UnknownNode { .. }
            | Rejection::NodeUnavailable,
        ) => Ok(ReportResult::Fenced),
        Err(rejection) => Err(rejection),
    }
}

fn command(node: &NodeId, job: JobId, token: FencingToken, kind: ReportKind, stream: Option<Payload>) -> Command {
    let node = node.clone();
    match kind {
        ReportKind::Started => Command::StartJob(StartJob { job, node, token }),
        ReportKind::Completed { output, usage, metadata } => {
            Command::CompleteJob(CompleteJob { job, node, token, output, usage, metadata, stream })
        }
        // Whether it was cancelled the state knows.
        ReportKind::Failed { failure, output, usage, metadata, cancelled: _ } => {
            Command::FailJob(FailJob { job, node, token, failure, output, usage, metadata, stream })
        }
        ReportKind::NotHeld => Command::LoseLease(LoseLease { job, token }),
    }
}

/// Ends a job whose report cannot be recorded: otherwise it would hold its lease for ever.
fn unrecordable(node: &NodeId, reported: &Reported, reason: &str, stream: Option<Payload>) -> Command {
    let error = Arc::from(format!("the result could not be recorded: {reason}"));
    Command::FailJob(FailJob {
        job: reported.job,
        node: node.clone(),
        token: reported.token,
        failure: Failure { kind: FailureKind::Internal, error },
        output: None,
        usage: Usage::default(),
        metadata: None,
        stream,
    })
}

fn output(command: &Command) -> Option<&Payload> {
    match command {
        Command::CompleteJob(command) => Some(&command.output),
        Command::FailJob(command) => command.output.as_ref(),
        _ => None,
    }
}

/// Clients get outputs and metadata as parts of JSON documents, so they must be JSON.
fn check(kind: &ReportKind) -> Result<(), Status> {
    let (output, metadata) = match kind {
        ReportKind::Completed { output, metadata, .. } => (Some(output), metadata),
        ReportKind::Failed { output, metadata, .. } => (output.as_ref(), metadata),
        ReportKind::Started | ReportKind::NotHeld => return Ok(()),
    };
    if let Some(PayloadBody::Inline(bytes)) = output.map(|output| &output.body)
        && !is_json(bytes)
    {
        return Err(Status::invalid_argument("field \"report.output\" is not JSON, or nests too deep"));
    }
    let is_object = |bytes: &[u8]| bytes.trim_ascii_start().starts_with(b"{") && is_json(bytes);
    if metadata.as_ref().is_some_and(|metadata| !is_object(metadata)) {
        return Err(Status::invalid_argument("field \"report.metadata\" is not a JSON object, or nests too deep"));
    }
    Ok(())
}

fn is_json(bytes: &[u8]) -> bool {
    !json::too_deep(bytes) && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

fn count(service: &Service, result: ReportResult, reports: u64) {
    if reports == 0 {
        return;
    }
    let atlas_report_result = match result {
        ReportResult::Applied => atlas_telemetry::ReportResult::applied,
        ReportResult::Fenced => atlas_telemetry::ReportResult::fenced,
    };
    service.metrics().reports.get_or_create(&ByReportResult { atlas_report_result }).inc_by(reports);
}
