//! How strictly a process tree is contained, depending on what this machine permits.

use std::fmt;

/// How an agent's process tree is contained, the strictest way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// A PID namespace: the kernel kills the whole tree at once.
    PidNamespace,
    /// A PID namespace inside a user namespace that maps this user to itself.
    UserPidNamespace,
    /// The supervisor is the subreaper of the tree and finds its processes in `/proc`. An agent that kills its
    /// supervisor escapes.
    Subreaper,
}

impl Confinement {
    /// All ways, the strictest first.
    pub(super) const ALL: [Self; 3] = [Self::PidNamespace, Self::UserPidNamespace, Self::Subreaper];

    /// Parses a way as named by [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|confinement| confinement.as_str() == text)
    }

    /// The name on the supervisor's command line and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PidNamespace => "pid-namespace",
            Self::UserPidNamespace => "user-pid-namespace",
            Self::Subreaper => "subreaper",
        }
    }
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
