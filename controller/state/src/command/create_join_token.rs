//! Records a join token. The state has only its hash, so that nobody can join with the contents of a log, a snapshot or a backup.

use atlas_types::{CreateJoinToken, Digest, JoinToken, Micros, Outcome, Rejection};

use super::check_limit;
use crate::change::Change;

/// The longest that a token holds.
const TTL_MAX: Micros = Micros::from_secs(3_600);
/// Most tokens at once.
const TOKENS_MAX: u64 = 1_024;

pub(super) fn apply(command: &CreateJoinToken, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let clock = change.clock;
    let expired: Vec<Digest> = change.state.expired_tokens(clock).collect();
    let live = change.state.join_tokens.len() as u64 - expired.len() as u64;
    check_limit("join tokens", live, TOKENS_MAX)?;
    expired.into_iter().for_each(|hash| change.set_token(hash, None));
    let CreateJoinToken { hash, kind, ttl, uses, salt } = *command;
    let expires = clock.plus(ttl.min(TTL_MAX));
    change.set_token(hash, Some(JoinToken { hash, kind, expires, uses: uses.max(1) }));
    Ok(salt.map_or(Outcome::Done, |salt| Outcome::TokenMade { salt, expires }))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn the_number_of_tokens_is_bounded_and_expired_ones_do_not_count() {
        let tokens: String = (1..=1_024).map(|token| format!("token t{token} ttl=60;")).collect();
        check(
            &format!("{tokens} -- token t2000; clock 61; token t2000; join t2000; join t1"),
            expect![[r#"
                ! the cluster's limit of 1024 for join tokens is reached
                = member 1
                ! the join token is unknown, used or expired
            "#]],
        );
    }

    #[test]
    fn a_repeat_of_the_request_gets_the_first_salt() {
        check(
            "token t1 salt=7 key=r1; clock 60; token t2 salt=8 key=r1; join t2; join t1",
            expect![[r#"
                = a token of salt 7 until 601 s
                = a token of salt 7 until 601 s
                ! the join token is unknown, used or expired
                = member 1
            "#]],
        );
    }

    #[test]
    fn a_token_holds_an_hour_at_most() {
        check(
            "token t1 ttl=7200; token t2 ttl=7200 -- clock 3599; join t1; clock 2; join t2",
            expect![[r#"
                = member 1
                ! the join token is unknown, used or expired
            "#]],
        );
    }
}
