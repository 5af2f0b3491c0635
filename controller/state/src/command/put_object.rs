//! Makes an object, or replaces its labels and its spec. Its kind decides whether the document is accepted.

use std::sync::Arc;

use atlas_objects::{Kind, Refusal};
use atlas_types::{
    EventSeq, Expect, Object, ObjectKey, ObjectKind, Outcome, PutObject, Rejection, SPEC_BYTES_MAX, label_bytes,
};

use super::{check_bytes, check_labels, check_limit};
use crate::change::Change;
use crate::state::State;

/// Most objects in the cluster: 10,000 people and programs with tokens and bindings, and the rest. Tests check every object after
/// every command, so they have fewer.
const OBJECTS_MAX: u64 = if cfg!(test) { 8 } else { 50_000 };

/// Agents write no more once there are so many objects: the rest of the room is for what configures the cluster.
const OBJECTS_OF_AGENTS_MAX: u64 = OBJECTS_MAX / 5 * 4;

pub(super) fn apply(command: &PutObject, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let state = &*change.state;
    let namespace = change.origin.namespace.clone();
    let key = ObjectKey { namespace, kind: command.kind.clone(), name: command.name.clone() };
    let kind = known_kind(state, &key.kind)?;
    check_labels(state, command.labels.iter())?;
    let bytes = command.spec.len();
    if bytes > SPEC_BYTES_MAX {
        return Err(Rejection::PayloadTooLarge { bytes: bytes as u64 });
    }
    atlas_objects::check(kind, &key, &command.spec).map_err(|refusal| refused(&refusal))?;
    atlas_objects::check_among(kind, state, &key, &command.spec).map_err(|refusal| refused(&refusal))?;
    let old = state.object(&key).cloned();
    check_expected(command.expect, old.as_deref())?;
    if let Some(old) = old.as_ref().filter(|old| *old.spec == *command.spec && *old.labels == command.labels) {
        return Ok(Outcome::ObjectPut { uid: old.uid, revision: old.revision });
    }
    state.check_order(&key, Some(&command.spec))?;
    if old.is_none() {
        let limit = if kind.is_for_agents() { OBJECTS_OF_AGENTS_MAX } else { OBJECTS_MAX };
        check_limit("objects", state.objects_total(), limit)?;
    }
    let before = old.as_ref().map_or(0, |old| old.spec.len() as u64 + label_bytes(&old.labels));
    let after = bytes as u64 + label_bytes(&command.labels);
    if let Some(more @ 1..) = after.checked_sub(before) {
        check_bytes(state, more, 0)?;
    }

    let revision = state.event_seq.next();
    let uid = old.as_ref().map_or(revision, |old| old.uid);
    change.put_object(Object {
        key,
        uid,
        revision,
        labels: Arc::new(command.labels.clone()),
        spec: Arc::clone(&command.spec),
        spec_version: command.spec_version,
        created: old.as_ref().map_or(change.at, |old| old.created),
        updated: change.at,
        by: change.origin.principal.clone(),
        status: old.map(|old| Arc::clone(&old.status)).unwrap_or_default(),
    });
    Ok(Outcome::ObjectPut { uid, revision })
}

/// A kind that the active feature level has.
pub(super) fn known_kind(state: &State, kind: &ObjectKind) -> Result<&'static dyn Kind, Rejection> {
    let kind = atlas_objects::kind(kind).filter(|kind| kind.level() <= state.level);
    kind.ok_or(Rejection::UnknownObjectKind)
}

/// Refuses a change of an object that is not as its writer believes.
pub(super) fn check_expected(expect: Expect, found: Option<&Object>) -> Result<(), Rejection> {
    let revision = found.map_or(EventSeq(0), |found| found.revision);
    let holds = match expect {
        Expect::Any => true,
        Expect::Absent => found.is_none(),
        Expect::Revision(expected) => found.is_some() && revision == expected,
    };
    if holds { Ok(()) } else { Err(Rejection::ObjectChanged { revision }) }
}

fn refused(refusal: &Refusal) -> Rejection {
    Rejection::ObjectRefused { field: refusal.field.to_owned() }
}

#[cfg(test)]
mod tests {
    use atlas_types::{LABELS_MAX, SPEC_BYTES_MAX};
    use expect_test::expect;

    use crate::tests::check;

    const HOOK: &str = r#"{"events":["job"],"url":"http://a"}"#;

