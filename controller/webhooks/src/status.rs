//! How far a webhook got: the status of its object, and what each outcome of a request changes in it. Pure.

use atlas_types::{Object, STATUS_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// The most bytes of a reason.
const REASON_BYTES_MAX: usize = 512;

/// What a webhook does, one word each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Activity {
    /// Its last request succeeded, or it has sent none.
    #[default]
    Ready,
    /// Its last request failed and is repeated.
    Retrying,
    /// Its spec says that nothing is sent for now.
    Paused,
    /// It cannot send, for the reason that the status names.
    Blocked,
}

/// Why events were not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Loss {
    /// Every allowed attempt failed.
    Attempts,
    /// They had left the history of the cluster.
    Retention,
}

/// Events that were not delivered: those that the webhook wanted after `after` and up to `through`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gap {
    pub(crate) after: u64,
    pub(crate) through: u64,
    pub(crate) reasons: Vec<Loss>,
}

/// The status of a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) state: Activity,
    /// Why it is retrying or blocked; empty otherwise.
    pub(crate) reason: String,
    /// Events up to this one are done with.
    pub(crate) cursor: u64,
    /// Events delivered.
    pub(crate) delivered: u64,
    /// Events given up after the last allowed attempt.
    pub(crate) dropped: u64,
    /// Events, wanted or not, that had left the history before they were read.
    pub(crate) missed: u64,
    /// Failed attempts at what is sent now.
    pub(crate) attempts: u32,
    /// What the receiver has to be told before the next event.
    pub(crate) gap: Option<Gap>,
    /// Whether requests are signed.
    pub(crate) signed: bool,
    /// The time of the last successful request in Unix seconds; 0 if there was none.
    pub(crate) delivered_at: i64,
}

impl Status {
    /// The status that an object carries; none if it carries none that this program can read.
    pub(crate) fn stored(object: &Object) -> Option<Self> {
        serde_json::from_slice(&object.status).ok()
    }

    /// Where the delivery of a webhook begins. Without a status it begins after the event that made the webhook.
    pub(crate) fn of(object: &Object) -> Self {
        let stored = Self::stored(object).unwrap_or_default();
        Self { cursor: stored.cursor.max(object.uid.0), ..stored }
    }

    /// The canonical document.
    pub(crate) fn document(&self) -> Vec<u8> {
        let value = serde_json::to_value(self).unwrap_or_default();
        let bytes = atlas_objects::canonical(&value).unwrap_or_default();
        debug_assert!(!bytes.is_empty() && bytes.len() <= STATUS_BYTES_MAX, "{} bytes", bytes.len());
        bytes
    }

    /// Whether another status differs only in what changes with events that the webhook does not want.
    pub(crate) fn differs_in_cursor_only(&self, other: &Self) -> bool {
        *self == Self { cursor: self.cursor, ..other.clone() }
    }

    /// The webhook wants none of the events up to this one.
    pub(crate) fn passed(&mut self, through: u64) {
        self.cursor = self.cursor.max(through);
    }

    /// The receiver has accepted an event.
    pub(crate) fn delivered(&mut self, event: u64, seconds: i64) {
        self.passed(event);
        self.delivered += 1;
        self.accepted(seconds);
    }

    /// The receiver has accepted the notice of a gap.
    pub(crate) fn announced(&mut self, seconds: i64) {
        self.gap = None;
        self.accepted(seconds);
    }

    fn accepted(&mut self, seconds: i64) {
        (self.state, self.attempts, self.delivered_at) = (Activity::Ready, 0, seconds);
        self.reason.clear();
    }

    /// A request failed.
    pub(crate) fn failed(&mut self, reason: &str) {
        self.attempts = self.attempts.saturating_add(1);
        self.state = Activity::Retrying;
        self.explain(reason);
    }

    /// Nothing can be sent.
    pub(crate) fn blocked(&mut self, reason: &str) {
        self.state = Activity::Blocked;
        self.explain(reason);
    }

    /// What blocked the webhook is gone.
    pub(crate) fn unblocked(&mut self) {
        if self.attempts > 0 {
            self.state = Activity::Retrying;
        } else {
            self.resumed();
        }
    }

    /// The spec was changed: what is sent now has all its attempts again.
    pub(crate) fn resumed(&mut self) {
        (self.state, self.attempts) = (Activity::Ready, 0);
        self.reason.clear();
    }

