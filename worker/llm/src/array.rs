//! JSON objects that arrive one behind the other: as lines, or as an array.

use atlas_http::sse::TooLarge;

use crate::bounds::EVENT_BYTES_MAX;

/// Splits bytes into objects. It holds at most one. What is no object is given line by line, because it says what went wrong.
#[derive(Debug)]
pub struct Parser {
    bytes_max: usize,
    object: Vec<u8>,
    /// How many objects and lists are open inside of the array.
    depth: usize,
    /// The bytes belong to a text that is no object, until its line ends.
    in_text: bool,
    in_string: bool,
    /// The last byte of the string was a backslash.
    escaped: bool,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new(EVENT_BYTES_MAX)
    }
}

impl Parser {
    /// A parser that refuses objects of more than `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, object: Vec::new(), depth: 0, in_text: false, in_string: false, escaped: false }
    }

    /// Adds the texts of the objects that end in `bytes` to `objects`, those before an error too.
    pub fn push(&mut self, bytes: &[u8], objects: &mut Vec<Vec<u8>>) -> Result<(), TooLarge> {
        for byte in bytes {
            if self.in_text && *byte == b'\n' {
                self.in_text = false;
                objects.extend(self.end());
                continue;
            }
            if self.depth == 0 && !self.in_text {
                match byte {
                    b'{' => {}
                    b' ' | b'\t' | b'\r' | b'\n' | b'[' | b',' | b']' => continue,
                    _ => self.in_text = true,
                }
            }
            if self.object.len() >= self.bytes_max {
                return Err(TooLarge { max: self.bytes_max });
            }
            self.object.push(*byte);
            if self.in_text {
                continue;
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth -= 1,
                _ => {}
            }
            if self.depth == 0 {
                objects.push(std::mem::take(&mut self.object));
            }
        }
        Ok(())
    }

    /// The text that the end cut off. An object that it cut off is none.
    pub fn end(&mut self) -> Option<Vec<u8>> {
        let text = std::mem::take(&mut self.object);
        (self.depth == 0 && !text.trim_ascii().is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], size: usize) -> Result<Vec<String>, TooLarge> {
        let mut parser = Parser::new(40);
        let mut objects = Vec::new();
        for piece in bytes.chunks(size) {
            parser.push(piece, &mut objects)?;
        }
        objects.extend(parser.end());
        Ok(objects.into_iter().map(|object| String::from_utf8_lossy(&object).into_owned()).collect())
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(all(text.as_bytes(), 1000).expect("an array"), expected);
    }

    #[test]
    fn objects_of_an_array() {
        check("[{\"a\": [1, {}]}\n,\r\n{\"b\": \"}\\\"]\"}]\n", &["{\"a\": [1, {}]}", "{\"b\": \"}\\\"]\"}"]);
        check("{}", &["{}"]);
        check("[", &[]);
        check("[{\"cut\": 1", &[]);
    }

    #[test]
    fn other_texts_are_lines() {
        check("{\"a\": 1}\n{\n\"b\": 2\n}\n", &["{\"a\": 1}", "{\n\"b\": 2\n}"]);
        check("{} upstream {gone}\n[1]", &["{}", "upstream {gone}", "1]"]);
        assert!(all(format!("[{{\"{}", "x".repeat(50)).as_bytes(), 1000).is_err());
    }

    proptest! {
        #[test]
        fn a_split_changes_nothing(text in "[\\[\\]{},\"\\\\a]{0,30}", size in 1_usize..9) {
            prop_assert_eq!(all(text.as_bytes(), size), all(text.as_bytes(), 1000));
        }
    }
}
