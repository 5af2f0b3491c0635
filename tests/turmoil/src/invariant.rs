//! Invariants, one file per promise; the numbers are the ids in docs/internals/promises.md.

mod b01;
mod b02;
mod b04;
mod b05;
mod b06;
mod b07;
mod b08;
mod b09;
mod b10;
mod b12;
mod b17;
mod b18;
mod b19;
mod b20;
mod b21;
mod b22;
mod b29;
mod b30;
mod b31;
mod b32;
mod b35;
mod b36;
mod b37;
mod b38;
mod b39;
mod b40;
mod b41;
mod b42;
mod leaders;

use std::sync::Arc;

use atlas_state::State;
use atlas_types::{Job, Namespace};

use crate::Options;
use crate::oracle::Facts;
use crate::seen::Seen;

/// The fraction of a time by which two clocks may differ: each runs at most one percent too fast or too slow.
const APART: u32 = 50;

/// A promise and the observations about it.
pub(crate) trait Invariant {
    /// The id and the text of the promise.
    fn name(&self) -> &'static str;

    /// Checks one observation.
    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String>;

    /// Checks the final state, once the cluster is at rest.
    fn finish(&mut self, _facts: &mut Facts) -> Result<(), String> {
        Ok(())
    }
}

/// All invariants in their initial state.
pub(crate) fn all(options: &Options) -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(b40::ReplicasAgree),
        Box::<b39::SnapshotIsTheLog>::default(),
        Box::<leaders::OneLeaderATerm>::default(),
        Box::<b01::NoJobIsLost>::default(),
        Box::<b02::OneJobASubmission>::default(),
        Box::<b04::EndsAreFinal>::default(),
        Box::<b05::EdgesAreClosed>::default(),
        Box::<b06::AttemptsAreBounded>::default(),
        Box::<b07::OnceIsOnce>::default(),
        Box::<b08::OneAttemptCounts>::default(),
        Box::<b09::CancelWinsOrLoses>::default(),
        Box::new(b10::TimeoutsTakeTheirTime),
        Box::<b12::FirstComeFirstServed>::default(),
        Box::new(b17::ASessionLivesItsTime::of(options)),
        Box::<b18::NeverTwoAtATime>::default(),
        Box::<b19::OneProcessANode>::default(),
        Box::new(b20::NothingIsOversubscribed::of(options)),
        Box::<b21::ALostGrantComesAgain>::default(),
        Box::<b22::NothingForTheDrained>::default(),
        Box::new(b29::Linearizable::of(options)),
        Box::<b30::NeverBack>::default(),
        Box::<b31::AWaitEndsWithTheWhole>::default(),
        Box::<b32::StreamsHaveNoGaps>::default(),
        Box::new(b35::OnAMajorityOfDisks::of(options)),
        Box::<b36::AFailedSyncIsTheEnd>::default(),
        Box::<b37::DamageIsFound>::default(),
        Box::<b38::AFullDiskIsNoEnd>::default(),
        Box::<b41::ApplyingAgainIsTheSame>::default(),
        Box::<b42::TheRightOnesVote>::default(),
    ]
}

/// The jobs in a state, ended or not.
pub(crate) fn every_job(state: &State) -> impl Iterator<Item = &Arc<Job>> {
    state.jobs(&Namespace::default_namespace(), None, None)
}

/// A complete state for a byte-by-byte comparison.
fn image(state: &State) -> Result<Vec<u8>, String> {
    let mut image = Vec::new();
    atlas_format::encode_snapshot(&state.to_image(), &mut image).map_err(|error| error.to_string())?;
    Ok(image)
}

/// True if a member stopped or did not start because the disk was too full to write a vote or a truncation of its log.
/// With a real log the caller would wait for space. In the simulation no time would pass, so the log returns an error,
/// and the member is restarted until there is space. Entries wait here as well.
pub(crate) fn had_no_room_at_once(reason: &str) -> bool {
    reason.contains("no disk space for the log")
}
