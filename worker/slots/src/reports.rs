//! Reports: numbered, kept until answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{FencingToken, Report};

/// The reports that the leader has not answered. Numbers go on over reconnects.
#[derive(Debug)]
pub(crate) struct Reports {
    next: u64,
    waiting: BTreeMap<u64, Arc<Report>>,
}

impl Reports {
    pub(crate) fn new() -> Self {
        Self { next: 1, waiting: BTreeMap::new() }
    }

    pub(crate) fn push(&mut self, report: Report) -> (u64, Arc<Report>) {
        let number = self.next;
        self.next += 1;
        let report = Arc::new(report);
        self.waiting.insert(number, Arc::clone(&report));
        (number, report)
    }

    pub(crate) fn acknowledge(&mut self, number: u64) -> Option<Arc<Report>> {
        self.waiting.remove(&number)
    }

    /// Takes back a report that nothing follows from any more. It may have been sent.
    pub(crate) fn withdraw(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Arc<Report>)> {
        self.waiting.iter().map(|(&number, report)| (number, report))
    }

    pub(crate) fn mentions(&self, token: FencingToken) -> bool {
        self.waiting.values().any(|report| report.token == token)
    }
}
