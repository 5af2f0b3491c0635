//! Namespaces: limits of what may be in one. A namespace needs no object; without one it has the limits of the cluster alone.

use atlas_types::{Level, Micros, Namespace, ObjectKey, Rate, WEIGHT_MAX, level};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, Scope, View, read};

/// The limits of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct NamespaceSpec {
    /// What the namespace is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Most jobs that wait; more are refused.
    #[serde(default)]
    pub jobs_pending_max: Option<u64>,
    /// Most bytes of the inputs of jobs that have not ended; more are refused.
    #[serde(default)]
    pub jobs_bytes_max: Option<u64>,
    /// Most jobs that run on nodes at once; further ones wait.
    #[serde(default)]
    pub jobs_running_max: Option<u32>,
    /// How often jobs start on nodes; further ones wait.
    #[serde(default)]
    pub jobs_rate: Option<RateSpec>,
    /// Its share of the cluster while others want it as well, against theirs.
    #[serde(default)]
    pub weight: Option<u32>,
    /// How long a job has to wait to go before those of the next priority that were queued later.
    #[serde(default)]
    pub aging_seconds: Option<u64>,
    /// What happens to a job that no registered node could run, unless it says so itself.
    #[serde(default)]
    pub unsatisfiable: Option<Unsatisfiable>,
    /// Most agent versions.
    #[serde(default)]
    pub agents_max: Option<u64>,
    /// How many ended jobs its history keeps, the latest ones.
    #[serde(default)]
    pub history_jobs_max: Option<u64>,
    /// For how many seconds its history keeps an ended job.
    #[serde(default)]
    pub history_seconds_max: Option<u64>,
    /// Domains of knowledge that agents write only if their contracts name them: `*` does not open them.
    #[serde(default)]
    pub protected_domains: Vec<String>,
}

/// What happens to a job that no registered node could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unsatisfiable {
    /// It fails at once.
    Fail,
    /// It waits for a node that can.
    Wait,
}

/// How often jobs start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct RateSpec {
    /// So many may start in this time.
    pub jobs: u32,
    pub seconds: u64,
    /// So many may start at once after a pause; none for as many as start in one second.
    #[serde(default)]
    pub burst: Option<u32>,
}

impl RateSpec {
    /// As the state counts it.
    pub fn rate(&self) -> Rate {
        Rate::new(self.jobs, self.seconds, self.burst)
    }

    fn admit(self) -> Result<(), Refusal> {
        let jobs_max = Rate::JOBS_MAX.into();
        within("spec.jobs_rate.jobs", Some(self.jobs.into()), jobs_max)?;
        within("spec.jobs_rate.seconds", Some(self.seconds), Rate::SECONDS_MAX)?;
        within("spec.jobs_rate.burst", self.burst.map(u64::from), jobs_max)
    }
}

/// Most protected domains.
const PROTECTED_DOMAINS_MAX: usize = 1_000;

/// Longest time for which a job has to wait to count as much as the next priority.
const AGING_SECONDS_MAX: u64 = 30 * 86_400;

fn within(field: &'static str, amount: Option<u64>, most: u64) -> Result<(), Refusal> {
    match amount {
        Some(amount) if amount == 0 || amount > most => {
            Err(Refusal::new(field, format!("is not between 1 and {most}")))
        }
        _ => Ok(()),
    }
}

impl NamespaceSpec {
    /// How long a job has to wait to count as much as the next priority; none if jobs do not age.
    pub fn aging(&self) -> Option<Micros> {
        self.aging_seconds.map(Micros::from_secs)
    }

    /// Reads the spec of a namespace.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }
}

pub(crate) struct NamespaceKind;