    #[test]
    fn an_object_is_made_changed_and_left_alone() {
        check(
            r#"level 6 -- put namespace a; put namespace a {"agents_max":1}; put namespace a {"agents_max":1};
            put namespace a {"agents_max":1} labels=team:x; put namespace a"#,
            expect![[r#"
                namespace a uid 1 revision 1 {}
                namespace a uid 1 revision 2 {"agents_max":1}
                namespace a uid 1 revision 3 team=x {"agents_max":1}
                namespace a uid 1 revision 4 {}
            "#]],
        );
    }

    #[test]
    fn what_agents_write_leaves_room_for_configuration() {
        let entry = |name: &str| format!(r#"put knowledge {name} {{"content":"x","domain":"d"}}"#);
        let entries = ["a", "b", "c", "d", "e"].map(entry).join("; ");
        check(
            &format!("level 6 -- {entries}; put namespace a; put namespace b"),
            expect![[r#"
                knowledge a uid 1 revision 1 {"content":"x","domain":"d"}
                knowledge b uid 2 revision 2 {"content":"x","domain":"d"}
                knowledge c uid 3 revision 3 {"content":"x","domain":"d"}
                knowledge d uid 4 revision 4 {"content":"x","domain":"d"}
                ! the cluster's limit of 4 for objects is reached
                namespace a uid 5 revision 5 {}
                namespace b uid 6 revision 6 {}
            "#]],
        );
    }

    #[test]
    fn a_writer_says_what_it_expects() {
        check(
            "level 6 -- put namespace a expect=1; put namespace a expect=absent; put namespace a expect=absent;
            put namespace a {\"agents_max\":1} expect=2; put namespace a {\"agents_max\":1} expect=1; put namespace a expect=1",
            expect![[r#"
                ! the object is at revision 0, not at the expected one
                namespace a uid 1 revision 1 {}
                ! the object is at revision 1, not at the expected one
                ! the object is at revision 1, not at the expected one
                namespace a uid 1 revision 2 {"agents_max":1}
                ! the object is at revision 2, not at the expected one
            "#]],
        );
    }

    #[test]
    fn the_kind_decides() {
        check(
            &format!(
                "level 6 -- put gizmo a; put webhook a; put webhook a {HOOK}; put webhook a {HOOK} ns=team; put namespace a ns=team;
                put namespace a {{\"agents_max\":-1}}; put namespace a {{\"b\":1,\"a\":1}}; put namespace a [1]"
            ),
            expect![[r#"
                ! no such kind of object
                ! the object is refused by its kind, for "spec"
                webhook a uid 1 revision 1 {"events":["job"],"url":"http://a"}
                webhook a uid 2 revision 2 {"events":["job"],"url":"http://a"}
                ! the object is refused by its kind, for "metadata.namespace"
                ! the object is refused by its kind, for "spec"
                ! the object is refused by its kind, for "spec"
                ! the object is refused by its kind, for "spec"
            "#]],
        );
    }

    #[test]
    fn an_object_names_others_that_exist() {
        let model = |name: &str, fallbacks: &str| {
            format!(r#"put model {name} {{"fallbacks":[{fallbacks}],"name":"m","provider":"openai"}}"#)
        };
        check(
            &format!(
                r#"level 6 -- {}; {}; {}; {}; put tier fast {{"model":"b"}}; put tier fast {{"model":"a"}};
                delete-object model b; delete-object model a; delete-object tier fast; delete-object model a;
                delete-object model b"#,
                model("a", r#""b""#),
                model("b", ""),
                model("a", r#""b""#),
                model("b", r#""a""#),
            ),
            expect![[r#"
                ! the object is refused by its kind, for "spec.fallbacks"
                model b uid 1 revision 1 {"fallbacks":[],"name":"m","provider":"openai"}
                model a uid 2 revision 2 {"fallbacks":["b"],"name":"m","provider":"openai"}
                ! the object is refused by its kind, for "spec.fallbacks"
                tier fast uid 3 revision 3 {"model":"b"}
                tier fast uid 3 revision 4 {"model":"a"}
                ! the object is in use by a tier or as a fallback of another model
                ! the object is in use by a tier or as a fallback of another model
                tier fast deleted
                model a deleted
                model b deleted
            "#]],
        );
    }

    #[test]
    fn the_size_is_bounded() {
        let text = |bytes: usize| format!(r#"{{"description":"{}"}}"#, "x".repeat(bytes - 18));
        let labels = |count: usize| (0..count).map(|n| format!("k{n}:v")).collect::<Vec<_>>().join(",");
        check(
            &format!(
                "level 6 -- put namespace a {}; put namespace b labels={}; put namespace a {}; config bytes=65540;
                put namespace b {{\"agents_max\":1}}; put namespace a",
                text(SPEC_BYTES_MAX + 1),
                labels(LABELS_MAX + 1),
                text(SPEC_BYTES_MAX),
            ),
            expect![[r#"
                ! a payload of 65537 bytes is too large to be inline
                ! the cluster's limit of 64 for labels is reached
                namespace a uid 1 revision 1 {"description":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                configured
                ! the cluster's limit of 65540 for payload bytes is reached
                namespace a uid 1 revision 3 {}
            "#]],
        );
    }

    #[test]
    fn the_number_is_bounded() {
        let puts = (0..8).map(|n| format!("put namespace n{n};")).collect::<String>();
        check(
            &format!("level 6; {puts} -- put namespace more; delete-object namespace n7; put namespace more"),
            expect![[r#"
                ! the cluster's limit of 8 for objects is reached
                namespace n7 deleted
                namespace more uid 10 revision 10 {}
            "#]],
        );
    }
}
