//! Which texts are asked about together, and which the model refuses.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use atlas_api::catalogue;
use atlas_bases::VectorGap;
use atlas_env::chain;
use atlas_types::EventSeq;

use crate::Error;

/// Most texts of one job, and most bytes of them.
const TEXTS_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 512 << 10;
/// After so many failures in a row nothing more is asked: it is not one text that fails.
const FAILURES_MAX: usize = 16;
/// How long a text is left alone that the model has refused.
const REFUSED_FOR: Duration = Duration::from_secs(3_600);

/// Texts that are asked about, a batch for each job. One that fails is halved until it is known which text the model refuses: the others get their
/// vectors all the same.
pub(super) struct Batches {
    waiting: VecDeque<Vec<usize>>,
    /// Texts that failed alone.
    alone: Vec<usize>,
    has_succeeded: bool,
    /// Failures since something succeeded.
    failures: usize,
    /// The first failure.
    error: Option<Error>,
    /// Why nothing more is asked; it says nothing about texts.
    stopped: Option<Error>,
}

impl Batches {
    pub(super) fn new(missing: &VectorGap, is_skipped: impl Fn(usize) -> bool) -> Self {
        let places: Vec<usize> = (0..missing.len()).filter(|place| !is_skipped(*place)).collect();
        let batches = cut(places.iter().map(|place| missing.text(*place).map_or(0, str::len)));
        let places = |batch: Vec<usize>| batch.into_iter().filter_map(|at| places.get(at).copied()).collect();
        Self::of(batches.into_iter().map(places).collect())
    }

    fn of(waiting: VecDeque<Vec<usize>>) -> Self {
        Self { waiting, alone: Vec::new(), has_succeeded: false, failures: 0, error: None, stopped: None }
    }

    /// What is asked next; none if nothing is left, or if it is in vain.
    pub(super) fn pop(&mut self) -> Option<Vec<usize>> {
        let goes_on = self.stopped.is_none() && self.failures < FAILURES_MAX;
        if goes_on { self.waiting.pop_front() } else { None }
    }

    pub(super) fn succeeded(&mut self) {
        (self.has_succeeded, self.failures) = (true, 0);
    }

    pub(super) fn failed(&mut self, mut places: Vec<usize>, error: Error) {
        self.failures += 1;
        self.error.get_or_insert(error);
        let rest = places.split_off(places.len() / 2);
        if places.is_empty() {
            self.alone.extend(rest);
        } else {
            self.waiting.push_front(rest);
            self.waiting.push_front(places);
        }
    }

    pub(super) fn stop(&mut self, error: Error) {
        self.stopped.get_or_insert(error);
    }
}

/// Texts of which a model makes no vector. What one leader knows: another one asks again.
#[derive(Debug, Clone, Default)]
pub(super) struct RefusedTexts {
    /// The model object and its revision.
    model: Option<(EventSeq, EventSeq)>,
    /// What they are known by.
    pub(super) texts: BTreeSet<String>,
    /// What the object says about them.
    told: String,
    /// When they are asked about again.
    until: Duration,
}

impl RefusedTexts {
    /// Whether they are not asked about now. Another model may accept them.
    pub(super) fn begin(&mut self, model: (EventSeq, EventSeq), now: Duration) -> bool {
        if self.model != Some(model) {
            *self = Self { model: Some(model), ..Self::default() };
        }
        now < self.until
    }

    /// Notes what was refused, and says why the base has not all vectors.
    pub(super) fn end(&mut self, missing: &VectorGap, batches: Batches, now: Duration) -> Result<(), Error> {
        let Batches { waiting, alone, has_succeeded, failures, error, stopped } = batches;
        let is_done = waiting.is_empty() && alone.is_empty();
        let known = alone.into_iter().filter_map(|place| Some((place, missing.chunk_key(place)?)));
        // Without anything that succeeded, it may be that the model accepts no text.
        let refused: Vec<_> = known.filter(|(_, key)| has_succeeded || self.texts.contains(key)).collect();
        if let Some((place, _)) = refused.first() {
            self.until = now + REFUSED_FOR;
            let source = missing.source(*place).unwrap_or_default();
            let why = error.as_ref().map(|error| chain(error)).unwrap_or_default();
            self.told = format!("a text of \"{source}\": {why}");
            self.texts.extend(refused.into_iter().map(|(_, key)| key));
        }
        if let Some(stopped) = stopped {
            return Err(stopped);
        }
        match error.filter(|_| !is_done) {
            Some(error) if self.texts.is_empty() || failures >= FAILURES_MAX => Err(error),
            _ if self.texts.is_empty() => Ok(()),
            _ => {
                let why = format!("the model refuses {} texts, such as {}", self.texts.len(), self.told);
                Err(Error::ModelFailed { entry: catalogue::MODEL_CALL, why })
            }
        }
    }
}

/// Texts of these sizes in jobs, in order, by their numbers.
fn cut(sizes: impl Iterator<Item = usize>) -> Vec<Vec<usize>> {
    let (mut batches, mut bytes) = (Vec::<Vec<usize>>::new(), 0);
    for (place, size) in sizes.enumerate() {
        match batches.last_mut().filter(|batch| batch.len() < TEXTS_MAX && bytes + size <= TEXT_BYTES_MAX) {
            Some(batch) => batch.push(place),
            None => {
                batches.push(vec![place]);
                bytes = 0;
            }
        }
        bytes += size;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_into_jobs() {
        let count = |sizes: Vec<usize>| cut(sizes.into_iter()).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(count(vec![1; 2 * TEXTS_MAX + 1]), [TEXTS_MAX, TEXTS_MAX, 1]);
        assert_eq!(count(vec![TEXT_BYTES_MAX / 2; 3]), [2, 1]);
        assert_eq!(count(vec![2 * TEXT_BYTES_MAX, 1]), [1, 1]);
        assert!(count(Vec::new()).is_empty());
    }

    #[test]
    fn a_batch_that_fails_is_halved_until_one_text_is_left() {
        let error = || Error::Internal;
        let mut batches = Batches::of([(0..8).collect(), vec![8]].into());
        let mut asked = Vec::new();
        while let Some(places) = batches.pop() {
            asked.push(places.len());
            match places.contains(&5) {
                true => batches.failed(places, error()),
                false => batches.succeeded(),
            }
        }
        assert_eq!((asked, batches.alone), (vec![8, 4, 4, 2, 1, 1, 2, 1], vec![5]));
        // If all fails, it is not a text.
        let mut batches = Batches::of([(0..256).collect()].into());
        let mut count = 0;
        while let Some(places) = batches.pop() {
            batches.failed(places, error());
            count += 1;
        }
        assert!(count == FAILURES_MAX && !batches.has_succeeded);
        let mut batches = Batches::of([vec![1], vec![2]].into());
        batches.stop(error());
        assert!(batches.pop().is_none());
    }
}
