//! Runs rows, several at once, and tells their verdicts in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::bench::Bench;
use crate::kind;
use crate::row::Row;
use crate::verdict::{Tally, Verdict};

/// Runs `rows`, `at_once` at the same time, and tells each verdict as soon as those before it are told.
pub fn run(bench: &Bench, rows: &[Row], at_once: usize, tell: &(dyn Fn(&Row, &Verdict) + Sync)) -> Tally {
    let next = AtomicUsize::new(0);
    let told = Mutex::new(Told { verdicts: vec![None; rows.len()], count: 0, tally: Tally::default() });
    let work = || {
        while let Some((index, row)) = take(&next, rows) {
            let verdict = kind::judge(row, bench);
            // A panic of another thread ends the whole run; what it left is not read.
            let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
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
    told.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).tally
}

fn take<'a>(next: &AtomicUsize, rows: &'a [Row]) -> Option<(usize, &'a Row)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    rows.get(index).map(|row| (index, row))
}

struct Told {
    verdicts: Vec<Option<Verdict>>,
    count: usize,
    tally: Tally,
}

impl Told {
    fn tell(&mut self, rows: &[Row], tell: &(dyn Fn(&Row, &Verdict) + Sync)) {
        while let (Some(row), Some(Some(verdict))) = (rows.get(self.count), self.verdicts.get(self.count)) {
            tell(row, verdict);
            self.tally.add(verdict);
            self.count += 1;
        }
    }
}
