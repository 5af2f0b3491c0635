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
/// Where the files are made in a directory that exists.
const INSIDE: &str = "restore.partial";
/// What a directory that counts as empty may have: the leftover of an earlier attempt, and what file systems make in a new volume.
const IGNORED: [&str; 2] = [INSIDE, "lost+found"];
/// What is moved out of there before the log.
const MOVED: [&str; 4] = ["artifacts", "history.sqlite", "history.sqlite-wal", "history.sqlite-shm"];
/// The log and the state of a member. A controller starts with what has them.
const RAFT: &str = "raft";

/// A backup that was read completely: every part matches the manifest, and the state satisfies its invariants.
#[derive(Debug, Clone)]
pub struct CheckedBackup {
    /// The description and the parts of the backup.
    pub found: ArchiveContents,
    pub state: State,
}

/// A data directory with which a controller can start.
#[derive(Debug, Clone)]
pub struct RestoredMember {
    /// The description and the parts of the backup.
    pub found: ArchiveContents,
    /// The new cluster.
    pub cluster_id: u128,
    /// The last token that counts as issued. The first new lease gets the next one.
    pub grant_seq: u64,
}

/// Reads and verifies a backup. Writes nothing.
pub fn inspect(path: &Path) -> Result<CheckedBackup, RecoveryError> {
    let (found, image) = unpack(path, |_, _| Ok(()))?;
    let state = State::from_image(image).map_err(RecoveryError::State)?;
    Ok(CheckedBackup { found, state })
}

/// Creates `data_dir` from a backup: one member, alone in a cluster with a new id. `data_dir` must not exist or must be
/// empty.
///
/// All files are created in a directory beside it, which is renamed in one step at the end. A directory that exists can be a volume, which
/// nothing replaces: there they are created inside, and the log moves to its place after the others. An interrupted restore therefore leaves
/// nothing with which a controller would start.
pub fn restore(path: &Path, data_dir: &Path, name: &str, env: &Env) -> Result<RestoredMember, RecoveryError> {
    remove_moved(data_dir)?;
    let exists = match fs::read_dir(data_dir) {
        Ok(entries) => check_is_empty(data_dir, entries).map(|()| true)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(source) => return Err(RecoveryError::Write { path: data_dir.to_owned(), source }),
    };
    let partial = if exists {
        data_dir.join(INSIDE)
    } else {
        let mut beside = data_dir.as_os_str().to_owned();
        beside.push(".partial");
        PathBuf::from(beside)
    };
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
    begin(&partial.join(RAFT), beginning, env).map_err(RecoveryError::Member)?;
    let own = Identity::Member { cluster_id, member: FIRST, name: name.to_owned() };
    if exists {
        move_up(&partial, data_dir)?;
        // The first member needs no file to be known by, so it does not matter whether it gets this far.
        own.write(&*env.files, data_dir).map_err(write_error(data_dir))?;
    } else {
        own.write(&*env.files, &partial).map_err(write_error(&partial))?;
        sync_dir(&partial)?;
        fs::rename(&partial, data_dir).map_err(write_error(data_dir))?;
        sync_dir(parent(data_dir))?;
    }
    Ok(RestoredMember { found, cluster_id, grant_seq })
}

/// Removes what an attempt has moved that was interrupted before it moved the log.
fn remove_moved(data_dir: &Path) -> Result<(), RecoveryError> {
    if data_dir.join(RAFT).exists() || !data_dir.join(INSIDE).join(RAFT).exists() {
        return Ok(());
    }
    MOVED.iter().map(|name| data_dir.join(name)).try_for_each(|path| {
        if path.is_file() { fs::remove_file(&path).map_err(write_error(&path)) } else { remove_left_over(&path) }
    })
}

fn check_is_empty(data_dir: &Path, entries: fs::ReadDir) -> Result<(), RecoveryError> {
    for entry in entries {
        let name = entry.map_err(write_error(data_dir))?.file_name();
        if !IGNORED.iter().any(|ignored| name == *ignored) {
            return Err(RecoveryError::Taken { path: data_dir.to_owned() });
        }
    }
    Ok(())
}

/// Moves the files of a directory to the one that it is in, those last with which a controller starts.
fn move_up(partial: &Path, data_dir: &Path) -> Result<(), RecoveryError> {
    let entries =
        fs::read_dir(partial).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(write_error(partial))?;
    let mut names: Vec<_> = entries.into_iter().map(|entry| entry.file_name()).collect();
    names.sort_by_key(|name| name == RAFT);
    for name in names {
        if name == RAFT {
            sync_dir(data_dir)?;
        }
        fs::rename(partial.join(&name), data_dir.join(&name)).map_err(write_error(data_dir))?;
    }
    fs::remove_dir(partial).map_err(write_error(partial))?;
    sync_dir(data_dir)
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
