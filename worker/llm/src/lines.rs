//! JSON lines: one document on each line.

use crate::bounds::EVENT_BYTES_MAX;
use crate::sse::TooLarge;

/// Splits bytes into lines. It holds at most one line.
#[derive(Debug)]
pub struct Parser {
    bytes_max: usize,
    line: Vec<u8>,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new(EVENT_BYTES_MAX)
    }
}

impl Parser {
    /// A parser that refuses lines of more than `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, line: Vec::new() }
    }

    /// Adds the lines that end in `bytes` to `lines`, without empty ones; those before an error too.
    pub fn push(&mut self, bytes: &[u8], lines: &mut Vec<Vec<u8>>) -> Result<(), TooLarge> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..at])?;
            rest = &rest[at + 1..];
            lines.extend(self.end());
        }
        self.extend(rest)
    }

    /// The line that the end of the stream cut off, if it is not empty.
    pub fn end(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        (!line.trim_ascii().is_empty()).then_some(line)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len().saturating_add(bytes.len()) > self.bytes_max {
            return Err(TooLarge { max: self.bytes_max });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], size: usize) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut parser = Parser::new(20);
        let mut lines = Vec::new();
        for piece in bytes.chunks(size) {
            parser.push(piece, &mut lines)?;
        }
        lines.extend(parser.end());
        Ok(lines)
    }

    #[test]
    fn lines_and_the_rest() {
        assert_eq!(all(b"{}\r\n\n  \n[1]\nx", 100), Ok(vec![b"{}\r".to_vec(), b"[1]".to_vec(), b"x".to_vec()]));
        assert_eq!(all(&[b'x'; 21], 100), Err(TooLarge { max: 20 }));
    }

    proptest! {
        #[test]
        fn a_split_changes_nothing(text in "[a-z\\né]{0,60}", size in 1_usize..9) {
            prop_assert_eq!(all(text.as_bytes(), size), all(text.as_bytes(), 1000));
        }
    }
}
