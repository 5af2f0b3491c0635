//! The files that an agent sees: the machine's own tree with covers over what it must not see, read-only except where it
//! may write.
//!
//! Nothing is copied and no root is changed: each step covers a place of the tree that this mount namespace inherited.
//! Places that stay visible under a cover are opened before it and mounted over it afterwards.

mod table;

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sys::stat::Mode;

use self::table::Table;
pub use self::table::unescaped;
use crate::namespaces::errno;
use crate::paths::{DEVICES, SYSTEM};
use crate::{Files, Guard, Namespaces, Sandbox};

/// Parts of `/proc` that must not be written by root.
const PROC_READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Parts of `/proc` and `/sys` that tell about the machine what no agent needs.
const COVERED: [&str; 8] = [
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];

/// Files in the folder for temporary files: at most one for each of so many bytes of its size, and at least a few.
const BYTES_A_FILE: u64 = 8 << 10;
const SCRATCH_FILES_MIN: u64 = 1 << 10;

/// A place that is mounted again over a cover.
struct Kept {
    path: PathBuf,
    place: OwnedFd,
    writable: bool,
}

/// Sets up the files of this mount namespace.
pub(crate) fn set_up(sandbox: &Sandbox, ways: Namespaces) -> nix::Result<()> {
    // Changes stay in this namespace.
    mount_none("/", MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    let kept = kept(sandbox);
    let mut covers = Covers::default();
    for path in sandbox.hidden.iter().map(PathBuf::as_path).chain([Path::new("/run")]) {
        covers.hide(path)?;
    }
    if sandbox.access.files == Files::Own {
        for path in others(Path::new("/")) {
            covers.hide(&path)?;
        }
    }
    temporary(sandbox.scratch_bytes)?;
    devices(&sandbox.devices)?;
    for place in &kept {
        place.mount()?;
    }
    let writable: Vec<&Path> = kept.iter().filter(|place| place.writable).map(|place| place.path.as_path()).collect();
    if ways.processes {
        mount(
            Some("proc"),
            "/proc",
            Some("proc"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
            None::<&str>,
        )?;
    }
    for path in PROC_READ_ONLY.iter().map(Path::new).filter(|path| path.exists()) {
        bind(path, path)?;
    }
    for path in COVERED {
        covers.hide(Path::new(path))?;
    }
    let all = sandbox.access.files != Files::Write;
    // The code of the worker and of other agents stays as it is, even for an agent that may write elsewhere.
    let code: Vec<&Path> = kept.iter().filter(|place| !place.writable).map(|place| place.path.as_path()).collect();
    make_read_only(|mount| {
        let temporary = ["/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/proc"].map(Path::new).contains(&mount);
        let under = |place: &Path| writable.iter().any(|allowed| place.starts_with(allowed));
        let of_system = mount.starts_with("/proc") || mount.starts_with("/sys") || mount == Path::new("/dev");
        let is_code = code.iter().any(|place| mount.starts_with(place));
        !under(mount) && (is_code || (!temporary && (all || of_system || covers.has(mount))))
    })
}

/// Makes places read-only in this mount namespace, and covers the working directories of other programs.
pub(crate) fn keep_code(guard: &Guard) -> nix::Result<()> {
    // What is mounted on the machine later is seen here too, and what is mounted here stays here.
    mount_none("/", MsFlags::MS_REC | MsFlags::MS_SLAVE)?;
    let open = |path: &PathBuf, writable| {
        let place = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
        Some(Kept { path: path.clone(), place, writable })
    };
    let own = guard.own.as_ref().and_then(|own| open(own, true));
    let code: Vec<Kept> = guard.code.iter().filter_map(|place| open(place, false)).collect();
    if let Some(folders) = &guard.folders {
        Covers::default().hide(folders)?;
    }
    for place in own.iter().chain(&code) {
        place.mount()?;
    }
    make_read_only(|mount| {
        let is_cover = guard.folders.as_deref() == Some(mount);
        is_cover || code.iter().any(|place| mount.starts_with(&place.path))
    })
}

/// Opens the places that stay visible. A missing one, or one that this user may not open, is left out.
fn kept(sandbox: &Sandbox) -> Vec<Kept> {
    let mut places: Vec<(PathBuf, bool)> = sandbox.visible.iter().map(|path| (path.clone(), false)).collect();
    places.extend(sandbox.writable.iter().map(|path| (path.clone(), true)));
    if sandbox.access.network
        && let Ok(resolver) = Path::new("/etc/resolv.conf").canonicalize()
        && resolver.starts_with("/run")
    {
        places.push((resolver, false));
    }
    // A place inside another one is mounted after it.
    places.sort();
    let open = |(path, writable): (PathBuf, bool)| {
        let place = open(&path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
        Some(Kept { path, place, writable })
    };
    places.into_iter().filter_map(open).collect()
}

impl Kept {
    fn mount(&self) -> nix::Result<()> {
        let source = PathBuf::from(format!("/proc/self/fd/{}", self.place.as_raw_fd()));
        if self.path.symlink_metadata().is_err() {
            make(&self.path, source.is_dir())?;
        }
        bind(&source, &self.path)
    }
}

/// Makes an empty folder or file where something is mounted.
fn make(path: &Path, folder: bool) -> nix::Result<()> {
    let parent = if folder { Some(path) } else { path.parent() };
    parent.map_or(Ok(()), fs::create_dir_all).map_err(|error| errno(&error))?;
    if folder { Ok(()) } else { File::create(path).map(drop).map_err(|error| errno(&error)) }
}

/// Covers that were mounted.
#[derive(Default)]
struct Covers(Vec<PathBuf>);

impl Covers {
    /// Covers a folder by an empty one and a file by one without content. What is missing or cannot be reached by this
    /// user needs no cover.
    fn hide(&mut self, path: &Path) -> nix::Result<()> {
        let Ok(path) = path.canonicalize() else { return Ok(()) };
        if self.has(&path) {
            return Ok(());
        }
        let covered = if path.is_dir() {
            tmpfs(&path, "mode=755,size=1m,nr_inodes=4k", MsFlags::MS_NOEXEC)
        } else {
            bind(Path::new("/dev/null"), &path)
        };
        match covered {
            // The user of the worker may not enter its folder, so neither may the agent.
            Err(Errno::EACCES) => return Ok(()),
            other => other?,
        }
        self.0.push(path);
        Ok(())
    }

    fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|cover| cover == path)
    }
}

/// The folders of the root that an agent with only its own files does not see.
fn others(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    folders.filter(|path| !SYSTEM.iter().any(|system| path == Path::new(system))).collect()
}

/// Private folders for temporary files, in memory: they end with the namespace.
fn temporary(bytes: u64) -> nix::Result<()> {
    let files = (bytes / BYTES_A_FILE).max(SCRATCH_FILES_MIN);
    let options = format!("mode=1777,size={bytes},nr_inodes={files}");
    if fs::create_dir_all("/tmp").is_ok() {
        tmpfs(Path::new("/tmp"), &options, MsFlags::empty())?;
    }
    // Another name of the same folder, so that the size bounds both.
    let other = Path::new("/var/tmp");
    if fs::create_dir_all(other).is_ok() { bind(Path::new("/tmp"), other) } else { Ok(()) }
}

/// A `/dev` with the devices that every program needs, and `more`.
fn devices(more: &[PathBuf]) -> nix::Result<()> {
    let wanted = DEVICES.iter().map(PathBuf::from).chain(more.iter().cloned());
    let open = |path: PathBuf| {
        let place = open(&path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
        Some(Kept { path, place, writable: true })
    };
    let kept: Vec<Kept> = wanted.filter(|path| path.starts_with("/dev")).filter_map(open).collect();
    tmpfs(Path::new("/dev"), "mode=755,size=1m,nr_inodes=4k", MsFlags::MS_NOEXEC)?;
    for device in kept {
        device.mount()?;
    }
    for (target, name) in [
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
    ] {
        symlink(target, Path::new("/dev").join(name)).map_err(|error| errno(&error))?;
    }
    make(Path::new("/dev/shm"), true)?;
    bind(Path::new("/tmp"), Path::new("/dev/shm"))?;
    make(Path::new("/dev/pts"), true)?;
    let pseudo_terminals = mount(
        Some("devpts"),
        "/dev/pts",
        Some("devpts"),
        MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC,
        Some("newinstance,ptmxmode=0666,mode=620"),
    );
    // A machine without pseudo-terminals has none for agents.
    if pseudo_terminals.is_ok() {
        symlink("pts/ptmx", "/dev/ptmx").map_err(|error| errno(&error))?;
    }
    Ok(())
}

fn tmpfs(path: &Path, options: &str, flags: MsFlags) -> nix::Result<()> {
    mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV | flags, Some(options))
}

fn bind(from: &Path, to: &Path) -> nix::Result<()> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
}

fn mount_none(path: &str, flags: MsFlags) -> nix::Result<()> {
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>)
}

/// Makes the chosen mounts read-only.
fn make_read_only(chosen: impl Fn(&Path) -> bool) -> nix::Result<()> {
    let table = fs::read_to_string("/proc/self/mountinfo").map_err(|error| errno(&error))?;
    for mounted in Table::parse(&table).visible() {
        if !chosen(&mounted.point) {
            continue;
        }
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | mounted.flags;
        match mount(None::<&str>, &mounted.point, None::<&str>, flags, None::<&str>) {
            // Not reachable for this user, or under a cover: then this is the path of something else, or of nothing.
            Err(Errno::EACCES | Errno::ENOENT | Errno::EINVAL) => {}
            other => other?,
        }
    }
    Ok(())
}
