//! JOURNAL-2: the steps of a journal are numbered without a gap: folds follow each other, and the inline steps follow the last fold.

use atlas_types::{FOLDS_MAX, Journal};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    let ended = state.jobs.iter().filter_map(|job| Some((job.id, job.journal.as_ref()?)));
    for (id, journal) in state.journals.iter().map(|(id, journal)| (*id, journal)).chain(ended) {
        let grows = grows(journal);
        ensure(grows, || format!("the folds of {id} do not follow each other: {:?}", journal.folds))?;
        let folds = journal.folds.len() as u64;
        ensure(folds <= FOLDS_MAX, || format!("the journal of {id} has {folds} folds"))?;
    }
    Ok(())
}

fn grows(journal: &Journal) -> bool {
    let ends = journal.folds.iter().map(|fold| fold.upto);
    let from = std::iter::once(0).chain(ends.clone());
    from.zip(ends).all(|(from, upto)| from < upto)
}
