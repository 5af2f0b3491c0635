//! What a supervisor is told apart from its command line: the confinement, the directory and the environment of the
//! program.
//!
//! It is a file in memory. The environment of a supervisor itself stays empty: the loader of programs and libraries obey
//! variables such as `LD_PRELOAD`, and a supervisor has the rights of the worker until it has confined itself. The file
//! also keeps hidden places out of `/proc/1/cmdline`, and it may be longer than an argument.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use atlas_sandbox::{Guard, Sandbox};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// The plan of one program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// None for a program with the rights of the worker.
    pub(super) sandbox: Option<Sandbox>,
    /// What is kept from a program whose confinement does not. None if this machine cannot.
    pub(super) guard: Option<Guard>,
    /// A package that is copied to `directory` first.
    pub(super) package: Option<PathBuf>,
    pub(super) directory: PathBuf,
    /// A program with its arguments that is started after a tree that did not end with success. Empty for none.
    pub(super) after: Vec<OsString>,
    /// The complete environment.
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl Plan {
    /// A file with the plan, at its start.
    pub(super) fn write(&self) -> io::Result<OwnedFd> {
        let mut file = File::from(in_memory()?);
        file.write_all(&self.to_bytes()?)?;
        file.rewind()?;
        Ok(file.into())
    }

    /// Reads [`Self::write`]. None for anything else: what cannot be read must not mean that there is no sandbox.
    pub(super) fn read(file: OwnedFd) -> Option<Self> {
        let mut bytes = Vec::new();
        File::from(file).read_to_end(&mut bytes).ok()?;
        Self::parse(&bytes)
    }

    /// Words that each end with a zero byte: the confinement, the guard and the package, which are empty for none, the directory,
    /// the number of words of the program after it, these words, and the name and the value of each variable.
    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let sandbox = OsString::from(self.sandbox.as_ref().map(Sandbox::to_json).unwrap_or_default());
        let guard = OsString::from(self.guard.as_ref().map(Guard::to_json).unwrap_or_default());
        let package = self.package.as_ref().map(|path| path.as_os_str()).unwrap_or_default();
        let count = OsString::from(self.after.len().to_string());
        let variables = self.environment.iter().flat_map(|(name, value)| [name.as_os_str(), value.as_os_str()]);
        let mut bytes = Vec::new();
        let first = [&sandbox, &guard, package, self.directory.as_os_str(), &count].into_iter();
        for word in first.chain(self.after.iter().map(OsString::as_os_str)).chain(variables) {
            if word.as_bytes().contains(&0) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "nul byte found in provided data"));
            }
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        Ok(bytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.strip_suffix(&[0])?.split(|&byte| byte == 0);
        let sandbox = match words.next()? {
            [] => None,
            text => Some(Sandbox::parse(std::str::from_utf8(text).ok()?).ok()?),
        };
        let guard = match words.next()? {
            [] => None,
            text => Some(Guard::parse(std::str::from_utf8(text).ok()?).ok()?),
        };
        let path = |word: &[u8]| PathBuf::from(OsStr::from_bytes(word));
        let package = words.next()?;
        let package = (!package.is_empty()).then(|| path(package));
        let directory = path(words.next()?);
        let own = |word: &[u8]| OsString::from_vec(word.to_vec());
        let count: usize = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        let mut after = Vec::new();
        for _ in 0..count {
            after.push(own(words.next()?));
        }
        let mut environment = Vec::new();
        while let Some(name) = words.next() {
            environment.push((own(name), own(words.next()?)));
        }
        Some(Self { sandbox, guard, package, directory, after, environment })
    }
}

/// An empty file in memory, which cannot be executed: some machines refuse others.
fn in_memory() -> nix::Result<OwnedFd> {
    /// Unknown to nix, and to kernels before 6.3.
    const MFD_NOEXEC_SEAL: MFdFlags = MFdFlags::from_bits_retain(8);
    let make = |flags| memfd_create(c"atlas-plan", flags);
    make(MFdFlags::MFD_CLOEXEC | MFD_NOEXEC_SEAL).or_else(|_| make(MFdFlags::MFD_CLOEXEC))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(environment: &[(&str, &str)]) -> Plan {
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let guard = Some(Guard { code: vec!["/c".into()], ..Guard::default() });
        let package = Some("/p".into());
        let after = vec!["rm".into(), "".into()];
        Plan { sandbox: None, guard, package, directory: "/a b".into(), after, environment }
    }

    #[test]
    fn a_plan_travels_as_a_file() {
        let long = "x".repeat(1 << 20);
        for environment in [&[][..], &[("A", ""), ("B\n", "é=")], &[("", ""), ("LONG", long.as_str())]] {
            let plan = plan(environment);
            assert_eq!(Plan::read(plan.write().expect("memory")), Some(plan));
        }
    }

    #[test]
    fn what_is_no_plan_starts_nothing() {
        // Each `|` stands for a zero byte.
        let plan = |text: &str| Plan::parse(text.replace('|', "\0").as_bytes());
        for text in [
            "",
            "|",
            "|||/a",
            "|||/a|",
            "|||/a|A|",
            "|||/a|0|A|",
            "|||/a|1|",
            "|||/a|-1|",
            "|||/a|18446744073709551615|A|",
            "{}|||/a|0|",
            "|{}||/a|0|",
            "é|||/a|0|",
            "|||/a|0|A|b",
        ] {
            assert_eq!(plan(text), None, "{text}");
        }
        assert!(plan("|||/a|1|rm|A|b|").is_some());
        assert_eq!(Plan::parse(b"\xff|/a"), None);
        assert!(self::plan(&[("A", "b\0c")]).write().is_err());
    }
}
