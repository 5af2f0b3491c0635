//! The mounts of a process, from `/proc/self/mountinfo`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nix::mount::MsFlags;

/// A mount with the flags that a change of it must repeat: a user namespace may not take them away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) point: PathBuf,
    pub(super) flags: MsFlags,
}

/// The mounts, in the order of the kernel.
#[derive(Debug, Default)]
pub(super) struct Table(Vec<Mounted>);

impl Table {
    /// Parses lines such as `31 23 0:28 / /sys rw,nosuid shared:1 - sysfs sysfs rw`. Other lines are left out.
    pub(super) fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(parse).collect())
    }

    /// One mount per place: the last one covers those before it.
    pub(super) fn visible(self) -> impl Iterator<Item = Mounted> {
        let last: BTreeMap<PathBuf, Mounted> =
            self.0.into_iter().map(|mounted| (mounted.point.clone(), mounted)).collect();
        last.into_values()
    }
}

fn parse(line: &str) -> Option<Mounted> {
    let mut fields = line.split(' ').skip(4);
    let (point, options) = (fields.next()?, fields.next()?);
    let flags = options.split(',').map(flag).fold(MsFlags::empty(), |all, flag| all | flag);
    Some(Mounted { point: unescaped(point), flags })
}

fn flag(option: &str) -> MsFlags {
    match option {
        "ro" => MsFlags::MS_RDONLY,
        "nosuid" => MsFlags::MS_NOSUID,
        "nodev" => MsFlags::MS_NODEV,
        "noexec" => MsFlags::MS_NOEXEC,
        "noatime" => MsFlags::MS_NOATIME,
        "nodiratime" => MsFlags::MS_NODIRATIME,
        "relatime" => MsFlags::MS_RELATIME,
        _ => MsFlags::empty(),
    }
}

/// A path in a table of mounts without the kernel's escaping: spaces, tabs, line breaks and backslashes are written as `\` and three octal digits.
pub fn unescaped(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut path = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 4).filter(|_| byte == b'\\');
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                path.push(escaped);
                at += 4;
            }
            None => {
                path.push(byte);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_octal_digits() {
        assert_eq!(unescaped(r"/a\040b\134c\9"), PathBuf::from(r"/a b\c\9"));
        assert_eq!(unescaped(r"/é\"), PathBuf::from(r"/é\"));
    }

    #[test]
    fn the_last_mount_of_a_place_counts() {
        let text = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/a rw\n\
                    2 1 0:2 / /a\\040b rw,nosuid,nodev - tmpfs tmpfs rw\n\
                    3 2 0:3 / /a\\040b ro,noexec,noatime - tmpfs tmpfs rw\n\
                    garbage\n";
        let seen: Vec<Mounted> = Table::parse(text).visible().collect();
        let expected = |point: &str, flags| Mounted { point: point.into(), flags };
        assert_eq!(
            seen,
            [
                expected("/", MsFlags::MS_RELATIME),
                expected("/a b", MsFlags::MS_RDONLY | MsFlags::MS_NOEXEC | MsFlags::MS_NOATIME)
            ]
        );
        assert_eq!(Table::parse("1 2 3").visible().count(), 0);
    }
}
