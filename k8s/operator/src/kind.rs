//! The kinds of resources.

/// The group of the resources.
pub const GROUP: &str = "atlas.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";

/// A kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A version of an agent, with its files.
    Agent,
    /// A chain of agents.
    Chain,
    /// A namespace of the cluster, with its limits.
    Namespace,
    /// A model.
    Model,
    /// A trigger.
    Trigger,
}

impl Kind {
    /// All of them, by name.
    pub const ALL: [Self; 5] = [Self::Agent, Self::Namespace, Self::Chain, Self::Model, Self::Trigger];

    /// Its name in Kubernetes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "Agent",
            Self::Chain => "Chain",
            Self::Namespace => "AtlasNamespace",
            Self::Model => "Model",
            Self::Trigger => "Trigger",
        }
    }

    /// The name of its list.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Agent => "agents",
            Self::Chain => "chains",
            Self::Namespace => "atlasnamespaces",
            Self::Model => "models",
            Self::Trigger => "triggers",
        }
    }

    /// The kind of the cluster's objects that it describes; agents are none.
    pub fn object(self) -> Option<&'static str> {
        match self {
            Self::Agent => None,
            Self::Chain => Some("chain"),
            Self::Namespace => Some("namespace"),
            Self::Model => Some("model"),
            Self::Trigger => Some("trigger"),
        }
    }
}
