//! Merges pages of several audits into one, by time, then controller. The records of one controller stay in the order of its
//! chain, also where its clock was set back.
//!
//! A page ends where a controller may have older records that were not read yet. So what pages say together does not depend on
//! their size.

use std::collections::{BTreeMap, VecDeque};

use atlas_artifacts::AuditPage;
use atlas_audit::Verifier;
use atlas_types::MemberId;

/// What was merged.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Merged {
    /// Lines as they were written, each with the controller that has it.
    pub(super) lines: Vec<(MemberId, String)>,
    /// For each controller, the number after which the next page begins.
    pub(super) reached: BTreeMap<MemberId, u64>,
    /// Whether there is a next page.
    pub(super) more: bool,
}

/// Merges at most `limit` records of pages. Each page was read after the number beside it.
pub(super) fn merge(pages: BTreeMap<MemberId, (u64, AuditPage)>, limit: usize) -> Merged {
    let mut sources: Vec<Source> =
        pages.into_iter().map(|(member, (after, page))| Source::of(member, after, page)).collect();
    let (mut merged, mut count) = (Merged::default(), 0);
    while count < limit && !sources.iter().any(Source::is_unknown) {
        let open = sources.iter_mut().filter(|source| !source.entries.is_empty());
        let Some(source) = open.min_by_key(|source| source.key()) else { break };
        let Some(entry) = source.entries.pop_front() else { break };
        source.reached = entry.number.unwrap_or(source.reached);
        merged.lines.extend(entry.lines.into_iter().map(|line| (source.member, line)));
        count += 1;
    }
    merged.more = sources.iter().any(|source| source.more || !source.entries.is_empty());
    merged.reached = sources.iter().map(|source| (source.member, source.next())).collect();
    merged
}

/// A record, and the damaged lines before it; at the end of an audit perhaps these alone.
struct Entry {
    /// None for damaged lines alone.
    number: Option<u64>,
    at_ms: u64,
    lines: Vec<String>,
}

/// The page of one controller, as far as it is not merged yet.
struct Source {
    member: MemberId,
    entries: VecDeque<Entry>,
    /// The number of the last record that was merged.
    reached: u64,
    last: u64,
    more: bool,
}

impl Source {
    fn of(member: MemberId, after: u64, page: AuditPage) -> Self {
        let (mut entries, mut lines) = (VecDeque::new(), Vec::new());
        for line in page.lines {
            let mut verifier = Verifier::default();
            let read = verifier.line(&line).ok().zip(verifier.span());
            lines.push(line);
            if let Some((record, (number, _))) = read {
                let lines = std::mem::take(&mut lines);
                entries.push_back(Entry { number: Some(number), at_ms: record.at_ms, lines });
            }
        }
        if !lines.is_empty() {
            entries.push_back(Entry { number: None, at_ms: u64::MAX, lines });
        }
        Self { member, entries, reached: after, last: page.last.max(after), more: page.more }
    }

    fn key(&self) -> (u64, MemberId) {
        (self.entries.front().map_or(u64::MAX, |entry| entry.at_ms), self.member)
    }

    /// Whether its next record was not read yet.
    fn is_unknown(&self) -> bool {
        self.more && self.entries.is_empty()
    }

    /// The number after which its next page begins. Records that were looked at and not wanted are not read again.
    fn next(&self) -> u64 {
        match self.entries.front() {
            None => self.last,
            // Damaged lines have no number: they are found between the records around them.
            Some(Entry { number: Some(number), lines, .. }) if lines.len() == 1 => {
                number.saturating_sub(1).max(self.reached)
            }
            Some(_) => self.reached,
        }
    }
}

#[cfg(test)]
mod tests {
    use atlas_audit::{Chain, Decision, Record};
    use proptest::prelude::*;

    use super::*;

    /// The audit of a controller with records at these times, in seconds.
    fn audit(controller: u64, times: &[u64]) -> Vec<(u64, String)> {
        let mut chain = Chain::new(&controller.to_string());
        let record = |at: u64| Record {
            at_ms: at * 1_000,
            principal: "ann".to_owned(),
            on_behalf_of: String::new(),
            namespace: String::new(),
            door: String::new(),
            verb: String::new(),
            object: format!("{controller}@{at}"),
            decision: Decision::Allow,
            code: String::new(),
            request_id: String::new(),
            count: 0,
        };
        times.iter().map(|at| chain.next(&record(*at))).zip(1..).map(|(line, number)| (number, line)).collect()
    }

    /// A page as a controller makes it: records that `wanted` admits.
    fn page(audit: &[(u64, String)], after: u64, limit: usize, wanted: impl Fn(u64) -> bool) -> AuditPage {
        let mut page = AuditPage { last: after, end: audit.len() as u64, ..AuditPage::default() };
        for (number, line) in audit.iter().filter(|(number, _)| *number > after) {
            if page.lines.len() >= limit {
                page.more = true;
                return page;
            }
            page.last = *number;
            if wanted(*number) {
                page.lines.push(line.clone());
            }
        }
        page
    }

