//! Notes what a leader task says about objects. It is not an event: events are what some tasks observe.

use std::sync::Arc;

use atlas_objects::TriggerStatus;
use atlas_types::{Object, ObserveObjects, Outcome, Rejection, STATUS_BYTES_MAX};

use crate::change::Change;

pub(super) fn apply(command: &ObserveObjects, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    for observation in &command.observations {
        if observation.status.len() > STATUS_BYTES_MAX {
            return Err(Rejection::PayloadTooLarge { bytes: observation.status.len() as u64 });
        }
    }
    for observation in &command.observations {
        let seen = (observation.uid, observation.revision);
        let found = change.state.object(&observation.key).filter(|found| (found.uid, found.revision) == seen);
        if let Some(found) = found {
            // The status of a trigger is written by its firings too. Other kinds have one writer.
            let status = match found.key.kind.as_str() {
                "trigger" => TriggerStatus::with_note(found, &observation.status),
                _ => Arc::clone(&observation.status),
            };
            let object = Object { status, ..(**found).clone() };
            change.store_object(&Arc::new(object));
        }
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use atlas_types::STATUS_BYTES_MAX;
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_status_is_kept_with_the_revision_that_was_observed() {
        check(
            "level 6; put namespace a -- observe a {\"seen\":1}; status a; observe a {\"seen\":2} revision=7; status a;
            observe a {\"seen\":2} uid=7; status a; put namespace a {\"agents_max\":1}; status a; observe a {\"seen\":3}; status a;
            delete-object namespace a; put namespace a; status a",
            expect![[r#"
                a: {"seen":1}
                a: {"seen":1}
                a: {"seen":1}
                namespace a uid 1 revision 2 {"agents_max":1}
                a: {"seen":1}
                a: {"seen":3}
                namespace a deleted
                namespace a uid 4 revision 4 {}
                a: none
            "#]],
        );
    }

    #[test]
    fn a_status_is_bounded() {
        let status = format!("\"{}\"", "x".repeat(STATUS_BYTES_MAX - 2));
        check(
            &format!("level 6; put namespace a -- observe a \"{status}\"; observe a {status}; observe gone {status}"),
            expect![[r#"
                ! a payload of 4098 bytes is too large to be inline
            "#]],
        );
    }
}
