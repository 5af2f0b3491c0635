//! Creates the data directory for the first member of a new generation from a backup.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use atlas_env::Env;
use atlas_raft::offline::{Beginning, begin};
use atlas_raft::{Identity, Member};
use atlas_state::State;
use atlas_types::{MemberId, StateImage};

use crate::archive::{self, ArchiveContents, ArchiveError, HISTORY, STATE, artifact_of};
use crate::{RecoveryError, generation, parent, remove_left_over, sync_dir, write_error};

const BUFFER_BYTES: usize = 1 << 20;
/// The number of the first member of a cluster.
const FIRST: MemberId = MemberId(1);

/// A backup that was read completely: every part matches the manifest, and the state satisfies its invariants.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// The description and the parts of the backup.
    pub found: ArchiveContents,
    pub state: State,
}

/// A data directory with which a controller can start.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The description and the parts of the backup.
    pub found: ArchiveContents,
    /// The new cluster.
    pub cluster_id: u128,
    /// The last token that counts as issued. The first new lease gets the next one.
    pub grant_seq: u64,
}

/// Reads and verifies a backup. Writes nothing.
pub fn inspect(path: &Path) -> Result<Inspected, RecoveryError> {
    let (found, image) = unpack(path, |_, _| Ok(()))?;
    let state = State::from_image(image).map_err(RecoveryError::State)?;
    Ok(Inspected { found, state })
}

/// Creates `data_dir` from a backup: one member, alone in a cluster with a new id. `data_dir` must not exist or must be
/// empty.
///
/// All files are created in a directory beside it, which is renamed in one step at the end. An interrupted restore
/// therefore leaves nothing with which a controller would start.
pub fn restore(path: &Path, data_dir: &Path, name: &str, env: &Env) -> Result<Restored, RecoveryError> {
    let empty = match fs::read_dir(data_dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(source) => return Err(RecoveryError::Write { path: data_dir.to_owned(), source }),
    };
    if !empty {
        return Err(RecoveryError::Taken { path: data_dir.to_owned() });
    }
    let mut partial = data_dir.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    remove_left_over(&partial)?;
    let artifacts = partial.join("artifacts");
    fs::create_dir_all(&artifacts).map_err(write_error(&artifacts))?;
    let history = partial.join("history.sqlite");
    let (found, image) = unpack(path, |part, input| match artifact_of(part) {
        Some(digest) => {
            let hex = digest.hex();
            let (head, tail) = hex.split_at(2);
            let folder = artifacts.join(head);
            fs::create_dir_all(&folder)?;
            write(input, &folder.join(tail))?;
            File::open(&folder)?.sync_all()
        }
        None if part == HISTORY => write(input, &history),
        None => Ok(()),
    })?;
    sync_dir(&artifacts)?;

    let cluster_id = env.entropy.u128();
    let image = generation::next(image, cluster_id, FIRST);
    let (grant_seq, index) = (image.grant_seq.0, image.seq.0.max(1));
    let state = State::from_image(image).map_err(RecoveryError::State)?;
    atlas_history::rebind(&history, cluster_id).map_err(RecoveryError::History)?;
    let known = Member { name: name.to_owned(), ..Member::default() };
    let beginning = Beginning { member: FIRST, known, state, term: 1, index };
    begin(&partial.join("raft"), beginning, env).map_err(RecoveryError::Member)?;
    let own = Identity::Member { cluster_id, member: FIRST, name: name.to_owned() };
    own.write(&*env.files, &partial).map_err(write_error(&partial))?;
    sync_dir(&partial)?;
    // The rename may replace an empty directory.
    fs::rename(&partial, data_dir).map_err(write_error(data_dir))?;
    sync_dir(parent(data_dir))?;
    Ok(Restored { found, cluster_id, grant_seq })
}

/// Reads an archive completely and decodes its state.
fn unpack(
    path: &Path,
    mut take: impl FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> Result<(ArchiveContents, StateImage), RecoveryError> {
    let file = File::open(path).map_err(|source| RecoveryError::Archive(ArchiveError::Io(source)))?;
    let mut state = None;
    let read = archive::read(BufReader::with_capacity(BUFFER_BYTES, file), |part, input| {
        if part == STATE {
            state = Some(atlas_format::decode_snapshot(input));
            return Ok(());
        }
        take(part, input)
    });
    let found = read.map_err(RecoveryError::Archive)?;
    match state {
        Some(Ok(image)) => Ok((found, image)),
        Some(Err(source)) => Err(RecoveryError::Archive(ArchiveError::State(source))),
        None => Err(RecoveryError::Archive(ArchiveError::Cut)),
    }
}

fn write(input: &mut dyn Read, path: &Path) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    io::copy(input, &mut file)?;
    file.sync_all()
}
