//! The requirements of a fault on the machine. Without them the test is skipped with a notice.

use std::process::{Command, Stdio};

use crate::net::Network;

/// Something that not every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Network namespaces, TAP devices and the program `ip`: in practice root.
    Namespaces,
    /// A C compiler, for the library that breaks syncs and clocks.
    Compiler,
}

/// Why the machine does not have it; none if it does.
pub fn missing(needs: Needs) -> Option<String> {
    match needs {
        Needs::Namespaces => Network::isolated(&["probe"], 0).err(),
        Needs::Compiler => {
            let mut command = Command::new("cc");
            command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let works = command.status().is_ok_and(|status| status.success());
            (!works).then(|| "no C compiler \"cc\"".to_owned())
        }
    }
}

/// Whether a test must be skipped; the notice says why.
pub fn skipped_aloud(needs: &[Needs]) -> bool {
    let reason = needs.iter().find_map(|&needs| missing(needs));
    if let Some(reason) = &reason {
        atlas_notice::skip(reason);
    }
    reason.is_some()
}
