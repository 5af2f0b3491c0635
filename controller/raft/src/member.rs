//! A member as the group knows it: its name and addresses.

use std::fmt;

use atlas_types::MemberId;

/// The name and addresses of a member. Addresses are `host:port`; empty if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// The name for people.
    pub name: String,
    /// The address for the other members.
    pub peer: String,
    /// The address for workers.
    pub worker: String,
    /// The address for HTTP.
    pub http: String,
}

impl Member {
    /// A member of which only the peer address is known.
    pub fn at(peer: impl Into<String>) -> Self {
        Self { peer: peer.into(), ..Self::default() }
    }
}

/// A member with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its number.
    pub member: MemberId,
    /// The name for people; empty if it has none.
    pub name: String,
    /// `host:port` of its peer door; empty for a member that is alone.
    pub address: String,
    /// `host:port` of its worker door; empty if unknown.
    pub worker: String,
    /// `host:port` of its HTTP door; empty if unknown.
    pub http: String,
}

impl Peer {
    /// A member with the known name and addresses.
    pub fn new(member: MemberId, known: Member) -> Self {
        let Member { name, peer, worker, http } = known;
        Self { member, name, address: peer, worker, http }
    }

    /// Its name, or `c` and its number if it has none.
    pub fn label(&self) -> String {
        if self.name.is_empty() { format!("c{}", self.member) } else { self.name.clone() }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {} at \"{}\"", self.member, self.address)
    }
}
