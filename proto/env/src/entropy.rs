//! Randomness.

use rand::Rng;

/// Draws random numbers.
pub trait Entropy: Send + Sync + 'static {
    /// An unpredictable number.
    fn u64(&self) -> u64;

    /// An unpredictable and unique number.
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
