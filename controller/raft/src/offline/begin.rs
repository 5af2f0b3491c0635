//! Creates the files of a member that starts from a state: a snapshot of it, and a log that continues after the snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use atlas_env::Env;
use atlas_state::State;
use atlas_types::MemberId;

use super::OfflineError;
use crate::Member;
use crate::consensus::machine::Machine;
use crate::consensus::snapshot::{Snapshots, Source};
use crate::consensus::{RaftMembership, RaftSnapshotMeta, RaftStoredMembership, body};
use crate::machine::StateMachine;
use atlas_log::{FileDriver, Limits, Log, LogId, Vote};

/// The initial data of a member.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// Its number; it is the only voter.
    pub member: MemberId,
    /// Its name and addresses.
    pub known: Member,
    /// The state, of the cluster that the new log belongs to.
    pub state: State,
    /// The term of the snapshot's last entry. The log continues after it.
    pub term: u64,
    /// The index of the snapshot's last entry.
    pub index: u64,
}

/// Creates the files of a member in the directory `raft`, which must not exist. A controller can then start with them.
pub fn begin(raft: &Path, beginning: Beginning, env: &Env) -> Result<(), OfflineError> {
    if raft.exists() {
        return Err(OfflineError::Exists { path: raft.to_owned() });
    }
    let Beginning { member, known, state, term, index } = beginning;
    let id = LogId { term, node: member.0, index };
    let cluster_id = state.cluster_id();
    let write = |source| OfflineError::Write { path: raft.to_owned(), source };
    let membership = RaftMembership::new(vec![BTreeSet::from([member.0])], BTreeMap::from([(member.0, known)]));
    let membership = membership.map_err(|error| write(io::Error::other(error)))?;
    let at = body::raft_log_id(id);
    let meta =
        RaftSnapshotMeta { last_log_id: Some(at), last_membership: RaftStoredMembership::new(Some(at), membership) };
    let snapshots = Snapshots::open(env.files.clone(), raft.join("snapshots")).map_err(write)?;
    let source: Source = Box::new(move |mut out: &mut dyn Write| {
        atlas_format::encode_snapshot(&state.to_image(), &mut out).map_err(io::Error::other)
    });
    snapshots.write(&meta, &source, |body| StateMachine::read(body).map(drop)).map_err(write)?;
    let limits = Limits::default();
    let driver = FileDriver::open(&raft.join("log"), limits.segment_bytes, env).map_err(OfflineError::Log)?;
    let log = Log::open(Box::new(driver), limits, Some(cluster_id), env).map_err(OfflineError::Log)?;
    log.save_vote(Vote { term, node: member.0, committed: true }).map_err(OfflineError::Log)?;
    log.purge(id).map_err(OfflineError::Log)
}
