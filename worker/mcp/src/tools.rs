//! The tools of a server: a list of them, and the last one that it gave.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_mcp_spec::RemoteTool;

/// Most complaints about one list.
pub(crate) const COMPLAINTS_MAX: usize = 32;

/// The tools of a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    pub tools: Vec<RemoteTool>,
    /// What the server lists and nobody can use: the tool, or its number, and why. After 32 of them, how many more there are.
    pub left_out: Vec<String>,
}

impl Deref for Listing {
    type Target = [RemoteTool];

    fn deref(&self) -> &[RemoteTool] {
        &self.tools
    }
}

/// Complaints, of which the first ones are told and the others counted.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    pub(crate) told: Vec<String>,
    pub(crate) more: u64,
}

impl Complaints {
    pub(crate) fn push(&mut self, why: impl FnOnce() -> String) {
        if self.told.len() < COMPLAINTS_MAX {
            self.told.push(why());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Adds those of one page.
    pub(crate) fn extend(&mut self, page: Self) {
        for why in page.told {
            self.push(|| why);
        }
        self.more = self.more.saturating_add(page.more);
    }

    /// The lines, and after them why the list ended early.
    pub(crate) fn lines(mut self, ended: Option<String>) -> Vec<String> {
        if self.more > 0 {
            self.told.push(format!("{} more", self.more));
        }
        self.told.extend(ended);
        self.told
    }
}

/// What was true when a list was asked for. Of two, the larger one is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    /// How often the server had said that its tools have changed.
    changes: u64,
    at: Duration,
}

/// The last list of a server. A list counts only as long as the server has announced no change since it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Known {
    changes: Arc<AtomicU64>,
    last: Mutex<Option<(Asked, Arc<Listing>)>>,
}

impl Known {
    /// `changes` counts what the server announces.
    pub(crate) fn new(changes: Arc<AtomicU64>) -> Self {
        Self { changes, last: Mutex::default() }
    }

    fn last(&self) -> MutexGuard<'_, Option<(Asked, Arc<Listing>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A list is asked for.
    pub(crate) fn ask(&self, at: Duration) -> Asked {
        Asked { changes: self.changes.load(Ordering::SeqCst), at }
    }

    /// The list, if it was asked for after `since` and after the last change.
    pub(crate) fn after(&self, since: Duration) -> Option<Arc<Listing>> {
        let changes = self.changes.load(Ordering::SeqCst);
        let last = self.last();
        last.as_ref()
            .filter(|(asked, _)| asked.changes == changes && asked.at >= since)
            .map(|(_, list)| Arc::clone(list))
    }

    /// Keeps a list, unless a newer one is there: answers may come in another order than they were asked for.
    pub(crate) fn keep(&self, asked: Asked, listing: &Arc<Listing>) {
        let mut last = self.last();
        if last.as_ref().is_none_or(|(before, _)| *before <= asked) {
            *last = Some((asked, Arc::clone(listing)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &str) -> Arc<Listing> {
        let tool =
            RemoteTool { name: name.to_owned(), description: String::new(), input_schema: serde_json::json!({}) };
        Arc::new(Listing { tools: vec![tool], left_out: Vec::new() })
    }

    #[test]
    fn a_list_from_before_a_change_counts_for_nobody() {
        let changes = Arc::<AtomicU64>::default();
        let known = Known::new(Arc::clone(&changes));
        let at = Duration::from_secs;
        let first = known.ask(at(1));
        known.keep(first, &list("old"));
        assert_eq!(known.after(at(1)), Some(list("old")));
        changes.fetch_add(1, Ordering::SeqCst);
        // One caller asks, and until it has the answer the others get nothing either.
        let slow = known.ask(at(2));
        assert_eq!((known.after(at(0)), known.after(at(0))), (None, None));
        let fast = known.ask(at(3));
        known.keep(fast, &list("new"));
        known.keep(slow, &list("older"));
        known.keep(first, &list("oldest"));
        assert_eq!((known.after(at(3)), known.after(at(4))), (Some(list("new")), None));
    }

    #[test]
    fn complaints_are_bounded_over_all_pages() {
        let mut all = Complaints::default();
        for page in 0..3 {
            let mut one = Complaints::default();
            (0..1_000).for_each(|number| one.push(|| format!("{page}.{number}")));
            all.extend(one);
        }
        let lines = all.lines(Some("the end".to_owned()));
        assert_eq!(
            (lines.len(), &lines[0], &lines[32], &lines[33]),
            (34, &"0.0".into(), &"2968 more".into(), &"the end".into())
        );
        assert!(Complaints::default().lines(None).is_empty());
    }
}
