//! What a write is known by, so that a repeat is found.

use atlas_artifacts::digest_of;
use atlas_types::JobId;

/// What a write is known by: 16 bytes. Two writes with the same key are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteKey([u8; 16]);

impl WriteKey {
    /// That of a step of a job: the same in each attempt that makes it again.
    pub fn of_step(job: JobId, step: [u8; 16]) -> Self {
        Self::hashed(&[&job.0.to_be_bytes(), &step])
    }

    /// That of a request with an idempotency key.
    pub fn of_request(principal: &str, request: &str) -> Self {
        Self::hashed(&[principal.as_bytes(), &[0], request.as_bytes()])
    }

    /// That of a request without one.
    pub fn random(random: u128) -> Self {
        Self(random.to_be_bytes())
    }

    /// That of a summary of entries up to the one with this key: there is one.
    pub(crate) fn of_summary(last: &str) -> Self {
        Self::hashed(&[b"summary", &[0], last.as_bytes()])
    }

    fn hashed(parts: &[&[u8]]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ..] = digest_of(&parts.concat()).0;
        Self([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
    }

    /// As 32 digits, in names.
    pub fn digits(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    /// As a number that makes a name.
    pub fn number(self) -> u64 {
        (u128::from_be_bytes(self.0) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_of_two_jobs_are_two_writes() {
        let step = [7; 16];
        assert_ne!(WriteKey::of_step(JobId(1), step), WriteKey::of_step(JobId(2), step));
        assert_eq!(WriteKey::of_step(JobId(1), step), WriteKey::of_step(JobId(1), step));
        assert_ne!(WriteKey::of_request("a", "b"), WriteKey::of_request("ab", ""));
        assert_eq!(WriteKey::random(1).digits(), "00000000000000000000000000000001");
    }
}
