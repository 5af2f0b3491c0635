//! What a supervisor tells its worker at the end of a tree.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use atlas_sandbox::FailedStep;

/// A report of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The program could not be started.
    NotStarted {
        /// The system's error number.
        errno: i32,
    },
    /// The program was not started because it could not be confined.
    NotConfined(FailedStep),
    /// The agent's process ended, and its tree with it.
    Exited(ExitStatus),
}

/// What a tree used until its end, as far as its supervisor knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// Processor time.
    pub(super) cpu: Duration,
    /// The most memory of one of its processes, files included.
    pub(super) peak_bytes: u64,
}

/// The length of a report.
pub(super) const REPORT_BYTES: usize = 13;

impl Change {
    /// The report: the change in five bytes, processor time in milliseconds and memory in MiB.
    pub(super) fn to_bytes(self, spent: Spent) -> [u8; REPORT_BYTES] {
        let (kind, value) = match self {
            Self::NotStarted { errno } => (b'n', errno),
            Self::NotConfined(refused) => (b'c', refused.code()),
            Self::Exited(status) => (b'x', status.into_raw()),
        };
        let millis = u32::try_from(spent.cpu.as_millis()).unwrap_or(u32::MAX);
        let mebibytes = u32::try_from(spent.peak_bytes >> 20).unwrap_or(u32::MAX);
        let mut bytes = [kind; REPORT_BYTES];
        bytes[1..5].copy_from_slice(&value.to_be_bytes());
        bytes[5..9].copy_from_slice(&millis.to_be_bytes());
        bytes[9..].copy_from_slice(&mebibytes.to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; REPORT_BYTES]) -> Option<(Self, Spent)> {
        let [kind, a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        let value = i32::from_be_bytes([a, b, c, d]);
        let change = match kind {
            b'n' => Self::NotStarted { errno: value },
            b'c' => Self::NotConfined(FailedStep::of_code(value)),
            b'x' => Self::Exited(ExitStatus::from_raw(value)),
            _ => return None,
        };
        let (millis, mebibytes) = (u32::from_be_bytes([e, f, g, h]), u32::from_be_bytes([i, j, k, l]));
        let spent = Spent { cpu: Duration::from_millis(millis.into()), peak_bytes: u64::from(mebibytes) << 20 };
        Some((change, spent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_travels_as_bytes() {
        let spent = Spent { cpu: Duration::from_millis(2_345), peak_bytes: 300 << 20 };
        for change in [Change::NotStarted { errno: 2 }, Change::Exited(ExitStatus::from_raw(9))] {
            assert_eq!(Change::from_bytes(&change.to_bytes(spent)), Some((change, spent)));
        }
        assert_eq!(Change::from_bytes(&[b'?'; REPORT_BYTES]), None);
    }
}
