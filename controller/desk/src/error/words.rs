//! The texts of errors with several cases.

use atlas_access::Place;
use atlas_types::EventSeq;

pub(super) fn no_such_step(steps: u64, recorded: u64) -> String {
    match recorded {
        0 => "the job has recorded no steps; only agents with a model, graphs and durable programs record them"
            .to_owned(),
        1 => format!("the job has recorded 1 step, and a fork cannot go on after {steps}; the only number is 1"),
        _ => format!(
            "the job has recorded {recorded} steps, and a fork cannot go on after {steps}; the numbers are 1 to {recorded}"
        ),
    }
}

/// `denied by the rule "no network" of the policy "production": ask the platform team`
pub(super) fn denied_by(policy: &str, rule: Option<&str>, why: Option<&str>) -> String {
    let rule = rule.map(|rule| format!("the rule \"{rule}\" of ")).unwrap_or_default();
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("denied by {rule}the policy \"{policy}\"{why}")
}

pub(super) fn asked_by(policy: &str, rule: &str) -> String {
    format!("the rule \"{rule}\" of the policy \"{policy}\" demands an approval")
}

/// A place in a sentence.
pub(super) fn in_place(place: &Place) -> String {
    match place {
        Place::In(namespace) => format!("in the namespace {namespace}"),
        Place::Cluster => "in the cluster".to_owned(),
    }
}

/// `hello 9.9.9; hello has 0.2.0, 0.1.0 (retired)`
pub(super) fn unknown_version(name: &str, version: Option<&str>, versions: &[String]) -> String {
    let asked = version.map(|version| format!(" {version}")).unwrap_or_default();
    let known = if versions.is_empty() { String::new() } else { format!("; {name} has {}", versions.join(", ")) };
    format!("{name}{asked}{known}")
}

pub(super) fn expected(revision: EventSeq) -> String {
    match revision {
        EventSeq(0) => "there is no such object, and a revision was expected".to_owned(),
        revision => format!("the object is at revision {revision}, not at the expected one"),
    }
}
