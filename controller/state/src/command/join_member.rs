//! A controller joins: its token is used up, and it gets a number that nobody had before.

use atlas_types::{JoinKind, JoinMember, MemberId, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &JoinMember, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let clock = change.clock;
    let state = &mut *change.state;
    let token = state.join_tokens.get(&command.hash).copied();
    let token = token.filter(|token| token.kind == JoinKind::Controller && token.expires > clock);
    let mut token = token.ok_or(Rejection::TokenRefused)?;
    token.uses -= 1;
    if token.uses == 0 {
        state.join_tokens.remove(&command.hash);
    } else {
        state.join_tokens.insert(command.hash, token);
    }
    // The members that formed the group have their numbers from elsewhere.
    state.member_last = MemberId(state.member_last.max(command.above).0 + 1);
    Ok(Outcome::MemberJoined { member: state.member_last })
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
