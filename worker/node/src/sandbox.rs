//! Which programs of a worker are confined, and to what ([ADR 45](../../../docs/adr/0045-sandbox.md)).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use atlas_contract::Contract;
use atlas_sandbox::{Access, Enforcement, Files, Means, Sandbox, Secrets};

use crate::folder::{Folder, OwnDirectory};

/// Whether agents are confined to the permissions of their contracts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// No agent is.
    Off,
    /// Those whose contract states permissions for files or the network are, as far as the machine can enforce it.
    #[default]
    BestEffort,
    /// All are, and an attempt fails where the machine cannot enforce the permissions.
    Required,
}

impl SandboxMode {
    /// Parses a mode as named by [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Off, Self::BestEffort, Self::Required].into_iter().find(|mode| mode.as_str() == text)
    }

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::BestEffort => "best-effort",
            Self::Required => "required",
        }
    }
}

/// The folder for temporary files of packages, inside their environment: on the disk, because packages may be large.
pub(crate) const TEMPORARY: &str = "atlas-tmp";

/// Why an agent is not confined, and must not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unconfined {
    /// The permissions cannot be enforced here, and must be.
    #[error("{agent} cannot be confined on this node, which is required: not enforced: {}", .missing.join(", "))]
    Lacks { agent: String, missing: Vec<&'static str> },
    /// It would have no place for temporary files.
    #[error("could not make a folder for the temporary files of {agent}: {why}")]
    Folder { agent: String, why: String },
}

/// Makes the confinements of programs.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    pub(crate) mode: SandboxMode,
    pub(crate) means: Means,
    /// Places that the operator and the worker keep from agents, as they were given. They are looked at when a program
    /// starts: some are made later, and some are links that change.
    pub(crate) hidden: Vec<PathBuf>,
    /// The home directory of the worker's user.
    pub(crate) home: Option<PathBuf>,
    /// Places that every agent sees, such as our Python package.
    pub(crate) visible: Vec<PathBuf>,
    /// The size of the folder for temporary files of a tree.
    pub(crate) scratch_bytes: u64,
    /// The most processes and threads of a tree.
    pub(crate) processes_max: u64,
    /// Where folders for temporary files are on a machine without namespaces.
    pub(crate) scratch: PathBuf,
    /// Where the working directories of programs are that have a copy of their package.
    pub(crate) work: PathBuf,
    /// True if all GPUs are seen by all jobs.
    pub(crate) all_gpus: bool,
}

/// The confinement of one process tree.
#[derive(Debug)]
pub(crate) struct Confined {
    pub(crate) sandbox: Sandbox,
    /// Its folder for temporary files, if it has none in memory.
    folder: Option<Folder>,
    /// A folder for temporary files that is used instead. It belongs to somebody else.
    temporary: Option<PathBuf>,
}

/// The places of a program, and its devices.
struct Places<'a> {
    directory: &'a Path,
    visible: &'a [&'a Path],
    writable: &'a [&'a Path],
    devices: Vec<PathBuf>,
}

impl Sandboxes {
    /// The confinement of a program of an agent that runs in `directory`; none for one with the rights of the worker. It sees
    /// `visible` and writes to `writable`. Blocks.
    pub(crate) fn of(
        &self,
        contract: &Contract,
        directory: &Path,
        visible: &[&Path],
        writable: &[&Path],
    ) -> Result<Option<Confined>, Unconfined> {
        let Some(access) = self.access(contract)? else { return Ok(None) };
        let places = Places { directory, visible, writable, devices: self.devices(contract) };
        self.confined(access, places, contract.name.as_str()).map(Some)
    }

    /// The confinement of a program that has these rights and no devices, and runs in `directory`. Blocks.
    pub(crate) fn with(&self, access: Access, directory: &Path, name: &str) -> Result<Confined, Unconfined> {
        self.confined(access, Places { directory, visible: &[], writable: &[], devices: Vec::new() }, name)
    }

