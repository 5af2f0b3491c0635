//! Emergency recovery: a member whose majority is lost for good continues alone, as another generation.
//!
//! Its applied state and its whole log are kept, including entries that it does not know to be committed, because they
//! may have been acknowledged. Data that only the lost members had is lost. The lost members must never run again
//! beside this one. If one does, the new cluster id keeps it out of the new cluster.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use atlas_env::Env;
use atlas_raft::offline::{About, Beginning, StoppedMember, Tail, begin};
use atlas_raft::{Identity, Member, Peer};
use atlas_state::State;
use atlas_types::MemberId;

use crate::{RecoveryError, generation, remove_left_over, sync_dir, write_error};

/// The first member of a cluster.
const FIRST: MemberId = MemberId(1);

/// The planned recovery. The member's files are read and locked.
pub struct Plan {
    data_dir: PathBuf,
    about: About,
    own: Peer,
    state: State,
    member: StoppedMember,
    _lock: File,
}

/// A confirmed plan. Only [`Plan::confirm`] creates one.
pub struct ConfirmedPlan(Plan);

/// The result of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryResult {
    /// The member's name.
    pub name: String,
    /// The cluster that it was a member of.
    pub old_cluster_id: u128,
    /// The new cluster, in which it is the only member.
    pub cluster_id: u128,
    /// The directory with the old log and snapshot.
    pub kept: PathBuf,
}

impl Plan {
    /// Reads the files of a stopped member and applies its log. Changes nothing on disk.
    pub fn new(data_dir: &Path, env: &Env) -> Result<Self, RecoveryError> {
        Self::with(data_dir, Tail::Whole, env)
    }

    /// Like [`Self::new`], for a member whose log may be damaged at its end.
    pub fn with(data_dir: &Path, tail: Tail, env: &Env) -> Result<Self, RecoveryError> {
        let lock = lock(data_dir)?;
        let identity = Identity::read(&*env.files, data_dir)
            .map_err(|source| RecoveryError::Identity { path: data_dir.to_owned(), source })?;
        let member = StoppedMember::open_with(data_dir, tail).map_err(RecoveryError::Member)?;
        let about = member.about();
        let (number, name) = match identity {
            Some(Identity::Member { member, name, .. }) => (member, name),
            // A directory without a stored name that knows only the first member belongs to that member. Assigning any
            // other directory to it would give two members the same number.
            Some(Identity::Joining { .. }) | None if about.knows_no_other_than(FIRST) => (FIRST, format!("c{FIRST}")),
            Some(Identity::Joining { .. }) | None => {
                return Err(RecoveryError::Nameless { path: data_dir.to_owned() });
            }
        };
        let state = member.state().map_err(RecoveryError::Member)?;
        let known = about.members.iter().find(|peer| peer.member == number).cloned();
        let own = Peer { name, ..known.unwrap_or_else(|| Peer::new(number, Member::default())) };
        Ok(Self { data_dir: data_dir.to_owned(), about, own, state, member, _lock: lock })
    }

    /// The member's number, name and addresses.
    pub fn own(&self) -> &Peer {
        &self.own
    }

    /// The summary of the member's files.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The state with which the new cluster would start.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The number of entries that the member does not know to be committed, and that the recovery would keep.
    pub fn unconfirmed(&self) -> u64 {
        let last = self.about.last.map_or(0, |last| last.index);
        last.saturating_sub(self.about.committed.map_or(0, |committed| committed.index))
    }

    /// Confirms the plan with the id of the cluster.
    pub fn confirm(self, typed: &str) -> Result<ConfirmedPlan, RecoveryError> {
        if typed == format!("{:032x}", self.about.cluster_id) {
            Ok(ConfirmedPlan(self))
        } else {
            Err(RecoveryError::NotConfirmed { typed: typed.to_owned() })
        }
    }
}

impl ConfirmedPlan {
    /// Makes the member the only one of a new cluster that continues with its state. The old files are kept beside the
    /// new ones.
    pub fn carry_out(self, env: &Env) -> Result<RecoveryResult, RecoveryError> {
        let Plan { data_dir, about, own, state, member, _lock } = self.0;
        let (raft, new) = (data_dir.join("raft"), data_dir.join("raft.recovering"));
        remove_left_over(&new)?;
        let old_cluster_id = about.cluster_id;
        let cluster_id = env.entropy.u128();
        let image = generation::next(state.to_image(), cluster_id, own.member);
        let state = State::from_image(image).map_err(RecoveryError::State)?;
        let Peer { member: number, name, address, worker, http } = own;
        let known = Member { name: name.clone(), peer: address, worker, http };
        let term = about.last.map_or(0, |last| last.term).max(about.vote.map_or(0, |vote| vote.term)) + 1;
        let index = about.last.map_or(0, |last| last.index) + 1;
        begin(&new, Beginning { member: number, known, state, term, index }, env).map_err(RecoveryError::Member)?;
        // From here on, the history belongs to the new cluster. If the recovery stops later, the history refuses any
        // other log.
        let history = data_dir.join("history.sqlite");
        if history.exists() {
            atlas_history::rebind(&history, cluster_id).map_err(RecoveryError::History)?;
        }
        let identity = Identity::Member { cluster_id, member: number, name: name.clone() };
        identity.write(&*env.files, &data_dir).map_err(write_error(&data_dir))?;
        drop(member);
        let kept = free(data_dir.join(format!("raft.before-{:08x}", (old_cluster_id >> 96) as u32)));
        fs::rename(&raft, &kept).map_err(write_error(&kept))?;
        fs::rename(&new, &raft).map_err(write_error(&raft))?;
        sync_dir(&data_dir)?;
        Ok(RecoveryResult { name, old_cluster_id, cluster_id, kept })
    }
}

/// Locks the data directory. A running controller holds this lock.
fn lock(data_dir: &Path) -> Result<File, RecoveryError> {
    let path = data_dir.join("lock");
    let file = File::open(&path).map_err(write_error(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RecoveryError::Running { path: data_dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(RecoveryError::Write { path, source }),
    }
}

/// The path itself, or the first of `path.2`, `path.3`, … that does not exist.
fn free(path: PathBuf) -> PathBuf {
    let numbered = |number: u32| PathBuf::from(format!("{}.{number}", path.display()));
    if path.exists() { (2..).map(numbered).find(|path| !path.exists()).unwrap_or(path) } else { path }
}