    /// The spec says to pause.
    pub(crate) fn paused(&mut self) {
        (self.state, self.attempts) = (Activity::Paused, 0);
        self.reason.clear();
    }

    /// An event was sent as often as allowed. The receiver will be told.
    pub(crate) fn dropped(&mut self, event: u64) {
        self.dropped += 1;
        self.attempts = 0;
        self.lose(event, Loss::Attempts);
    }

    /// The events before `earliest` have left the history. The receiver will be told.
    pub(crate) fn missed(&mut self, earliest: u64) {
        let through = earliest.saturating_sub(1);
        self.missed += through.saturating_sub(self.cursor);
        if through > self.cursor {
            self.lose(through, Loss::Retention);
        }
    }

    fn lose(&mut self, through: u64, loss: Loss) {
        let after = self.cursor;
        let gap = self.gap.get_or_insert(Gap { after, through, reasons: Vec::new() });
        gap.through = through;
        if !gap.reasons.contains(&loss) {
            gap.reasons.push(loss);
        }
        self.passed(through);
    }

    fn explain(&mut self, reason: &str) {
        self.reason = reason.chars().take(REASON_BYTES_MAX / 4).collect();
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    /// What a webhook that starts after event 10 has as its status after each of these outcomes.
    fn check(outcomes: &str, expected: &Expect) {
        let mut status = Status { cursor: 10, ..Status::default() };
        let mut out = String::new();
        for outcome in outcomes.split(';').map(str::trim) {
            apply(&mut status, outcome);
            let text = String::from_utf8(status.document()).expect("JSON is text");
            writeln!(out, "{outcome}: {text}").expect("a string takes all");
        }
        expected.assert_eq(&out);
    }

    fn apply(status: &mut Status, outcome: &str) {
        let (word, number) = outcome.split_once(' ').unwrap_or((outcome, "0"));
        let number: u64 = number.parse().expect("a number");
        match word {
            "passed" => status.passed(number),
            "delivered" => status.delivered(number, 1_700_000_000),
            "announced" => status.announced(1_700_000_000),
            "failed" => status.failed("the receiver answered 500"),
            "blocked" => status.blocked("no secret"),
            "resumed" => status.resumed(),
            "unblocked" => status.unblocked(),
            "paused" => status.paused(),
            "dropped" => status.dropped(number),
            "missed" => status.missed(number),
            other => panic!("no such outcome: {other}"),
        }
    }

    #[test]
    fn a_receiver_fails_and_recovers() {
        check(
            "delivered 12; passed 15; failed; failed; delivered 16",
            &expect![[r#"
            delivered 12: {"attempts":0,"cursor":12,"delivered":1,"delivered_at":1700000000,"dropped":0,"gap":null,"missed":0,"reason":"","signed":false,"state":"ready"}
            passed 15: {"attempts":0,"cursor":15,"delivered":1,"delivered_at":1700000000,"dropped":0,"gap":null,"missed":0,"reason":"","signed":false,"state":"ready"}
            failed: {"attempts":1,"cursor":15,"delivered":1,"delivered_at":1700000000,"dropped":0,"gap":null,"missed":0,"reason":"the receiver answered 500","signed":false,"state":"retrying"}
            failed: {"attempts":2,"cursor":15,"delivered":1,"delivered_at":1700000000,"dropped":0,"gap":null,"missed":0,"reason":"the receiver answered 500","signed":false,"state":"retrying"}
            delivered 16: {"attempts":0,"cursor":16,"delivered":2,"delivered_at":1700000000,"dropped":0,"gap":null,"missed":0,"reason":"","signed":false,"state":"ready"}
        "#]],
        );
    }

    #[test]
    fn a_dropped_event_is_announced_before_the_next_one() {
        check(
            "failed; dropped 14; failed; missed 20; announced; delivered 20",
            &expect![[r#"
            failed: {"attempts":1,"cursor":10,"delivered":0,"delivered_at":0,"dropped":0,"gap":null,"missed":0,"reason":"the receiver answered 500","signed":false,"state":"retrying"}
            dropped 14: {"attempts":0,"cursor":14,"delivered":0,"delivered_at":0,"dropped":1,"gap":{"after":10,"reasons":["attempts"],"through":14},"missed":0,"reason":"the receiver answered 500","signed":false,"state":"retrying"}
            failed: {"attempts":1,"cursor":14,"delivered":0,"delivered_at":0,"dropped":1,"gap":{"after":10,"reasons":["attempts"],"through":14},"missed":0,"reason":"the receiver answered 500","signed":false,"state":"retrying"}
            missed 20: {"attempts":1,"cursor":19,"delivered":0,"delivered_at":0,"dropped":1,"gap":{"after":10,"reasons":["attempts","retention"],"through":19},"missed":5,"reason":"the receiver answered 500","signed":false,"state":"retrying"}
            announced: {"attempts":0,"cursor":19,"delivered":0,"delivered_at":1700000000,"dropped":1,"gap":null,"missed":5,"reason":"","signed":false,"state":"ready"}
            delivered 20: {"attempts":0,"cursor":20,"delivered":1,"delivered_at":1700000000,"dropped":1,"gap":null,"missed":5,"reason":"","signed":false,"state":"ready"}
        "#]],
        );
    }

    #[test]
    fn a_pause_and_a_block_end() {
        check(
            "failed; blocked; unblocked; paused; blocked; unblocked; failed; resumed",
            &expect![[r#"
            failed: {"attempts":1,"cursor":10,"delivered":0,"delivered_at":0,"dropped":0,"gap":null,"missed":0,"reason":"the receiver answered 500","signed":false,"state":"retrying"}
            blocked: {"attempts":1,"cursor":10,"delivered":0,"delivered_at":0,"dropped":0,"gap":null,"missed":0,"reason":"no secret","signed":false,"state":"blocked"}
            unblocked: {"attempts":1,"cursor":10,"delivered":0,"delivered_at":0,"dropped":0,"gap":null,"missed":0,"reason":"no secret","signed":false,"state":"retrying"}
            paused: {"attempts":0,"cursor":10,"delivered":0,"delivered_at":0,"dropped":0,"gap":null,"missed":0,"reason":"","signed":false,"state":"paused"}
            blocked: {"attempts":0,"cursor":10,"delivered":0,"delivered_at":0,"dropped":0,"gap":null,"missed":0,"reason":"no secret","signed":false,"state":"blocked"}
            unblocked: {"attempts":0,"cursor":10,"delivered":0,"delivered_at":0,"dropped":0,"gap":null,"missed":0,"reason":"","signed":false,"state":"ready"}
            failed: {"attempts":1,"cursor":10,"delivered":0,"delivered_at":0,"dropped":0,"gap":null,"missed":0,"reason":"the receiver answered 500","signed":false,"state":"retrying"}
            resumed: {"attempts":0,"cursor":10,"delivered":0,"delivered_at":0,"dropped":0,"gap":null,"missed":0,"reason":"","signed":false,"state":"ready"}
        "#]],
        );
    }

    #[test]
    fn statuses_are_read_again_and_bounded() {
        let mut status = Status { cursor: u64::MAX, delivered: u64::MAX, missed: u64::MAX, ..Status::default() };
        status.failed(&"\u{1F980}\n".repeat(9_999));
        status.gap = Some(Gap { after: 1, through: u64::MAX, reasons: vec![Loss::Attempts, Loss::Retention] });
        let bytes = status.document();
        assert!(bytes.len() <= STATUS_BYTES_MAX);
        assert_eq!(serde_json::from_slice::<Status>(&bytes).expect("a status"), status);
    }

    proptest! {
        /// The cursor never goes back, and a gap ends at or before it, so no event is both lost and still to come.
        #[test]
        fn nothing_goes_back(outcomes in prop::collection::vec((0..9_usize, 1..40_u64), 0..60)) {
            let words = ["passed", "delivered", "announced", "failed", "blocked", "resumed", "paused", "dropped", "missed"];
            let mut status = Status { cursor: 10, ..Status::default() };
            for (word, step) in outcomes {
                let before = status.clone();
                apply(&mut status, &format!("{} {}", words[word], before.cursor + step));
                prop_assert!(status.cursor >= before.cursor);
                if let Some(gap) = &status.gap {
                    prop_assert!(gap.after < gap.through && gap.through <= status.cursor);
                    prop_assert!(!gap.reasons.is_empty());
                }
                prop_assert!(before.gap.is_none() || status.gap.is_some() || words[word] == "announced");
            }
        }
    }
}
