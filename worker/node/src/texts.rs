//! Texts of bounded length: error texts, and the lines of processes.

/// An error text of a bounded length.
pub(crate) fn bounded(mut text: String) -> String {
    const TEXT_BYTES_MAX: usize = 16 << 10;
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}

/// Splits the output of a process into lines of a limited length.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Longer lines are cut.
    pub(crate) const LINE_BYTES_MAX: usize = 8 << 10;

    /// Adds bytes and returns every complete line. Invalid UTF-8 is replaced.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(bytes);
        let mut lines = Vec::new();
        let mut from = 0;
        loop {
            let rest = &self.rest[from..];
            let window = &rest[..rest.len().min(Self::LINE_BYTES_MAX)];
            match window.iter().position(|&byte| byte == b'\n') {
                Some(end) => {
                    lines.push(text(&rest[..end]));
                    from += end + 1;
                }
                None if rest.len() >= Self::LINE_BYTES_MAX => {
                    let end = without_part_of_character(window);
                    lines.push(text(&rest[..end]));
                    from += end;
                }
                None => break,
            }
        }
        self.rest.drain(..from);
        lines
    }

    /// The remaining text without a line end.
    pub(crate) fn finish(&mut self) -> Option<String> {
        (!self.rest.is_empty()).then(|| text(&std::mem::take(&mut self.rest)))
    }
}

/// The length without a character at the end of which only a part is there.
fn without_part_of_character(bytes: &[u8]) -> usize {
    let starts = (1..=3.min(bytes.len())).find(|back| bytes[bytes.len() - back] >= 0b1100_0000);
    let Some(back) = starts else { return bytes.len() };
    let (at, width) = (bytes.len() - back, bytes[bytes.len() - back].leading_ones() as usize);
    if width > back && at > 0 { at } else { bytes.len() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(b"\r").unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let cut = bounded("é".repeat(10_000));
        assert!(cut.len() <= (16 << 10) + "…".len() && cut.ends_with('…'));
    }

    #[test]
    fn lines_are_cut_wherever_the_bytes_were() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for bytes in [&b"one\r\ntw"[..], b"o\n\nthr", b"ee"] {
            seen.extend(lines.push(bytes));
        }
        seen.extend(lines.finish());
        assert_eq!(seen, ["one", "two", "", "three"]);
    }

    #[test]
    fn endless_lines_are_cut_and_bad_bytes_replaced() {
        let mut lines = Lines::default();
        let mut seen = lines.push(&[b'x'; 20_000]);
        seen.extend(lines.push(b"\xff\n"));
        let lengths: Vec<_> = seen.iter().map(String::len).collect();
        assert_eq!(lengths, [8_192, 8_192, 20_000 - 2 * 8_192 + "\u{fffd}".len()]);
    }

    #[test]
    fn lines_are_cut_between_characters() {
        let mut lines = Lines::default();
        let text = format!("x{}", "é".repeat(8_192));
        let seen = lines.push(text.as_bytes());
        let rest = lines.finish();
        assert_eq!(seen.iter().map(String::len).collect::<Vec<_>>(), [8_191, 8_192]);
        assert_eq!(seen.concat() + &rest.unwrap_or_default(), text);
    }
}
