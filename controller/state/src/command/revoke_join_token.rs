//! Takes a join token back. One that is not there any more needs no taking back.

use atlas_types::{Outcome, Rejection, RevokeJoinToken};

use crate::change::Change;

#[expect(clippy::unnecessary_wraps, reason = "the table of commands has one shape")]
pub(super) fn apply(command: &RevokeJoinToken, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    change.state.join_tokens.remove(&command.hash);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_revoked_token_lets_nobody_in() {
        check(
            "token t1 -- revoke t1; revoke t1; join t1",
            expect![[r#"
                ! the join token is unknown, used or expired
            "#]],
        );
    }
}
