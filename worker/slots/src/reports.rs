//! Reports: numbered, kept until answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{Failure, FailureKind, FencingToken, Report, ReportKind, Usage};

use crate::attempts::Stop;

/// The reports that the leader has not answered. Numbers go on over reconnects.
#[derive(Debug)]
pub(crate) struct Reports {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
}

/// A report that the leader has not answered.
#[derive(Debug)]
struct Waiting {
    report: Arc<Report>,
    disk: Disk,
}

/// Where a report stands with the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    /// It is not written: its attempt may run again.
    NotNeeded,
    /// It is being written and must not be sent yet.
    Saving,
    /// It is written, or could not be.
    Saved,
}

impl Reports {
    pub(crate) fn new() -> Self {
        Self { next: 1, waiting: BTreeMap::new() }
    }

    /// The reports that an earlier process saved and had no answer to.
    pub(crate) fn saved(reports: impl IntoIterator<Item = (u64, Report)>) -> Self {
        let waiting = |report| Waiting { report: Arc::new(report), disk: Disk::Saved };
        let waiting: BTreeMap<_, _> = reports.into_iter().map(|(number, report)| (number, waiting(report))).collect();
        let next = waiting.last_key_value().map_or(1, |(&number, _)| number.saturating_add(1));
        Self { next, waiting }
    }

    /// Numbers and keeps a report; with `save` it is not to be sent before [`Self::set_saved`].
    pub(crate) fn push(&mut self, report: Report, save: bool) -> (u64, Arc<Report>) {
        let number = self.next;
        self.next += 1;
        let report = Arc::new(report);
        let disk = if save { Disk::Saving } else { Disk::NotNeeded };
        self.waiting.insert(number, Waiting { report: Arc::clone(&report), disk });
        (number, report)
    }

    /// Notes that a report is on disk, and returns it if it was waited for.
    pub(crate) fn set_saved(&mut self, number: u64) -> Option<Arc<Report>> {
        let waiting = self.waiting.get_mut(&number).filter(|waiting| waiting.disk == Disk::Saving)?;
        waiting.disk = Disk::Saved;
        Some(Arc::clone(&waiting.report))
    }

    /// Forgets an answered report; true if it is on disk, none if it is not known.
    pub(crate) fn acknowledge(&mut self, number: u64) -> Option<bool> {
        self.waiting.remove(&number).map(|waiting| waiting.disk == Disk::Saved)
    }

    /// Takes back a report that nothing follows from any more. It may have been sent.
    pub(crate) fn withdraw(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The reports that may be sent, in order.
    pub(crate) fn to_send(&self) -> impl Iterator<Item = (u64, &Arc<Report>)> {
        let ready = self.waiting.iter().filter(|(_, waiting)| waiting.disk != Disk::Saving);
        ready.map(|(&number, waiting)| (number, &waiting.report))
    }

    /// The numbers of all that wait.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.waiting.keys().copied().collect()
    }

    pub(crate) fn mentions(&self, token: FencingToken) -> bool {
        self.waiting.values().any(|waiting| waiting.report.token == token)
    }
}

/// The report of an ended attempt: a stop that was asked for decides, and the idle slots are counted in.
pub(crate) fn finished(kind: ReportKind, stop: Option<Stop>, idle: u32) -> ReportKind {
    let with_idle = |usage: Usage| Usage { idle, ..usage };
    match (kind, stop) {
        (ReportKind::Completed { usage, .. } | ReportKind::Failed { usage, .. }, Some(Stop::Cancelled)) => {
            cancelled_report(with_idle(usage))
        }
        // What was done before the stop came is done.
        (ReportKind::Completed { output, usage, metadata }, _) => {
            ReportKind::Completed { output, usage: with_idle(usage), metadata }
        }
        (ReportKind::Failed { .. }, Some(Stop::Abandoned)) => ReportKind::NotHeld,
        (ReportKind::Failed { failure, output, usage, metadata, cancelled }, None) => {
            ReportKind::Failed { failure, output, usage: with_idle(usage), metadata, cancelled }
        }
        (other, _) => other,
    }
}

/// The report of an attempt that was stopped after a cancel.
pub(crate) fn cancelled_report(usage: Usage) -> ReportKind {
    let failure = Failure { kind: FailureKind::Agent, error: "cancelled".into() };
    ReportKind::Failed { failure, output: None, usage, metadata: None, cancelled: true }
}