    /// The confinement of the build scripts of packages, which write to `directory` alone, also their temporary files, and see `visible`;
    /// none if they have the rights of the worker. They belong to no contract: whoever lists a package does not write its scripts. Blocks.
    pub(crate) fn of_packages(&self, directory: &Path, visible: &[&Path]) -> Result<Option<Confined>, Unconfined> {
        const NAME: &str = "the installation of Python packages";
        if self.mode == SandboxMode::Off {
            return Ok(None);
        }
        let access = Access { files: Files::Read, network: true };
        self.check_means(access, NAME)?;
        let places = Places { directory, visible, writable: &[directory], devices: Vec::new() };
        let confined = self.confined(access, places, NAME)?;
        Ok(Some(Confined { temporary: Some(directory.join(TEMPORARY)), ..confined }))
    }

    /// The confinement of a model that the worker runs itself: it sees `visible` and has no network; none if no program is confined here.
    /// Blocks.
    pub(crate) fn of_model(&self, directory: &Path, visible: &[&Path]) -> Result<Option<Confined>, Unconfined> {
        const NAME: &str = "the model of the provider local";
        if self.mode == SandboxMode::Off {
            return Ok(None);
        }
        let access = Access { files: Files::Own, network: false };
        self.check_means(access, NAME)?;
        self.confined(access, Places { directory, visible, writable: &[], devices: Vec::new() }, NAME).map(Some)
    }

    fn confined(&self, access: Access, places: Places<'_>, name: &str) -> Result<Confined, Unconfined> {
        let Places { directory, visible, writable, devices } = places;
        let folder = match self.means.namespaces {
            Some(_) => None,
            None => Some(
                Folder::new(&self.scratch)
                    .map_err(|error| Unconfined::Folder { agent: name.to_owned(), why: error.to_string() })?,
            ),
        };
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let all = |given: &[&Path], more: &[PathBuf]| {
            let given = given.iter().filter_map(|path| path.canonicalize().ok());
            // The root would be everything.
            given.chain(more.iter().cloned()).filter(|path| path.parent().is_some()).collect::<Vec<PathBuf>>()
        };
        let mut visible = all(visible, &self.visible);
        visible.push(directory.clone());
        let mut writable = all(writable, &[]);
        writable.extend(folder.iter().map(|folder| folder.path().to_owned()));
        let sandbox = Sandbox {
            access,
            means: self.means,
            directory,
            visible,
            writable,
            hidden: self.hidden.iter().chain(Secrets::find(self.home.as_deref()).places()).cloned().collect(),
            devices,
            scratch_bytes: self.scratch_bytes,
            processes_max: self.processes_max,
        };
        Ok(Confined { sandbox, folder, temporary: None })
    }

    /// What an agent may do; none if it has the rights of the worker.
    pub(crate) fn access(&self, contract: &Contract) -> Result<Option<Access>, Unconfined> {
        let confines = match self.mode {
            SandboxMode::Off => false,
            SandboxMode::BestEffort => contract.states_access,
            SandboxMode::Required => true,
        };
        if !confines {
            return Ok(None);
        }
        let access = Access::of(&contract.permissions.filesystem, &contract.permissions.network);
        self.check_means(access, contract.name.as_str())?;
        Ok(Some(access))
    }

    /// The working directory of a program that could change its package, if its confinement does not keep it from that: a copy of
    /// its own. Blocks.
    pub(crate) fn own_directory(&self, contract: &Contract, package: &Path) -> io::Result<Option<OwnDirectory>> {
        let keeps = match self.access(contract) {
            Ok(Some(access)) => self.means.keep_code(access),
            Ok(None) => false,
            // It is not started.
            Err(_) => true,
        };
        if keeps { Ok(None) } else { OwnDirectory::with_package(&self.work, package).map(Some) }
    }

    /// Refuses what must be enforced and cannot be.
    fn check_means(&self, access: Access, name: &str) -> Result<(), Unconfined> {
        let missing = Enforcement::of(access, self.means).missing;
        if self.mode == SandboxMode::Required && !missing.is_empty() {
            return Err(Unconfined::Lacks { agent: name.to_owned(), missing });
        }
        Ok(())
    }

    /// What is enforced on the programs of an agent; none if they have the rights of the worker.
    pub(crate) fn enforced(&self, contract: &Contract) -> Result<Option<Enforcement>, Unconfined> {
        Ok(self.access(contract)?.map(|access| Enforcement::of(access, self.means)))
    }

    /// True if an attempt fails where something is missing.
    pub(crate) fn is_required(&self) -> bool {
        self.mode == SandboxMode::Required
    }

