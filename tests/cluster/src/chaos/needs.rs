//! The requirements of faults on the machine. If one is missing, the test is skipped with a notice.

use std::process::{Command, Stdio};

use crate::net::Network;

/// A requirement that not every machine fulfils.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Network namespaces, TAP devices and the program `ip`; in practice this needs root.
    Namespaces,
    /// A C compiler, for the library that breaks syncs and clocks.
    Compiler,
}

/// Why the machine does not fulfil the requirement; none if it does.
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

/// Whether a test must be skipped; prints a notice with the reason.
pub fn skipped_aloud(needs: &[Needs]) -> bool {
    let reason = needs.iter().find_map(|&needs| missing(needs));
    if let Some(reason) = &reason {
        atlas_notice::skip(reason);
    }
    reason.is_some()
}