impl Kind for NamespaceKind {
    fn name(&self) -> &'static str {
        "namespace"
    }

    fn about(&self) -> &'static str {
        "Limits of the namespace that has the object's name."
    }

    fn scope(&self) -> Scope {
        Scope::Cluster
    }

    fn level(&self) -> Level {
        level::OBJECTS
    }

    fn right(&self) -> &'static str {
        "cluster.operate"
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "description": { "type": ["string", "null"], "description": "What the namespace is for." },
                "jobs_pending_max": {
                    "type": ["integer", "null"], "minimum": 0,
                    "description": "Maximum number of pending jobs; further ones are refused. Retries after a failure are not counted."
                },
                "jobs_bytes_max": {
                    "type": ["integer", "null"], "minimum": 0,
                    "description": "Maximum number of bytes of the inputs of jobs that have not ended; further jobs are refused. Retries after a failure and the jobs of a run are not refused."
                },
                "jobs_running_max": {
                    "type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX,
                    "description": "Maximum number of jobs that run at once; further ones wait. Jobs that runs of chains carry are not counted, and a job that waits for its child lends its place to it."
                },
                "jobs_rate": {
                    "type": ["object", "null"], "additionalProperties": false, "required": ["jobs", "seconds"],
                    "description": "How often jobs start; further ones wait.",
                    "properties": {
                        "jobs": { "type": "integer", "minimum": 1, "maximum": Rate::JOBS_MAX, "description": "So many jobs may start in this time." },
                        "seconds": { "type": "integer", "minimum": 1, "maximum": Rate::SECONDS_MAX, "description": "The time." },
                        "burst": { "type": ["integer", "null"], "minimum": 1, "maximum": Rate::JOBS_MAX, "description": "So many may start at once after a pause; by default as many as start in one second." }
                    }
                },
                "weight": {
                    "type": ["integer", "null"], "minimum": 1, "maximum": WEIGHT_MAX,
                    "description": "Share of the cluster that its jobs get while jobs of other namespaces wait as well, relative to their weights; by default 1."
                },
                "aging_seconds": {
                    "type": ["integer", "null"], "minimum": 1, "maximum": AGING_SECONDS_MAX,
                    "description": "Time after which a waiting job goes before jobs that have one priority more and were queued this much later; without it priorities are exact."
                },
                "unsatisfiable": {
                    "enum": ["fail", "wait", null],
                    "description": "What happens to a job that no registered node could run, unless the submission says so: it fails at once, the default, or waits for such a node."
                },
                "agents_max": {
                    "type": ["integer", "null"], "minimum": 0,
                    "description": "Maximum number of registered agent versions."
                },
                "history_jobs_max": {
                    "type": ["integer", "null"], "minimum": 0,
                    "description": "Maximum number of ended jobs in the history; the oldest ones are removed."
                },
                "history_seconds_max": {
                    "type": ["integer", "null"], "minimum": 0,
                    "description": "Time after which an ended job is removed from the history, in seconds."
                },
                "protected_domains": {
                    "type": "array", "maxItems": PROTECTED_DOMAINS_MAX, "items": { "type": "string", "minLength": 1, "maxLength": 128 },
                    "description": "Domains of knowledge that agents write only if their contracts name them; `*` does not open them."
                }
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        Namespace::new(key.name.as_str())
            .map_err(|error| Refusal::new("metadata.name", format!("is refused: {error}")))?;
        let spec = NamespaceSpec::read(spec)?;
        spec.jobs_rate.map_or(Ok(()), RateSpec::admit)?;
        if spec.protected_domains.len() > PROTECTED_DOMAINS_MAX {
            let text = format!("has more than {PROTECTED_DOMAINS_MAX} elements");
            return Err(Refusal::new("spec.protected_domains", text));
        }
        within("spec.weight", spec.weight.map(u64::from), WEIGHT_MAX.into())?;
        within("spec.aging_seconds", spec.aging_seconds, AGING_SECONDS_MAX)
    }

    fn used_by(&self, view: &dyn View, key: &ObjectKey) -> Option<&'static str> {
        view.content_of(&Namespace::new(key.name.as_str()).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::{check, key};

    #[test]
    fn documents() {
        check(
            "namespace",
            &[
                r#"{}"#,
                r#"{"agents_max":5,"description":"tests","jobs_pending_max":10}"#,
                r#"{"jobs_bytes_max":1048576}"#,
                r#"{"jobs_bytes_max":-1}"#,
                r#"{"jobs_running_max":8}"#,
                r#"{"jobs_running_max":4294967296}"#,
                r#"{"jobs_rate":{"jobs":60,"seconds":60}}"#,
                r#"{"jobs_rate":{"burst":5,"jobs":60,"seconds":60}}"#,
                r#"{"jobs_rate":{"jobs":0,"seconds":60}}"#,
                r#"{"jobs_rate":{"jobs":1,"seconds":86401}}"#,
                r#"{"jobs_rate":{"burst":0,"jobs":1,"seconds":1}}"#,
                r#"{"jobs_rate":{"jobs":1}}"#,
                r#"{"aging_seconds":60,"weight":4}"#,
                r#"{"weight":0}"#,
                r#"{"weight":1001}"#,
                r#"{"aging_seconds":0}"#,
                r#"{"unsatisfiable":"wait"}"#,
                r#"{"unsatisfiable":"never"}"#,
                r#"{"agents_max":null,"later":[1]}"#,
                r#"{"history_jobs_max":1000,"history_seconds_max":86400}"#,
                r#"{"history_jobs_max":-1}"#,
                r#"{"agents_max":-1}"#,
                r#"{"agents_max":"5"}"#,
                r#"{"agents_max": 5}"#,
                r#"[]"#,
            ],
            &expect![[r#"
                ok {}
                ok {"agents_max":5,"description":"tests","jobs_pending_max":10}
                ok {"jobs_bytes_max":1048576}
                ! `spec` cannot be read: invalid value: integer `-1`, expected u64 at line 1 column 20
                ok {"jobs_running_max":8}
                ! `spec` cannot be read: invalid value: integer `4294967296`, expected u32 at line 1 column 30
                ok {"jobs_rate":{"jobs":60,"seconds":60}}
                ok {"jobs_rate":{"burst":5,"jobs":60,"seconds":60}}
                ! `spec.jobs_rate.jobs` is not between 1 and 1000000
                ! `spec.jobs_rate.seconds` is not between 1 and 86400
                ! `spec.jobs_rate.burst` is not between 1 and 1000000
                ! `spec` cannot be read: missing field `seconds` at line 1 column 23
                ok {"aging_seconds":60,"weight":4}
                ! `spec.weight` is not between 1 and 1000
                ! `spec.weight` is not between 1 and 1000
                ! `spec.aging_seconds` is not between 1 and 2592000
                ok {"unsatisfiable":"wait"}
                ! `spec` cannot be read: unknown variant `never`, expected `fail` or `wait` at line 1 column 24
                ok {"agents_max":null,"later":[1]}
                ok {"history_jobs_max":1000,"history_seconds_max":86400}
                ! `spec` cannot be read: invalid value: integer `-1`, expected u64 at line 1 column 22
                ! `spec` cannot be read: invalid value: integer `-1`, expected u64 at line 1 column 16
                ! `spec` cannot be read: invalid type: string "5", expected u64 at line 1 column 17
                ! `spec` cannot be read: the document is not canonical JSON
                ! `spec` is not an object
            "#]],
        );
    }

    #[test]
    fn the_object_is_in_default_and_has_the_name_of_a_namespace() {
        let place = |namespace: &str, name: &str| {
            let key = ObjectKey { namespace: Namespace::new(namespace).expect("a name"), ..key("namespace", name) };
            crate::check(&NamespaceKind, &key, b"{}").map_err(|refusal| refusal.field)
        };
        assert_eq!(place("default", "team-a"), Ok(()));
        assert_eq!(place("team-a", "team-a"), Err("metadata.namespace"));
        assert_eq!(place("default", &"x".repeat(64)), Err("metadata.name"));
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = NamespaceSpec::read(include_bytes!("../golden/namespace.json")).expect("a spec");
        let expected = NamespaceSpec {
            description: Some("the data team".into()),
            jobs_pending_max: Some(200),
            jobs_bytes_max: None,
            jobs_running_max: None,
            jobs_rate: Some(RateSpec { jobs: 60, seconds: 60, burst: Some(5) }),
            weight: Some(4),
            aging_seconds: Some(600),
            unsatisfiable: None,
            agents_max: Some(50),
            history_jobs_max: Some(1_000),
            history_seconds_max: Some(86_400),
            protected_domains: vec!["physics".to_owned()],
        };
        assert_eq!(spec, expected);
    }
}
