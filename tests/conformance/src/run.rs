//! Runs rows, several at once, and prints their results in order.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::bench::Bench;
use crate::kind;
use crate::result::{RowResult, Tally};
use crate::row::Row;

/// Runs `rows`, up to `at_once` in parallel, and passes each verdict to `tell` in the order of the rows.
pub fn run(bench: &Bench, rows: &[Row], at_once: usize, tell: &(dyn Fn(&Row, &RowResult) + Sync)) -> Tally {
    let (next, lane) = (Mutex::new(0), Mutex::new(()));
    let told = Mutex::new(Printed { verdicts: vec![None; rows.len()], count: 0, tally: Tally::default() });
    let work = || {
        while let Some((index, row, turn)) = take(&next, &lane, rows) {
            let verdict = kind::judge(row, bench);
            drop(turn);
            // A panic of another thread ends the whole run, so a poisoned lock can be ignored.
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.verdicts[index] = Some(verdict);
            told.tell(rows, tell);
        }
    };
    thread::scope(|scope| {
        for _ in 1..at_once.clamp(1, rows.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    told.into_inner().unwrap_or_else(PoisonError::into_inner).tally
}

/// The next row. A row with effects on later rows also holds the `lane` lock while it runs, so that such rows run one
/// by one and in order.
fn take<'a>(
    next: &Mutex<usize>,
    lane: &'a Mutex<()>,
    rows: &'a [Row],
) -> Option<(usize, &'a Row, Option<MutexGuard<'a, ()>>)> {
    let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
    let (index, row) = (*next, rows.get(*next)?);
    *next += 1;
    let turn = kind::in_order(row).then(|| lane.lock().unwrap_or_else(PoisonError::into_inner));
    Some((index, row, turn))
}

struct Printed {
    verdicts: Vec<Option<RowResult>>,
    count: usize,
    tally: Tally,
}

impl Printed {
    fn tell(&mut self, rows: &[Row], tell: &(dyn Fn(&Row, &RowResult) + Sync)) {
        while let (Some(row), Some(Some(verdict))) = (rows.get(self.count), self.verdicts.get(self.count)) {
            tell(row, verdict);
            self.tally.add(verdict);
            self.count += 1;
        }
    }
}
