//! The chain: a 32-byte hash over everything that a replica has applied.

/// The chain after an entry, from the chain before it, the entry's bytes and the bytes of its outcomes.
///
/// Two replicas with the same chain have applied the same entries and given the same answers.
pub fn chain(prev: &[u8; 32], entry: &[u8], outcomes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(prev);
    // The length keeps an entry's tail from passing for outcomes.
    hasher.update(&(entry.len() as u64).to_le_bytes());
    hasher.update(entry);
    hasher.update(outcomes);
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let base = chain(&[0; 32], b"entry", b"outcomes");
        assert_eq!(base, chain(&[0; 32], b"entry", b"outcomes"));
        assert_ne!(base, chain(&[1; 32], b"entry", b"outcomes"));
        assert_ne!(base, chain(&[0; 32], b"entryo", b"utcomes"));
        assert_ne!(base, chain(&[0; 32], b"entry", b"outcome"));
    }
}
