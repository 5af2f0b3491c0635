//! Selects the controller to try next. Pure.

/// The controllers that a worker knows: the configured ones and those that a leader reported. The last one that worked
/// is tried first.
#[derive(Debug)]
pub(crate) struct Controllers {
    configured: Vec<String>,
    told: Vec<String>,
    /// The address to try before all others.
    first: Option<String>,
    /// The index of the next address.
    next: usize,
    /// The address that was tried last. A round skips it if there are others.
    last: Option<String>,
}

impl Controllers {
    /// Controllers from the configuration.
    pub(crate) fn new(configured: Vec<String>) -> Self {
        Self { configured, told: Vec::new(), first: None, next: 0, last: None }
    }

    /// Replaces the reported controllers by the members that a leader named. The configured ones stay, because a worker
    /// that was offline while all members changed knows no others.
    pub(crate) fn tell(&mut self, members: Vec<String>) {
        self.told = members;
    }

    /// Prefers a controller that leads, or led when last asked.
    pub(crate) fn prefer(&mut self, address: String) {
        self.first = Some(address);
    }

    /// The number of controllers.
    pub(crate) fn len(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> Vec<&String> {
        self.configured.iter().chain(self.told.iter().filter(|told| !self.configured.contains(told))).collect()
    }

    /// The address to try next, and whether it starts a new round over all addresses. None if there are no addresses.
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
