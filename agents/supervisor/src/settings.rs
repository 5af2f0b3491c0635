//! What an agent may do with helpers.

/// The settings of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whether it may start helpers.
    pub spawns: bool,
    /// Most helpers that are not collected.
    pub concurrent: usize,
    /// The deepest place of a helper. That of the first agent is 0.
    pub depth: usize,
    /// Bytes of a helper's output from which it is summarised.
    pub summarize_from: usize,
    /// How long its questions wait for an answer.
    pub escalation_timeout_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { spawns: false, concurrent: 4, depth: 3, summarize_from: 4000, escalation_timeout_ms: 300_000 }
    }
}

/// The agents that can be started.
pub trait Agents {
    /// The settings of an agent, or why it cannot be started.
    fn settings(&self, name: &str) -> Result<Settings, String>;

    /// The eight hexadecimal digits in the id of the helper that is started next, if they are those of something else. `made` counts
    /// the ids of the tree.
    fn digits(&self, _made: u64) -> Option<String> {
        None
    }
}
