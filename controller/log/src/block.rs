//! A buffer that direct I/O accepts: its start and its length are multiples of [`BLOCK_BYTES`].

/// The unit of every write.
pub const BLOCK_BYTES: usize = 4096;

/// An aligned buffer that `clear` fills with zeros. Reused for all writes.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Block {
    /// Makes the buffer `len` zero bytes long, rounded up to whole blocks.
    pub fn clear(&mut self, len: usize) {
        let len = len.next_multiple_of(BLOCK_BYTES);
        let needed = len + BLOCK_BYTES;
        if self.bytes.len() < needed || self.bytes.len() > needed.max(1 << 20) {
            self.bytes = vec![0; needed];
            self.start = self.bytes.as_ptr().align_offset(BLOCK_BYTES);
        }
        self.len = len;
        self.as_mut().fill(0);
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl AsMut<[u8]> for Block {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_block_is_aligned_and_zero() {
        let mut block = Block::default();
        for len in [1, 4096, 4097, 3 << 20, 10] {
            block.clear(len);
            assert_eq!(block.as_ref().len(), len.next_multiple_of(BLOCK_BYTES));
            assert_eq!(block.as_ref().as_ptr().align_offset(BLOCK_BYTES), 0);
            assert!(block.as_ref().iter().all(|&byte| byte == 0));
            block.as_mut().fill(0xff);
        }
    }
}
