//! What must hold, one file a promise; the numbers are those of the list of invariants that Atlas promises.

mod b01;
mod b02;
mod b04;
mod b05;
mod b06;
mod b07;
mod b08;
mod b09;
mod b12;
mod b17;
mod b18;
mod b19;
mod b20;
mod b22;
mod b29;
mod b30;
mod b32;
mod b36;
mod b38;
mod b39;
mod b40;
mod b42;
mod leaders;

use crate::Options;
use crate::oracle::Facts;
use crate::seen::Seen;

/// A promise, and what was seen of it so far.
pub(crate) trait Invariant {
    /// Its number and its words.
    fn name(&self) -> &'static str;

    /// Looks at one thing that was seen.
    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String>;

    /// Looks at the whole, once everything has come to rest.
    fn finish(&mut self, _facts: &mut Facts) -> Result<(), String> {
        Ok(())
    }
}

/// All of them, before anything has happened.
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
        Box::<b12::FirstComeFirstServed>::default(),
        Box::new(b17::ASessionLivesItsTime::of(options)),
        Box::<b18::NeverTwoAtATime>::default(),
        Box::<b19::OneProcessANode>::default(),
        Box::new(b20::NothingIsOversubscribed::of(options)),
        Box::<b22::NothingForTheDrained>::default(),
        Box::new(b29::Linearizable::of(options)),
        Box::<b30::NeverBack>::default(),
        Box::<b32::StreamsHaveNoGaps>::default(),
        Box::<b36::AFailedSyncIsTheEnd>::default(),
        Box::<b38::AFullDiskIsNoEnd>::default(),
        Box::<b42::TheRightOnesVote>::default(),
    ]
}

/// Whether a member stopped since its vote found no room on the disk, twice in one segment. The caller of a real member's log waits
/// for room then; here no time would pass while it waits, so that the log calls it an error.
fn vote_had_no_room(reason: &str) -> bool {
    reason.contains("Write Vote") && reason.contains("has no room for the log")
}