    /// The device files of its hardware.
    fn devices(&self, contract: &Contract) -> Vec<PathBuf> {
        let hardware = &contract.hardware;
        let mut devices: Vec<PathBuf> = hardware.device_access.iter().map(PathBuf::from).collect();
        let has_gpu = hardware.gpu || hardware.gpu_count.is_some() || hardware.gpu_vram_bytes.is_some();
        if has_gpu || self.all_gpus {
            let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
            let is_gpu = |name: &OsString| {
                name.to_str().is_some_and(|name| name.starts_with("nvidia") || ["dri", "kfd"].contains(&name))
            };
            devices.extend(entries.filter(|entry| is_gpu(&entry.file_name())).map(|entry| entry.path()));
        }
        devices
    }
}

impl Confined {
    /// The variables of the program: `TMPDIR` is its own folder for temporary files.
    pub(crate) fn environment(&self, environment: &mut Vec<(OsString, OsString)>) {
        let own = self.folder.as_ref().map_or(Path::new("/tmp"), Folder::path);
        let folder = self.temporary.as_deref().unwrap_or(own);
        environment.push(("TMPDIR".into(), folder.into()));
    }

    /// Whether it has a folder on the disk.
    pub(crate) fn has_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// What is enforced, for the job's metadata.
    pub(crate) fn text(&self) -> String {
        self.sandbox.enforced().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandboxes(mode: SandboxMode, means: Means) -> Sandboxes {
        Sandboxes {
            mode,
            means,
            hidden: Vec::new(),
            home: None,
            visible: Vec::new(),
            scratch_bytes: 1,
            processes_max: 1,
            scratch: std::env::temp_dir(),
            work: std::env::temp_dir(),
            all_gpus: false,
        }
    }

    fn contract(members: &str) -> Contract {
        let text = format!("agent:\n  name: a\n  version: 1.0.0\n{members}");
        atlas_contract::parse(text.as_bytes()).expect("a contract")
    }

    #[test]
    fn an_agent_is_confined_by_what_its_contract_states() {
        let (plain, stated) = (contract(""), contract("  permissions: {network: []}\n"));
        let named = contract("  permissions: {secrets: [A], max_memory_mb: 7}\n");
        let check = |mode, contract: &Contract| {
            let access = sandboxes(mode, Means::default()).access(contract);
            access.map(|access| access.map(|access| access.network)).map_err(|error| error.to_string())
        };
        assert_eq!(check(SandboxMode::Off, &stated), Ok(None));
        assert_eq!(check(SandboxMode::BestEffort, &plain), Ok(None));
        assert_eq!(check(SandboxMode::BestEffort, &named), Ok(None));
        assert_eq!(check(SandboxMode::BestEffort, &stated), Ok(Some(false)));
        let why = "a cannot be confined on this node, which is required: not enforced: files, secrets of the machine, processes, system calls";
        assert_eq!(check(SandboxMode::Required, &plain), Err(why.to_owned()));
    }

    #[test]
    fn an_agent_without_a_folder_for_temporary_files_does_not_run() {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        let sandboxes =
            Sandboxes { scratch: file.path().to_owned(), ..sandboxes(SandboxMode::BestEffort, Means::default()) };
        let stated = contract("  permissions: {network: []}\n");
        let why = sandboxes.of(&stated, Path::new("/"), &[], &[]).expect_err("a file is no folder").to_string();
        assert!(why.starts_with("could not make a folder for the temporary files of a: "), "{why}");
    }

    #[test]
    fn where_all_can_be_enforced_agents_without_permissions_get_the_defaults() {
        let full = Means { namespaces: Some(Means::NAMESPACES[0]), landlock: 7, seccomp: true };
        let access = sandboxes(SandboxMode::Required, full).access(&contract("")).expect("it can");
        assert_eq!(access, Some(Access::of(&["read".to_owned()], &["outbound".to_owned()])));
    }

    #[test]
    fn modes_have_names() {
        for mode in [SandboxMode::Off, SandboxMode::BestEffort, SandboxMode::Required] {
            assert_eq!(SandboxMode::parse(mode.as_str()), Some(mode));
        }
        assert_eq!(SandboxMode::parse("on"), None);
    }
}
