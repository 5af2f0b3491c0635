//! Tool calls of a round to MCP servers.

use std::sync::Arc;

use atlas_model::ToolCall as Asked;
use atlas_turn::record::{server_counts, server_intent};
use atlas_turn::{Key, ToolReturn};
use atlas_types::{StepKey, StepKind};
use serde::Serialize;

use super::super::drive::Driver;
use super::super::fault::Fault;
use super::Sources;
use crate::journal::{JournalError, made};
use crate::provider::mcp::Servers;
use crate::provider::round::servers::{Counted, Planned, Round, ServerRound};

/// A recorded round above this is in an artifact, which nobody reads for a metric: its calls are then recorded once more, by themselves.
const COUNTED_BYTES_MAX: usize = 16 << 10;

#[derive(Serialize)]
struct Summary<'a> {
    mcp: &'a [Counted],
}

impl Driver<'_, '_> {
    /// Calls of MCP servers, as one step after the intent.
    pub(super) async fn remote(
        &mut self,
        key: Key,
        calls: &[Asked],
        (sources, servers): (&Sources, &Servers),
        parallel: usize,
    ) -> Result<Vec<ToolReturn>, Fault> {
        let planned: Vec<Planned<'_>> = calls.iter().filter_map(|call| Planned::of(call, sources, servers)).collect();
        let (clock, assignment) = (Arc::clone(&self.control.env.clock), &self.work.assignment);
        let (attempt, limit) = (assignment.attempt.0, assignment.execution_timeout.as_duration());
        let round = ServerRound { servers, clock: &*clock, attempt, limit, parallel };
        let keys = (StepKey(server_intent(key).0), StepKey(key.0));
        let (Round { mcp, returned }, bytes) =
            round.calls(&mut self.journal, keys, &planned, &mut *self.control).await?;
        if bytes > COUNTED_BYTES_MAX {
            let make = || async { made(&Summary { mcp: &mcp }) };
            let counted = self.journal.step(StepKind::Effect, StepKey(server_counts(key).0), make).await;
            counted.map(drop).map_err(|error: JournalError| Fault::from(error))?;
        }
        Ok(returned)
    }
}
