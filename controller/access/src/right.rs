//! Rights, and sets of them.

use std::fmt;

/// What a caller must be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Right {
    /// Needs no right: probes, the version, descriptions of the interface.
    Public,
    JobsRead,
    JobsSubmit,
    /// Answer the questions of jobs.
    QuestionsAnswer,
    /// Cancel, retry and resolve jobs of others, and send them messages.
    JobsControl,
    AgentsRead,
    AgentsPublish,
    NodesRead,
    NodesOperate,
    ObjectsRead,
    ObjectsWrite,
    ClusterRead,
    ClusterOperate,
    MetricsRead,
    /// See and change tokens, roles, bindings and policies.
    AccessManage,
    /// See who did what.
    AuditRead,
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 16] = [
        Self::Public,
        Self::JobsRead,
        Self::JobsSubmit,
        Self::QuestionsAnswer,
        Self::JobsControl,
        Self::AgentsRead,
        Self::AgentsPublish,
        Self::NodesRead,
        Self::NodesOperate,
        Self::ObjectsRead,
        Self::ObjectsWrite,
        Self::ClusterRead,
        Self::ClusterOperate,
        Self::MetricsRead,
        Self::AccessManage,
        Self::AuditRead,
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::JobsRead => "jobs.read",
            Self::JobsSubmit => "jobs.submit",
            Self::QuestionsAnswer => "questions.answer",
            Self::JobsControl => "jobs.control",
            Self::AgentsRead => "agents.read",
            Self::AgentsPublish => "agents.publish",
            Self::NodesRead => "nodes.read",
            Self::NodesOperate => "nodes.operate",
            Self::ObjectsRead => "objects.read",
            Self::ObjectsWrite => "objects.write",
            Self::ClusterRead => "cluster.read",
            Self::ClusterOperate => "cluster.operate",
            Self::MetricsRead => "metrics.read",
            Self::AccessManage => "access.manage",
            Self::AuditRead => "audit.read",
        }
    }

    /// The right of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.as_str() == word)
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of rights. [`Right::Public`] is in every set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights(u32);

impl Rights {
    /// All rights.
    pub const ALL: Self = Self::of(&Right::ALL);

    /// A set of these rights.
    pub const fn of(rights: &[Right]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < rights.len() {
            bits |= 1 << rights[at] as u32;
            at += 1;
        }
        Self(bits)
    }

    /// What is in either set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a right is in the set.
    pub fn has(self, right: Right) -> bool {
        right == Right::Public || self.0 & 1 << right as u32 != 0
    }

    /// The rights in the set, without [`Right::Public`].
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| *right != Right::Public && self.has(*right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_right_has_one_word() {
        for right in Right::ALL {
            assert_eq!(Right::of(right.as_str()), Some(right));
            assert!(Rights::of(&[right]).has(right), "{right}");
            assert_eq!(Rights::default().has(right), right == Right::Public, "{right}");
            assert!(Rights::ALL.has(right), "{right}");
        }
        assert_eq!(Right::of("jobs"), None);
        assert_eq!(Rights::ALL.iter().count(), Right::ALL.len() - 1);
    }
}
