//! A member's history has everything up to an event. It has no event, which would need an acknowledgement again.

use atlas_types::{Outcome, Rejection, SinkAck, level};

use super::check_limit;
use crate::change::Change;

/// Most members whose acknowledgements are kept: far more than a group has, and a bound.
const MEMBERS_MAX: u64 = 64;

pub(super) fn apply(command: &SinkAck, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let state = &mut *change.state;
    if command.event_seq > state.event_seq {
        return Err(Rejection::NotConfirmed);
    }
    let known = state.sinks.get(&command.member).copied();
    let is_full = state.sinks.len() as u64 >= MEMBERS_MAX;
    if known.is_none() && is_full {
        if state.level < level::HISTORIES_FORGOTTEN {
            check_limit("members with a history", state.sinks.len() as u64, MEMBERS_MAX)?;
        }
        // The one that is furthest behind is gone long since; a member that is not says so again.
        let last = state.sinks.iter().min_by_key(|(member, event)| (**event, **member)).map(|(member, _)| *member);
        if let Some(last) = last {
            state.sinks.remove(&last);
        }
    }
    if known.is_none_or(|known| command.event_seq > known) {
        state.sinks.insert(command.member, command.event_seq);
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn an_acknowledgement_never_goes_back_and_never_ahead() {
        check(
            "agent a; job j1; cancel j1 -- ack m1 event=3; ack m1 event=1; ack m1 event=4; prune",
            expect![[r#"
            ! history has not confirmed these events
            = pruned 1
        "#]],
        );
    }

    #[test]
    fn at_level_2_the_member_that_is_furthest_behind_makes_room() {
        let members: String = (2..=64).map(|member| format!("ack m{member};")).collect();
        check(
            &format!(
                "level 2; ack m1; agent a; job j1; cancel j1; {members} ack m65 -- prune voters=65; prune voters=1"
            ),
            expect![[r#"
                = pruned 1
                ! history has not confirmed these events
            "#]],
        );
    }

    #[test]
    fn the_number_of_members_is_bounded() {
        let members: String = (1..=64).map(|member| format!("ack m{member};")).collect();
        check(
            &format!("{members} ack m65; ack m1"),
            expect![[r#"
            ! the cluster's limit of 64 for members with a history is reached
        "#]],
        );
    }
}
