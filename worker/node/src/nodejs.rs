//! Node.js on this node.

use std::path::{Path, PathBuf};

use crate::interpreter::{self, Finder};

/// The oldest supported version.
const OLDEST: u32 = 20;

/// The names to try, in this order. Debian had the second one.
const NAMES: [&str; 2] = ["node", "nodejs"];

/// Prints the version and the path of the program. Using this path avoids the slow shims of version managers.
const PROBE: &str = "process.stdout.write(process.versions.node + ' ' + process.execPath)";

/// A Node.js that is new enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeJs {
    pub program: PathBuf,
    /// Its version: major, minor and patch.
    pub version: (u32, u32, u32),
}

impl NodeJs {
    /// Finds Node.js: `chosen` if given, otherwise the known names in `PATH`. Blocks for about 50 ms.
    pub fn find(chosen: Option<&Path>) -> Result<Self, String> {
        let names = interpreter::names(&NAMES, chosen);
        let is_new = |found: &Self| found.version.0 >= OLDEST;
        let found = interpreter::first(&names, &["-e", PROBE], |printed| read(printed).filter(is_new));
        found.ok_or_else(|| {
            let names: Vec<_> = names.iter().map(|name| name.display().to_string()).collect();
            format!("this node has no Node.js {OLDEST} or later (tried {})", names.join(", "))
        })
    }

    /// Finds it once.
    pub(crate) fn finder(chosen: Option<PathBuf>) -> Finder<Self> {
        Finder::new(&NAMES, chosen, Self::find)
    }
}

fn read(printed: &[u8]) -> Option<NodeJs> {
    let line = String::from_utf8_lossy(printed);
    let (version, program) = line.trim().split_once(' ')?;
    // A pre-release has a word after the numbers.
    let version = version.split('-').next()?;
    let mut numbers = version.splitn(3, '.').map(|number| number.parse::<u32>().ok());
    let mut next = || numbers.next().flatten();
    let version = (next()?, next()?, next()?);
    let program = PathBuf::from(program);
    program.is_absolute().then_some(NodeJs { program, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_prints_no_version_is_no_nodejs() {
        for printed in ["", "node: command not found", "22.1 /usr/bin/node", "22.1.0", "22.1.0 bin/node"] {
            assert_eq!(read(printed.as_bytes()), None, "{printed}");
        }
        let program = PathBuf::from("/opt/my node/bin/node");
        assert_eq!(
            read(b"22.18.0 /opt/my node/bin/node"),
            Some(NodeJs { program: program.clone(), version: (22, 18, 0) })
        );
        assert_eq!(read(b"24.0.0-nightly.1 /opt/my node/bin/node\n"), Some(NodeJs { program, version: (24, 0, 0) }));
    }
}
