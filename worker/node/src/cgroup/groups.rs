//! The groups of one worker: which limits they can enforce on this machine, and a group for each tree.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atlas_types::NodeId;
use nix::errno::Errno;
use sha2::{Digest, Sha256};
use tracing::warn;

use super::group::{Group, Left, PROCESSES, write};
use super::layout::{self, Cgroup, Controller, Parent, Version, WORKER_GROUP};
use super::{Enforced, Limits};

const ALL: [Controller; 2] = [Controller::Memory, Controller::Cpu];

/// The groups of one worker.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    memory: Option<Parent>,
    cpu: Option<Parent>,
    /// The prefix of the names of this worker's groups. It is the same for all processes of the worker.
    prefix: String,
    next: AtomicU64,
    left: Arc<Left>,
}

impl Groups {
    /// Determines which limits groups can enforce on this machine, and removes groups of an earlier process of this
    /// worker. Returns why other limits are not enforced. `enters` tries to put a process into groups. Blocks.
    pub(crate) fn open(
        choice: &Cgroup,
        node: &NodeId,
        data_dir: &Path,
        enters: impl FnOnce(Vec<File>) -> bool,
    ) -> (Self, Vec<String>) {
        let under = match choice {
            Cgroup::Off => return (Self::default(), Vec::new()),
            Cgroup::Auto => None,
            Cgroup::Under(path) => Some(path.as_path()),
        };
        let owner = Sha256::digest(format!("{node} {}", data_dir.display()));
        let prefix = format!("atlas-{:02x}{:02x}{:02x}{:02x}-", owner[0], owner[1], owner[2], owner[3]);
        let mut groups = Self { prefix, ..Self::default() };
        let mut reasons = Vec::new();
        for controller in ALL {
            match parent(controller, under) {
                Ok(parent) => *groups.parent_mut(controller) = Some(parent),
                Err(error) => reasons.push(format!("{}: {error}", controller.name())),
            }
        }
        groups.remove_earlier();
        reasons.extend(groups.check(enters));
        (groups, reasons)
    }

    /// The enforced limits as text. None if no limit is enforced.
    pub(crate) fn text(&self) -> Option<String> {
        let said = |controller: Controller| {
            self.parent(controller).map(|parent| format!("{} by {}", controller.name(), parent.version))
        };
        let said: Vec<String> = ALL.into_iter().filter_map(said).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// A group for a process tree, if a limit needs one, and the limits that are then enforced. Blocks.
    pub(crate) fn create(&self, limits: Limits) -> (Option<Group>, Enforced) {
        let (group, enforced, errors) = self.try_create(limits);
        for (directory, error) in errors {
            warn!(%error, "could not limit an agent by the cgroup \"{}\"", directory.display());
        }
        (group, enforced)
    }

    fn try_create(&self, limits: Limits) -> (Option<Group>, Enforced, Vec<(PathBuf, io::Error)>) {
        self.left.retry();
        let name = format!("{}{}-{}", self.prefix, std::process::id(), self.next.fetch_add(1, Ordering::Relaxed));
        let mut group = Group::new(Arc::clone(&self.left));
        let mut enforced = Enforced::by_rlimit(limits);
        let mut errors = Vec::new();
        for (controller, amount) in ALL.into_iter().zip([limits.memory_bytes, limits.cores]) {
            let (Some(parent), Some(amount)) = (self.parent(controller), amount) else { continue };
            let directory = parent.directory.join(&name);
            match group.limit(&directory, parent.version, controller, amount) {
                Ok(()) => *enforced.by(controller) = Some(parent.version),
                Err(error) => errors.push((directory, error)),
            }
        }
        ((!group.is_empty()).then_some(group), enforced, errors)
    }

    /// Disables controllers that do not work on this machine, and returns the reasons.
    fn check(&mut self, enters: impl FnOnce(Vec<File>) -> bool) -> Vec<String> {
        let (group, enforced, errors) =
            self.try_create(Limits { memory_bytes: Some(1 << 30), cores: Some(1), ..Limits::default() });
        let mut reasons: Vec<String> =
            errors.into_iter().map(|(directory, error)| format!("\"{}\": {error}", directory.display())).collect();
        let entered = group.as_ref().is_none_or(|group| group.entrances().is_ok_and(enters));
        if !entered {
            reasons.push("no process can be moved into a group".to_owned());
        }
        let Enforced { memory, cpu, .. } = enforced;
        self.memory.take_if(|_| !entered || memory.is_none());
        self.cpu.take_if(|_| !entered || cpu.is_none());
        reasons
    }

    /// Removes groups that a killed worker left. Those with remaining processes are removed later.
    fn remove_earlier(&self) {
        for parent in ALL.into_iter().filter_map(|controller| self.parent(controller)) {
            let entries = fs::read_dir(&parent.directory).into_iter().flatten().flatten();
            let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&self.prefix));
            ours.for_each(|entry| self.left.remove(entry.path()));
        }
    }

    fn parent(&self, controller: Controller) -> Option<&Parent> {
        match controller {
            Controller::Memory => self.memory.as_ref(),
            Controller::Cpu => self.cpu.as_ref(),
        }
    }

    fn parent_mut(&mut self, controller: Controller) -> &mut Option<Parent> {
        match controller {
            Controller::Memory => &mut self.memory,
            Controller::Cpu => &mut self.cpu,
        }
    }
}

