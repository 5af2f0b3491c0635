//! Mistakes made on purpose, to see whether this layer notices.

/// One mistake, made below or beside the product: its code has no switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// The log's disk reports a sync that it did not make.
    LogNotSynced,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::LogNotSynced];
}
