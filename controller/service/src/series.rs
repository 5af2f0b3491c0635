//! Bounds on the number of series: names of agents, models, servers and tools come from outside, and each new one would be a
//! series for good.

use std::collections::BTreeSet;

/// The label of what has no series of its own.
pub(crate) const OTHER: &str = "other";

/// Most agents with series of their own in the metrics of messages.
pub(crate) const AGENTS_MAX: usize = 200;
/// Most pairs of agent and model with series of their own.
pub(crate) const PAIRS_MAX: usize = 200;
/// Most triples of agent, server and tool with series of their own.
pub(crate) const TOOLS_MAX: usize = 200;

/// Labels that have series. The first ones to come keep theirs.
#[derive(Debug)]
pub(crate) struct Series<const LABELS: usize> {
    known: BTreeSet<[String; LABELS]>,
    max: usize,
}

impl<const LABELS: usize> Series<LABELS> {
    pub(crate) fn new(max: usize) -> Self {
        Self { known: BTreeSet::new(), max }
    }

    /// The labels themselves if they have series or may have some, otherwise [`OTHER`] for each.
    pub(crate) fn labels(&mut self, labels: [String; LABELS]) -> [String; LABELS] {
        if self.known.contains(&labels) {
            return labels;
        }
        if self.known.len() < self.max {
            self.known.insert(labels.clone());
            return labels;
        }
        std::array::from_fn(|_| OTHER.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_series_is_bounded() {
        let mut series = Series::new(2);
        let labels = |agent: &str, model: &str| [agent.to_owned(), model.to_owned()];
        assert_eq!(series.labels(labels("a", "1")), labels("a", "1"));
        assert_eq!(series.labels(labels("a", "2")), labels("a", "2"));
        assert_eq!(series.labels(labels("b", "1")), labels(OTHER, OTHER));
        assert_eq!(series.labels(labels("a", "2")), labels("a", "2"));
    }
}
