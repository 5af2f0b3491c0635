//! Revokes a join token. Revoking an unknown one has no effect.

use atlas_types::{Outcome, Rejection, RevokeJoinToken};

use crate::change::Change;

#[expect(clippy::unnecessary_wraps, reason = "the table of commands has one shape")]
pub(super) fn apply(command: &RevokeJoinToken, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    change.set_token(command.hash, None);
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