/// Why there is no parent group for new groups.
#[derive(Debug, thiserror::Error)]
enum ParentError {
    #[error(transparent)]
    Absent(#[from] layout::Absent),
    #[error("could not read \"{file}\": {source}")]
    Read { file: &'static str, source: io::Error },
    #[error("could not create the cgroup \"{}\": {source}", .directory.display())]
    Create { directory: PathBuf, source: io::Error },
    #[error("the cgroup \"{}\" does not have the controller", .0.display())]
    NotOffered(PathBuf),
    #[error("could not delegate the controller to children of \"{}\": {source}", .directory.display())]
    NotDelegated { directory: PathBuf, source: io::Error },
}

/// The parent group for groups of `controller`, ready for use.
fn parent(controller: Controller, under: Option<&Path>) -> Result<Parent, ParentError> {
    let read = |file| fs::read_to_string(file).map_err(|source| ParentError::Read { file, source });
    let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
    let parent = layout::find(controller, &own, &mounts, under)?;
    let directory = || parent.directory.clone();
    if !parent.is_own {
        fs::create_dir_all(&parent.directory)
            .map_err(|source| ParentError::Create { directory: directory(), source })?;
    }
    if parent.version == Version::V2 {
        let lists = |file| has(&parent.directory.join(file), controller.name());
        if !lists("cgroup.controllers") {
            return Err(ParentError::NotOffered(directory()));
        }
        if !lists("cgroup.subtree_control") {
            delegate(&parent, controller)
                .map_err(|source| ParentError::NotDelegated { directory: directory(), source })?;
        }
    }
    Ok(parent)
}

fn has(file: &Path, word: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|listed| listed == word))
}

/// Enables a controller for the children of a group of version 2. Such a group may not contain processes. If this
/// process is the only one in it, it moves to a child group.
fn delegate(parent: &Parent, controller: Controller) -> io::Result<()> {
    let enable = || write(&parent.directory.join("cgroup.subtree_control"), &format!("+{}", controller.name()));
    let is_busy = |error: &io::Error| error.raw_os_error() == Some(Errno::EBUSY as i32);
    match enable() {
        Err(error) if parent.is_own && is_busy(&error) => {}
        done => return done,
    }
    let child = parent.directory.join(WORKER_GROUP);
    match fs::create_dir(&child) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // 0 stands for the writing process.
    write(&child.join(PROCESSES), "0")?;
    enable().inspect_err(|_| {
        // Other processes are also in the group, so this process moves back.
        let _ = write(&parent.directory.join(PROCESSES), "0");
        let _ = fs::remove_dir(&child);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_delegated_by_its_name_and_what_is_no_group_is_an_error() {
        let group = tempfile::tempdir().expect("temporary directory");
        let directory = group.path().to_owned();
        let parent = Parent { version: Version::V2, directory: directory.clone(), is_own: true };
        assert_eq!(delegate(&parent, Controller::Cpu).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        let file = directory.join("cgroup.subtree_control");
        fs::write(&file, "").expect("writable");
        delegate(&parent, Controller::Memory).expect("writable");
        assert!(has(&file, "+memory") && !has(&file, "+cpu") && !has(&directory.join("other"), "memory"));
    }

    #[test]
    fn groups_of_the_same_worker_are_found_again_and_others_are_kept() {
        let place = tempfile::tempdir().expect("temporary directory");
        let directory = place.path().to_owned();
        let memory = Some(Parent { version: Version::V1, directory: directory.clone(), is_own: true });
        let groups = Groups { memory, prefix: "atlas-0a-".to_owned(), ..Groups::default() };
        for name in ["atlas-0a-12-0", "atlas-0b-12-0", "other"] {
            fs::create_dir(directory.join(name)).expect("writable");
        }
        groups.remove_earlier();
        let mut left: Vec<_> =
            fs::read_dir(&directory).expect("readable").flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["atlas-0b-12-0", "other"]);
    }
}