    /// Reads all pages of some audits; what is read, and how many pages that took.
    fn read(audits: &[Vec<(u64, String)>], limit: usize, wanted: impl Fn(u64) -> bool + Copy) -> Vec<String> {
        let mut reached: BTreeMap<MemberId, u64> =
            (1..).take(audits.len()).map(|member| (MemberId(member), 0)).collect();
        let mut found = Vec::new();
        loop {
            let pages = reached
                .iter()
                .zip(audits)
                .map(|((member, after), audit)| (*member, (*after, page(audit, *after, limit, wanted))));
            let merged = merge(pages.collect(), limit);
            assert!(merged.lines.len() <= limit);
            found.extend(merged.lines.into_iter().map(|(_, line)| line));
            if !merged.more {
                return found;
            }
            assert_ne!(merged.reached, reached, "each page goes on");
            reached = merged.reached;
        }
    }

    fn objects(lines: &[(MemberId, String)]) -> Vec<String> {
        lines.iter().map(|(_, line)| Verifier::default().line(line).expect("a record").object).collect()
    }

    fn merged(first: AuditPage, second: AuditPage) -> Merged {
        merge([(MemberId(1), (0, first)), (MemberId(2), (0, second))].into(), 9)
    }

    #[test]
    fn records_are_merged_by_time_and_then_by_controller() {
        let (one, two) = (audit(1, &[10, 30]), audit(2, &[10, 20]));
        let found = merged(page(&one, 0, 9, |_| true), page(&two, 0, 9, |_| true));
        assert_eq!(objects(&found.lines), ["1@10", "2@10", "2@20", "1@30"]);
        assert_eq!((found.reached, found.more), ([(MemberId(1), 2), (MemberId(2), 2)].into(), false));
    }

    #[test]
    fn a_page_ends_where_a_controller_may_have_older_records() {
        let (one, two) = (audit(1, &[10, 30, 31]), audit(2, &[20, 40]));
        let found = merged(page(&one, 0, 2, |_| true), page(&two, 0, 9, |_| true));
        assert_eq!(objects(&found.lines), ["1@10", "2@20", "1@30"]);
        assert_eq!((found.reached, found.more), ([(MemberId(1), 2), (MemberId(2), 1)].into(), true));
        // Nothing was wanted of the first so far, and it has more. Of the second nothing is looked at again in vain.
        let looked = AuditPage { last: 7, more: true, ..AuditPage::default() };
        let found = merged(looked, page(&two, 0, 9, |number| number > 1));
        assert_eq!((found.lines.len(), found.reached), (0, [(MemberId(1), 7), (MemberId(2), 1)].into()));
        assert!(found.more);
    }

    #[test]
    fn damaged_lines_stay_before_the_record_that_follows_them() {
        let (mut one, two) = (audit(1, &[10, 30, 40]), audit(2, &[20]));
        one[1].1 = one[1].1.replace("1@30", "1@39");
        let lines = one.iter().map(|(_, line)| line.clone()).collect();
        let whole = AuditPage { lines, last: 3, end: 3, more: false };
        let found = merged(whole.clone(), page(&two, 0, 9, |_| true));
        let members: Vec<u64> = found.lines.iter().map(|(member, _)| member.0).collect();
        assert_eq!(members, [1, 2, 1, 1]);
        // A page that ends before them begins before them the next time.
        let pages = [(MemberId(1), (0, whole)), (MemberId(2), (0, AuditPage::default()))];
        let found = merge(pages.into(), 1);
        assert_eq!((found.reached[&MemberId(1)], found.more), (1, true));
        // Those after the last record come last.
        let rest = AuditPage { lines: vec!["damaged".to_owned()], last: 3, end: 3, more: false };
        let found = merged(rest, page(&two, 0, 9, |_| true));
        assert_eq!(found.lines.last().map(|(_, line)| line.as_str()), Some("damaged"));
        assert_eq!(found.reached[&MemberId(1)], 3);
    }

    proptest! {
        #[test]
        fn pages_of_any_size_are_the_sorted_union(
            times in prop::collection::vec(prop::collection::vec(0_u64..40, 0..12), 1..4),
            limit in 1_usize..9,
            step in 1_u64..4,
        ) {
            let sorted = times.iter().map(|times| { let mut times = times.clone(); times.sort_unstable(); times });
            let audits: Vec<_> = (1..).zip(sorted).map(|(controller, times)| audit(controller, &times)).collect();
            let mut union: Vec<((u64, u64, u64), String)> = Vec::new();
            for (controller, audit) in (1_u64..).zip(&audits) {
                for (number, line) in audit.iter().filter(|(number, _)| number % step == 0) {
                    let record = Verifier::default().line(line).expect("a record");
                    union.push(((record.at_ms, controller, *number), line.clone()));
                }
            }
            union.sort();
            let union: Vec<String> = union.into_iter().map(|(_, line)| line).collect();
            prop_assert_eq!(read(&audits, limit, |number| number % step == 0), union);
        }

        #[test]
        fn with_clocks_that_are_set_back_pages_of_any_size_say_the_same(
            times in prop::collection::vec(prop::collection::vec(0_u64..40, 0..12), 1..4),
            limit in 1_usize..9,
        ) {
            let audits: Vec<_> = (1..).zip(&times).map(|(controller, times)| audit(controller, times)).collect();
            let found = read(&audits, limit, |_| true);
            prop_assert_eq!(&found, &read(&audits, 100, |_| true));
            for audit in &audits {
                let own: Vec<&String> = found.iter().filter(|line| audit.iter().any(|(_, own)| own == *line)).collect();
                prop_assert!(own.into_iter().eq(audit.iter().map(|(_, line)| line)), "each chain stays in its order");
            }
        }
    }
}
