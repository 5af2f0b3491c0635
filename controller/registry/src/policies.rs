//! The policies of the cluster, read from their objects when these have changed.

use std::sync::{Arc, Mutex, PoisonError};

use atlas_artifacts::digest_of;
use atlas_objects::{PolicyRule, PolicySpec};
use atlas_policy::{Effect, Rule, RuleText};
use atlas_state::State;
use atlas_types::{EventSeq, Namespace, Object, ObjectKind, PolicyRef};

/// The kind of their objects.
const KIND: &str = "policy";
/// A policy that was read.
pub(crate) struct Policy {
    pub(crate) name: String,
    /// Which one it is, for the jobs that it allows.
    pub(crate) reference: PolicyRef,
    pub(crate) spec: PolicySpec,
    /// Its rules; what is wrong with them, if another release wrote them.
    pub(crate) rules: Result<Vec<Rule>, String>,
}

/// All policies, as of some revisions.
#[derive(Default)]
pub(crate) struct Policies(Mutex<(Vec<EventSeq>, Vec<Arc<Policy>>)>);

impl Policies {
    /// The policies that count in a namespace, by name.
    pub(crate) fn of(&self, state: &State, namespace: &Namespace) -> Vec<Arc<Policy>> {
        self.those(state, |policy| policy.is_in(namespace))
    }

    /// Policies, by name.
    pub(crate) fn those(&self, state: &State, counts: impl Fn(&PolicySpec) -> bool) -> Vec<Arc<Policy>> {
        let Ok(kind) = ObjectKind::new(KIND) else { return Vec::new() };
        let objects: Vec<&Arc<Object>> = state.objects(&Namespace::default_namespace(), &kind, None).collect();
        if objects.is_empty() {
            return Vec::new();
        }
        // A revision is the number of an event, so it names the object as well.
        let revisions: Vec<EventSeq> = objects.iter().map(|object| object.revision).collect();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 != revisions {
            *kept = (revisions, objects.into_iter().map(|object| Arc::new(Policy::read(object))).collect());
        }
        kept.1.iter().filter(|policy| counts(&policy.spec)).cloned().collect()
    }
}

impl Policy {
    fn read(object: &Object) -> Self {
        let name = object.key.name.to_string();
        let (revision, digest) = (object.revision, digest_of(&object.spec));
        let reference = PolicyRef { name: object.key.name.clone(), revision, digest };
        let (spec, rules) = match PolicySpec::read(&object.spec) {
            Ok(spec) => (spec.clone(), rules_of(&spec)),
            Err(error) => (PolicySpec::default(), Err(error.to_string())),
        };
        Self { name, reference, spec, rules }
    }

    pub(crate) fn allows(&self, secret: &str) -> bool {
        self.spec.allowed_secrets.as_ref().is_none_or(|allowed| allowed.contains(secret))
    }

    /// Whether it has rules to evaluate on an operation.
    pub(crate) fn is_about(&self, operation: &str) -> bool {
        self.rules.as_ref().is_ok_and(|rules| rules.iter().any(|rule| rule.is_about(operation)))
    }
}

/// The rules of a policy, or what is wrong with them.
pub(crate) fn rules_of(spec: &PolicySpec) -> Result<Vec<Rule>, String> {
    let text = |rule: &PolicyRule| {
        Rule::parse(&RuleText {
            name: &rule.name,
            on: rule.on.iter().map(String::as_str).collect(),
            when: &rule.when,
            effect: Effect::read(&rule.effect),
            message: rule.message.as_deref(),
        })
    };
    spec.rules.iter().map(text).collect()
}
