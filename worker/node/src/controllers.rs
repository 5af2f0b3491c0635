//! Which controller to try next. Pure.

/// The controllers that a worker knows: the configured ones, and those that a leader reported. The one that worked last comes first.
#[derive(Debug)]
pub(crate) struct Controllers {
    configured: Vec<String>,
    told: Vec<String>,
    /// Tried next, before the others.
    first: Option<String>,
    /// The place of the next one among all.
    next: usize,
    /// Tried last. In a round its turn comes when others were tried.
    last: Option<String>,
}

impl Controllers {
    /// Controllers from the configuration.
    pub(crate) fn new(configured: Vec<String>) -> Self {
        Self { configured, told: Vec::new(), first: None, next: 0, last: None }
    }

    /// A leader named the members of its cluster: these replace earlier reports. What was configured stays, because
    /// a worker that slept through a change of all members has nothing else.
    pub(crate) fn tell(&mut self, members: Vec<String>) {
        self.told = members;
    }

    /// This one leads, or did when it was asked last.
    pub(crate) fn prefer(&mut self, address: String) {
        self.first = Some(address);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> Vec<&String> {
        self.configured.iter().chain(self.told.iter().filter(|told| !self.configured.contains(told))).collect()
    }

    /// The one to try, and whether a round over all of them begins with it; none if there are none.
    pub(crate) fn take(&mut self) -> Option<(String, bool)> {
        if let Some(first) = self.first.take() {
            self.last = Some(first.clone());
            return Some((first, false));
        }
        let all = self.all();
        let mut at = self.next % all.len().max(1);
        let mut begins_round = at == 0;
        if all.len() > 1 && all.get(at).copied() == self.last.as_ref() {
            at = (at + 1) % all.len();
            begins_round |= at == 0;
        }
        let taken = all.get(at).map(|address| (*address).clone());
        self.next = at + 1;
        self.last.clone_from(&taken);
        taken.map(|address| (address, begins_round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(controllers: &mut Controllers, count: usize) -> String {
        let take = |_| controllers.take().map_or_else(|| "-".to_owned(), |(address, _)| address);
        (0..count).map(take).collect::<Vec<_>>().join(" ")
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn all_are_tried_in_turn() {
        let mut controllers = Controllers::new(names(&["a", "b"]));
        assert_eq!(taken(&mut controllers, 3), "a b a");
        controllers.tell(names(&["b", "c"]));
        assert_eq!(taken(&mut controllers, 4), "b c a b");
        controllers.tell(names(&["d"]));
        assert_eq!(taken(&mut controllers, 3), "d a b");
        assert_eq!(taken(&mut Controllers::new(Vec::new()), 1), "-");
    }

    #[test]
    fn the_one_that_was_left_is_not_the_next() {
        let mut controllers = Controllers::new(names(&["a", "b", "c"]));
        controllers.prefer("a".to_owned());
        assert_eq!(taken(&mut controllers, 4), "a b c a");
        controllers.prefer("b".to_owned());
        assert_eq!(taken(&mut controllers, 3), "b c a");
    }

    #[test]
    fn rounds_are_counted_though_all_name_one_that_refuses() {
        let mut controllers = Controllers::new(names(&["a", "b", "c"]));
        let mut rounds = 0;
        for _ in 0..12 {
            let (address, begins_round) = controllers.take().expect("one");
            rounds += u32::from(begins_round);
            if address != "c" {
                controllers.prefer("c".to_owned());
            }
        }
        assert_eq!(rounds, 3);
    }

    #[test]
    fn the_leader_is_tried_first_and_only_once() {
        let mut controllers = Controllers::new(names(&["a", "b"]));
        controllers.prefer("c".to_owned());
        assert_eq!(taken(&mut controllers, 3), "c a b");
        let rounds: Vec<bool> = (0..4).filter_map(|_| controllers.take()).map(|(_, round)| round).collect();
        assert_eq!(rounds, [true, false, true, false]);
    }
}
