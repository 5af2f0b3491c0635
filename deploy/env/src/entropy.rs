//! Randomness.

use rand::Rng;

/// Draws random numbers.
pub trait Entropy: Send + Sync + 'static {
    /// A number that nobody can guess.
    fn u64(&self) -> u64;

    /// A number that nobody can guess and that never comes twice.
    fn u128(&self) -> u128 {
        (u128::from(self.u64()) << 64) | u128::from(self.u64())
    }
}

/// The machine's generator.
#[derive(Debug, Clone, Copy)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn u64(&self) -> u64 {
        rand::rng().next_u64()
    }
}
