//! Which records are wanted.

use crate::{Decision, Record};

/// A condition on records; a member that is none accepts all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub principal: Option<String>,
    pub verb: Option<String>,
    /// What the object begins with.
    pub object: Option<String>,
    pub namespace: Option<String>,
    pub decision: Option<Decision>,
    /// Not before this time, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Before this time.
    pub until_ms: Option<u64>,
}

impl Filter {
    /// Whether a record is wanted.
    pub fn admits(&self, record: &Record) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.principal, &record.principal)
            && is(&self.verb, &record.verb)
            && is(&self.namespace, &record.namespace)
            && self.object.as_ref().is_none_or(|object| record.object.starts_with(object.as_str()))
            && self.decision.is_none_or(|decision| decision == record.decision)
            && self.since_ms.is_none_or(|since| record.at_ms >= since)
            && self.until_ms.is_none_or(|until| record.at_ms < until)
    }
}
