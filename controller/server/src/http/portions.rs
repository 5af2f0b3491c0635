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
}

impl Portions {
    /// What follows a place, if another stream was there.
    pub(crate) fn get(&self, place: &Place) -> Option<Portion> {
        let latest = self.latest();
        // Most streams are at one of the last places.
        let found = latest.portions.iter().rev().find(|(known, _)| known == place);
        found.map(|(_, portion)| portion.clone())
    }

    /// Keeps what follows a place, for other streams.
    pub(crate) fn keep(&self, place: Place, portion: Portion) {
        let mut latest = self.latest();
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
        portions.keep(place(1), portion(2, 5));
        portions.keep(place(1), portion(3, 7));
        assert_eq!(portions.get(&place(1)), Some(portion(2, 5)), "the first one stays");
        let elsewhere = "other".parse().expect("a name");
        for other in [place(2), Place { view: View::Full, ..place(1) }, Place { namespace: elsewhere, ..place(1) }] {
            assert_eq!(portions.get(&other), None, "{other:?}");
        }
    }

    #[test]
    fn the_latest_portions_are_kept_within_both_limits() {
        let portions = Portions::default();
        for after in 0..PORTIONS_MAX as u64 + 2 {
            portions.keep(place(after), portion(0, after + 1));
        }
        assert_eq!((portions.get(&place(1)), portions.get(&place(2))), (None, Some(portion(0, 3))));
        portions.keep(place(9_000), portion(BYTES_MAX, 9_001));
        portions.keep(place(9_001), portion(1, 9_002));
        assert_eq!((portions.get(&place(9_000)), portions.latest().bytes), (None, 1));
        portions.keep(place(9_002), portion(BYTES_MAX + 1, 9_003));
        assert_eq!(
            (portions.get(&place(9_002)), portions.latest().bytes),
            (None, 1),
            "one that is too large replaces none"
        );
    }
}
