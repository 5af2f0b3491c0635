//! Deletes an object that nothing uses.

use atlas_types::{DeleteObject, ObjectKey, Outcome, Rejection};

use super::put_object::{check_expected, known_kind};
use crate::change::Change;

pub(super) fn apply(command: &DeleteObject, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let namespace = change.origin.namespace.clone();
    let key = ObjectKey { namespace, kind: command.kind.clone(), name: command.name.clone() };
    let kind = known_kind(change.state, &key.kind)?;
    let found = change.state.object(&key).ok_or(Rejection::UnknownObject)?;
    check_expected(command.expect, Some(found))?;
    if let Some(what) = kind.used_by(change.state, &key) {
        return Err(Rejection::ObjectInUse { what });
    }
    change.state.check_order(&key, None)?;
    change.remove_object(&key);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_deleted_object_is_gone_and_another_of_its_name_is_another() {
        check(
            "level 6; put namespace a -- delete-object namespace a expect=9; delete-object namespace a expect=1;
            delete-object namespace a; put namespace a; delete-object gizmo a",
            expect![[r#"
                ! the object is at revision 1, not at the expected one
                namespace a deleted
                ! no such object
                namespace a uid 3 revision 3 {}
                ! no such kind of object
            "#]],
        );
    }

    #[test]
    fn a_namespace_in_use_is_kept() {
        let hook = r#"put webhook w {"events":["job"],"url":"http://a"} ns=t"#;
        check(
            &format!(
                "level 6; put namespace t; agent a ns=t; job j1 ns=t; {hook} -- delete-object namespace t; cancel j1 ns=t;
                delete-object namespace t; retire a ns=t; delete a ns=t; delete-object namespace t;
                delete-object webhook w ns=t; delete-object namespace t"
            ),
            expect![[r#"
                ! the object is in use by jobs
                j1 Ended pending→cancelled
                ! the object is in use by agent versions
                agent a 1.0.0 retired
                agent a 1.0.0 deleted
                ! the object is in use by objects
                webhook w deleted
                namespace t deleted
            "#]],
        );
    }
}
