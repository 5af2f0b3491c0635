//! Finds the control groups of this process from `/proc/self/cgroup` and `/proc/self/mountinfo`.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use atlas_sandbox::unescaped;

/// Whether and where control groups for agents' process trees are created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cgroup {
    /// Under the worker's own group, if the machine permits it.
    #[default]
    Auto,
    /// No control groups.
    Off,
    /// Under this group, given as a path below the mount of its hierarchy.
    Under(PathBuf),
}

impl Cgroup {
    /// `auto`, `off` or an absolute path without `..`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => return Some(Self::Auto),
            "off" => return Some(Self::Off),
            _ => {}
        }
        let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        let path = Path::new(text);
        (path.is_absolute() && path.components().all(plain)).then(|| Self::Under(path.to_owned()))
    }
}

/// The version of the kernel's cgroup interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "cgroup v1",
            Self::V2 => "cgroup v2",
        })
    }
}

/// The resource that a group limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Cpu,
}

impl Controller {
    /// The kernel's name for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
        }
    }
}

/// A group under which other groups may be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) version: Version,
    pub(super) directory: PathBuf,
    /// True if it is the group of this process.
    pub(super) is_own: bool,
}

/// Why there is no such group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Absent {
    #[error("no hierarchy with the controller \"{0}\" is mounted")]
    NotMounted(&'static str),
    #[error("\"{}\" is mounted read-only", .0.display())]
    ReadOnly(PathBuf),
    #[error("the worker's own group is not below \"{}\"", .0.display())]
    Elsewhere(PathBuf),
}

/// The group of version 2 into which a worker moves itself, because a group with limited children may not contain
/// processes.
pub(super) const WORKER_GROUP: &str = "atlas-worker";

/// The parent group for groups of `controller`: `under`, or by default the group of this process.
pub(super) fn find(controller: Controller, own: &str, mounts: &str, under: Option<&Path>) -> Result<Parent, Absent> {
    let name = controller.name();
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    let first = own_group(own, |controllers| controllers.split(',').any(|listed| listed == name));
    let one: Vec<&Mount> = mounts.iter().filter(|mount| mount.kind == "cgroup" && mount.has(name)).collect();
    let (version, group, candidates) = match first {
        Some(group) if !one.is_empty() => (Version::V1, group, one),
        _ => {
            let group = own_group(own, str::is_empty).ok_or(Absent::NotMounted(name))?;
            (Version::V2, without_worker_group(group), mounts.iter().filter(|mount| mount.kind == "cgroup2").collect())
        }
    };
    let any = candidates.first().ok_or(Absent::NotMounted(name))?;
    let writable = candidates.iter().find(|mount| !mount.read_only);
    let mount = writable.ok_or_else(|| Absent::ReadOnly(any.point.clone()))?;
    let below = match under {
        Some(under) => under.strip_prefix("/").unwrap_or(under),
        None => Path::new(group).strip_prefix(&mount.root).map_err(|_| Absent::Elsewhere(mount.point.clone()))?,
    };
    Ok(Parent { version, directory: mount.point.join(below), is_own: under.is_none() })
}

/// The group in which a worker was started before it moved to [`WORKER_GROUP`].
fn without_worker_group(group: &str) -> &str {
    match group.strip_suffix(WORKER_GROUP).and_then(|parent| parent.strip_suffix('/')) {
        Some("") => "/",
        Some(parent) => parent,
        None => group,
    }
}

/// The path in the line of `/proc/self/cgroup` with matching controllers.
fn own_group(own: &str, these: impl Fn(&str) -> bool) -> Option<&str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        // A process outside the namespace's root sees paths such as `/../x`.
        let group = fields.next().filter(|group| !group.split('/').any(|part| part == ".."))?;
        these(controllers).then_some(group)
    })
}

/// A line of `/proc/self/mountinfo`.
struct Mount<'a> {
    kind: &'a str,
    /// The mounted directory of the file system.
    root: PathBuf,
    point: PathBuf,
    read_only: bool,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// `31 23 0:28 / /sys/fs/cgroup rw,relatime shared:1 - cgroup cgroup rw,memory`.
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point, own_options) = (before.next()?, before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, _source, options) = (after.next()?, after.next()?, after.next()?);
        let read_only = [own_options, options].iter().any(|options| options.split(',').any(|option| option == "ro"));
        Some(Self { kind, root: unescaped(root), point: unescaped(point), read_only, options })
    }

    fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|listed| listed == option)
    }
}

#[cfg(test)]
mod tests;
