//! How far a JSON text that arrives in pieces has come. Each byte is read once, however often somebody asks.

/// What has arrived of a JSON text.
#[derive(Debug, Default)]
pub(super) struct Shape {
    stage: Stage,
    /// How many objects and lists are open.
    depth: usize,
    in_string: bool,
    /// The last byte of the string was a backslash.
    escaped: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Before,
    /// In an object or a list.
    Inside,
    /// In a value that is neither; it may end at any byte.
    Scalar,
    Whole,
    /// More follows the value: the text is no JSON, whatever comes.
    Broken,
}

impl Shape {
    /// A text that has arrived whole.
    pub(super) fn whole() -> Self {
        Self { stage: Stage::Whole, ..Self::default() }
    }

    /// More of the text.
    pub(super) fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.byte(byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match (&self.stage, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') | (Stage::Broken, _) => {}
            (Stage::Whole, _) => self.stage = Stage::Broken,
            (Stage::Before | Stage::Inside, b'{' | b'[') => {
                self.stage = Stage::Inside;
                self.depth = self.depth.saturating_add(1);
            }
            (Stage::Inside, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.stage = Stage::Whole;
                }
            }
            (Stage::Inside | Stage::Scalar, _) => self.in_string = byte == b'"',
            (Stage::Before, _) => {
                self.stage = Stage::Scalar;
                self.in_string = byte == b'"';
            }
        }
    }

    /// Whether the text is a whole value so far.
    pub(super) fn is_whole(&self) -> bool {
        self.stage == Stage::Whole || self.stage == Stage::Scalar && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_whole_when_its_value_has_ended() {
        for (text, whole) in [
            ("", false),
            (" \n", false),
            ("{", false),
            ("{\"a\": [1, {}]", false),
            ("{\"a\": \"}", false),
            ("{\"a\": \"\\\"}", false),
            ("{} {}", false),
            ("\"a", false),
            ("{}", true),
            (" {\"a\": [1, {}]} ", true),
            ("{\"a\": \"}\\\"\"}", true),
            ("[]", true),
            ("\"a b\"", true),
            ("null", true),
        ] {
            for size in [1, text.len().max(1)] {
                let mut shape = Shape::default();
                for piece in text.as_bytes().chunks(size) {
                    shape.push(std::str::from_utf8(piece).expect("ASCII"));
                }
                assert_eq!(shape.is_whole(), whole, "{text}");
            }
        }
        assert!(Shape::whole().is_whole());
    }
}
