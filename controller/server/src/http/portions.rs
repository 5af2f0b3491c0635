//! Portions of the stream of all changes: the frames of several changes, one after another, as they are sent. Streams that have come
//! equally far send the same ones, so each is built once.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use atlas_service::View;
use atlas_types::{EventSeq, Namespace};
use bytes::Bytes;

/// The most portions that are kept. A stream that is further behind builds its own.
const PORTIONS_MAX: usize = 128;
/// The most bytes of portions that are kept.
const BYTES_MAX: usize = 1 << 20;

/// What a stream shows, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) after: EventSeq,
    pub(crate) view: View,
    pub(crate) namespace: Namespace,
}

/// The frames that follow a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Portion {
    /// Empty if there is nothing to show.
    pub(crate) frames: Bytes,
    /// The last event that they cover.
    pub(crate) through: EventSeq,
}

/// The latest portions.
#[derive(Default)]
pub(crate) struct Portions(Mutex<Latest>);

#[derive(Default)]
struct Latest {
    portions: VecDeque<(Place, Portion)>,
    bytes: usize,
    /// The last erasure that is known here.
    erased: EventSeq,
}

impl Portions {
    /// What follows a place, if another stream was there. What was kept before the last erasure is forgotten.
    pub(crate) fn get(&self, place: &Place, erased: EventSeq) -> Option<Portion> {
        let mut latest = self.latest();
        if latest.erased < erased {
            *latest = Latest { erased, ..Latest::default() };
        }
        // Most streams are at one of the last places.
        let found = latest.portions.iter().rev().find(|(known, _)| known == place);
        found.map(|(_, portion)| portion.clone())
    }

    /// Keeps what follows a place, for other streams. `erased` is the last erasure before its events were read.
    pub(crate) fn keep(&self, place: Place, portion: Portion, erased: EventSeq) {
        let mut latest = self.latest();
        if erased < latest.erased {
            return;
        }
        if portion.frames.len() > BYTES_MAX || latest.portions.iter().any(|(known, _)| *known == place) {
            return;
        }
        latest.bytes += portion.frames.len();
        latest.portions.push_back((place, portion));
        while latest.portions.len() > PORTIONS_MAX || latest.bytes > BYTES_MAX {
            let Some((_, oldest)) = latest.portions.pop_front() else { break };
            latest.bytes -= oldest.frames.len();
        }
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(after: u64) -> Place {
        Place { after: EventSeq(after), view: View::Plain, namespace: Namespace::default_namespace() }
    }

    fn portion(bytes: usize, through: u64) -> Portion {
        Portion { frames: vec![b' '; bytes].into(), through: EventSeq(through) }
    }

    #[test]
    fn streams_at_the_same_place_that_show_the_same_share_a_portion() {
        let portions = Portions::default();
        portions.keep(place(1), portion(2, 5), EventSeq(0));
        portions.keep(place(1), portion(3, 7), EventSeq(0));
        assert_eq!(portions.get(&place(1), EventSeq(0)), Some(portion(2, 5)), "the first one stays");
        let elsewhere = "other".parse().expect("a name");
        for other in [place(2), Place { view: View::Full, ..place(1) }, Place { namespace: elsewhere, ..place(1) }] {
            assert_eq!(portions.get(&other, EventSeq(0)), None, "{other:?}");
        }
    }

    #[test]
    fn portions_are_forgotten_after_an_erasure() {
        let portions = Portions::default();
        portions.keep(place(1), portion(2, 5), EventSeq(0));
        assert_eq!(portions.get(&place(1), EventSeq(9)), None);
        portions.keep(place(1), portion(2, 5), EventSeq(0));
        assert_eq!(portions.get(&place(1), EventSeq(9)), None, "its events were read before the erasure");
        portions.keep(place(1), portion(3, 5), EventSeq(9));
        assert_eq!(portions.get(&place(1), EventSeq(9)), Some(portion(3, 5)));
    }

    #[test]
    fn the_latest_portions_are_kept_within_both_limits() {
        let portions = Portions::default();
        for after in 0..PORTIONS_MAX as u64 + 2 {
            portions.keep(place(after), portion(0, after + 1), EventSeq(0));
        }
        assert_eq!(
            (portions.get(&place(1), EventSeq(0)), portions.get(&place(2), EventSeq(0))),
            (None, Some(portion(0, 3)))
        );
        portions.keep(place(9_000), portion(BYTES_MAX, 9_001), EventSeq(0));
        portions.keep(place(9_001), portion(1, 9_002), EventSeq(0));
        assert_eq!((portions.get(&place(9_000), EventSeq(0)), portions.latest().bytes), (None, 1));
        portions.keep(place(9_002), portion(BYTES_MAX + 1, 9_003), EventSeq(0));
        assert_eq!(
            (portions.get(&place(9_002), EventSeq(0)), portions.latest().bytes),
            (None, 1),
            "one that is too large replaces none"
        );
    }
}
