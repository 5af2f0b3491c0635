//! Starts a run of a chain. Its agents are looked up by a leader task or by a door, never here.

use atlas_objects::ChainSpec;
use atlas_types::{
    ObjectKey, ObjectKind, ObjectName, Outcome, Payload, RUN_STEPS_MAX, RUNS_ACTIVE_MAX, Rejection, Run, RunChange,
    RunDefinition, RunStatus, StartRun, Timestamp,
};

use super::{check_bytes, check_limit, check_size};
use crate::change::Change;

pub(super) fn apply(command: &StartRun, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let StartRun { id, definition, input, priority, metadata } = command;
    if let Some(known) = change.state.runs.get(id) {
        // Asked for again after the request was forgotten: the id was drawn for this request alone.
        let same = known.input == *input && known.namespace == change.origin.namespace;
        return if same { Ok(Outcome::RunStarted { run: *id }) } else { Err(Rejection::StaleRun) };
    }
    check_size(input.inline_bytes())?;
    check_size(metadata.len() as u64)?;
    check_limit("runs", change.state.index.chains.active, RUNS_ACTIVE_MAX)?;
    let (chain, revision, document, steps) = match definition {
        RunDefinition::Given { chain, steps, document } => (chain.clone(), None, document.clone(), *steps),
        RunDefinition::Named(name) => {
            let object = change.state.object(&key(change, name)?).ok_or(Rejection::UnknownObject)?;
            let spec = ChainSpec::read(&object.spec).map_err(|_| Rejection::UnknownObject)?;
            let steps = u32::try_from(spec.steps.len()).unwrap_or(u32::MAX);
            (name.as_str().into(), Some(object.revision), Payload::inline(&object.spec), steps)
        }
    };
    check_size(document.inline_bytes())?;
    check_limit("steps of a run", u64::from(steps).saturating_sub(1), u64::from(RUN_STEPS_MAX))?;
    check_bytes(change.state, input.inline_bytes() + document.inline_bytes() + metadata.len() as u64, 0)?;

    let origin = change.origin;
    let run = Run {
        namespace: origin.namespace.clone(),
        id: *id,
        chain,
        revision,
        definition: document,
        input: input.clone(),
        status: RunStatus::Pending,
        version: 0,
        total_steps: steps,
        plan: None,
        steps: Vec::new(),
        failure: None,
        priority: *priority,
        metadata: metadata.clone(),
        created_at: change.at,
        completed_at: Timestamp::NOT_YET,
        started: change.state.event_seq.next(),
        ended: None,
        principal: origin.principal.clone(),
        door: origin.door,
        trace: origin.trace,
        job: None,
        branches: None,
    };
    change.put_run(run, RunChange::Started);
    Ok(Outcome::RunStarted { run: *id })
}

fn key(change: &Change<'_>, name: &ObjectName) -> Result<ObjectKey, Rejection> {
    let kind = ObjectKind::new("chain").map_err(|_| Rejection::UnknownObjectKind)?;
    Ok(ObjectKey { namespace: change.origin.namespace.clone(), kind, name: name.clone() })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_run_pins_the_definition_of_its_object() {
        check(
            r#"level 6; agent a; put chain c {"name":"c","steps":[{"agent":"a"},{"agent":"a"}]} --
            start r1 chain=c; start r1 chain=c; start r2 chain=none; delete-object chain c; show r1; start r3 steps=1; show r3"#,
            expect![[r#"
                r1 started pending step -1
                ! no such object
                chain c deleted
                r1: pending ready version 1 of 2 steps []
                r3 started pending step -1
                r3: pending ready version 1 of 1 steps []
            "#]],
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let long = "x".repeat(65_537);
        check(
            &format!(
                "level 6; config bytes=100 -- start r1 steps=1001; start r1 input={long}; start r1 input={}",
                &long[..200]
            ),
            expect![[r#"
                ! the cluster's limit of 1000 for steps of a run is reached
                ! a payload of 65537 bytes is too large to be inline
                ! the cluster's limit of 100 for payload bytes is reached
            "#]],
        );
    }
}
