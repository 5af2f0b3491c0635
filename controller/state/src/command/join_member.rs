//! A controller joins: its token is used up, and it gets a new number.

use atlas_types::{JoinKind, JoinMember, MemberId, Outcome, Rejection, level};

use crate::change::Change;
use crate::state::State;

pub(super) fn apply(command: &JoinMember, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let clock = change.clock;
    let member = next_number(change.state, command.above)?;
    let token = change.state.join_tokens.get(&command.hash).copied();
    let token = token.filter(|token| token.kind == JoinKind::Controller && token.expires > clock);
    let mut token = token.ok_or(Rejection::TokenRefused)?;
    token.uses -= 1;
    change.set_token(command.hash, Some(token).filter(|token| token.uses > 0));
    change.state.member_last = member;
    Ok(Outcome::MemberJoined { member })
}

/// A number that no member has had. The members that formed the group have theirs from elsewhere, up to `above`.
fn next_number(state: &State, above: MemberId) -> Result<MemberId, Rejection> {
    let last = state.member_last.max(above).0;
    match last.checked_add(1) {
        Some(next) => Ok(MemberId(next)),
        // Programs before this level began again with 0.
        None if state.level < level::MEMBER_NUMBERS => Ok(MemberId(0)),
        None => Err(Rejection::LimitReached { what: "numbers of members", limit: last }),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_token_is_used_once_and_no_number_twice() {
        check(
            "token t1; token t2; token t3 uses=2 -- join t1 above=3; join t1 above=3; join t2 above=1; join t3; join t3; join t3",
            expect![[r#"
                = member 4
                ! the join token is unknown, used or expired
                = member 5
                = member 6
                = member 7
                ! the join token is unknown, used or expired
            "#]],
        );
    }

    #[test]
    fn a_number_above_which_there_is_none_is_refused() {
        let most = u64::MAX;
        check(
            &format!("level 5; token t1 -- join t1 above={most}; join t1 above={}; token t2; join t2", most - 1),
            expect![[r#"
                ! the cluster's limit of 18446744073709551615 for numbers of members is reached
                = member 18446744073709551615
                ! the cluster's limit of 18446744073709551615 for numbers of members is reached
            "#]],
        );
        check(
            &format!("token t1 -- join t1 above={most}"),
            expect![[r#"
                = member 0
            "#]],
        );
    }

    #[test]
    fn a_repeat_of_the_request_gets_the_same_number() {
        check(
            "token t1 -- join t1 key=r1; join t1 key=r1",
            expect![[r#"
                = member 1
                = member 1
            "#]],
        );
    }

    #[test]
    fn a_token_for_workers_lets_no_controller_in() {
        check(
            "token t1 kind=worker -- join t1",
            expect![[r#"
                ! the join token is unknown, used or expired
            "#]],
        );
    }
}
