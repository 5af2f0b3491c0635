//! JSON errors with the texts of Python's `json` module, which users of Atlas for Python know.

/// Maximum nesting that is scanned.
const DEPTH_MAX: usize = 512;

/// Literals, including those that Python accepts although they are not JSON.
const WORDS: [&str; 6] = ["null", "true", "false", "NaN", "Infinity", "-Infinity"];

/// The error message of Python's `json.loads` for a text; none if Python accepts the text, or if it is nested too
/// deeply to scan.
pub fn json_fault(text: &str) -> Option<String> {
    let Fault { what, at } = Scan { bytes: text.as_bytes(), at: 0 }.document().err()??;
    let before = text.get(..at)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    Some(format!("{what}: line {line} column {column} (char {})", before.chars().count()))
}

/// An error and its byte offset.
struct Fault {
    what: &'static str,
    at: usize,
}

/// The error is none for a text that is nested too deeply.
type Scanned = Result<(), Option<Fault>>;

/// A scanner that stores no values.
struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Scan<'_> {
    fn document(&mut self) -> Scanned {
        self.skip_space();
        self.value(0)?;
        self.skip_space();
        if self.at < self.bytes.len() { self.fault("Extra data") } else { Ok(()) }
    }

    fn value(&mut self, depth: usize) -> Scanned {
        match self.peek() {
            _ if depth > DEPTH_MAX => Err(None),
            Some(b'"') => self.string(),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            _ => self.scalar(),
        }
    }

    fn object(&mut self, depth: usize) -> Scanned {
        self.items(b'}', |scan| {
            if scan.peek() != Some(b'"') {
                return scan.fault("Expecting property name enclosed in double quotes");
            }
            scan.string()?;
            scan.skip_space();
            if !scan.takes(b':') {
                return scan.fault("Expecting ':' delimiter");
            }
            scan.skip_space();
            scan.value(depth + 1)
        })
    }

    fn array(&mut self, depth: usize) -> Scanned {
        self.items(b']', |scan| scan.value(depth + 1))
    }

    /// Scans from an opening bracket to its `end`: no items, or items separated by commas.
    fn items(&mut self, end: u8, item: impl Fn(&mut Self) -> Scanned) -> Scanned {
        self.at += 1;
        self.skip_space();
        if self.takes(end) {
            return Ok(());
        }
        loop {
            item(self)?;
            self.skip_space();
            if self.takes(end) {
                return Ok(());
            }
            if !self.takes(b',') {
                return self.fault("Expecting ',' delimiter");
            }
            self.skip_space();
        }
    }

    fn string(&mut self) -> Scanned {
        let unterminated = Some(Fault { what: "Unterminated string starting at", at: self.at });
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(unterminated),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => match self.bytes.get(self.at + 1) {
                    None => return Err(unterminated),
                    Some(b'u') => {
                        let digits = self.bytes.get(self.at + 2..self.at + 6);
                        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                            self.at += 1;
                            return self.fault("Invalid \\uXXXX escape");
                        }
                        self.at += 6;
                    }
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                    Some(_) => return self.fault("Invalid \\escape"),
                },
                Some(0..=0x1f) => return self.fault("Invalid control character at"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn scalar(&mut self) -> Scanned {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if let Some(word) = WORDS.iter().find(|word| rest.starts_with(word.as_bytes())) {
            self.at += word.len();
            return Ok(());
        }
        let digits = |from: usize| rest.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
        let sign = usize::from(rest.first() == Some(&b'-'));
        let whole = if rest.get(sign) == Some(&b'0') { 1 } else { digits(sign) };
        if whole == 0 {
            return self.fault("Expecting value");
        }
        let mut end = sign + whole;
        // A point or exponent without digits does not belong to the number; the caller handles it.
        if rest.get(end) == Some(&b'.') && digits(end + 1) > 0 {
            end += 1 + digits(end + 1);
        }
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            let from = end + 1 + usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            end = if digits(from) > 0 { from + digits(from) } else { end };
        }
        self.at += end;
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fault(&self, what: &'static str) -> Scanned {
        Err(Some(Fault { what, at: self.at }))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    // The messages are those of `json.loads` in Python 3.11.
    #[test]
    fn faults_are_told_in_pythons_words() {
        let texts = [
            "",
            "hello",
            "{bad",
            "{",
            "{\"a\"",
            "{\"a\" 1}",
            "{\"a\": }",
            "{\"a\": 1 \"b\": 2}",
            "{\"a\": 1,}",
            "{\"a\": \"x",
            "{\"a\": \"\\x\"}",
            "{\"a\": \"\\u12g4\"}",
            "\"a\\",
            "\"a\tb\"",
            "[",
            "[1",
            "[1,]",
            "[1 2]",
            "{} {}",
            "{}\n é x",
            "\u{e9}",
            "01",
            "1.",
            "-",
            "1e+",
            "tru",
        ];
        let told = texts.map(|text| format!("{text:?}  {}\n", json_fault(text).unwrap_or_default()));
        expect![[r#"
            ""  Expecting value: line 1 column 1 (char 0)
            "hello"  Expecting value: line 1 column 1 (char 0)
            "{bad"  Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
            "{"  Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
            "{\"a\""  Expecting ':' delimiter: line 1 column 5 (char 4)
            "{\"a\" 1}"  Expecting ':' delimiter: line 1 column 6 (char 5)
            "{\"a\": }"  Expecting value: line 1 column 7 (char 6)
            "{\"a\": 1 \"b\": 2}"  Expecting ',' delimiter: line 1 column 9 (char 8)
            "{\"a\": 1,}"  Expecting property name enclosed in double quotes: line 1 column 9 (char 8)
            "{\"a\": \"x"  Unterminated string starting at: line 1 column 7 (char 6)
            "{\"a\": \"\\x\"}"  Invalid \escape: line 1 column 8 (char 7)
            "{\"a\": \"\\u12g4\"}"  Invalid \uXXXX escape: line 1 column 9 (char 8)
            "\"a\\"  Unterminated string starting at: line 1 column 1 (char 0)
            "\"a\tb\""  Invalid control character at: line 1 column 3 (char 2)
            "["  Expecting value: line 1 column 2 (char 1)
            "[1"  Expecting ',' delimiter: line 1 column 3 (char 2)
            "[1,]"  Expecting value: line 1 column 4 (char 3)
            "[1 2]"  Expecting ',' delimiter: line 1 column 4 (char 3)
            "{} {}"  Extra data: line 1 column 4 (char 3)
            "{}\n é x"  Extra data: line 2 column 2 (char 4)
            "é"  Expecting value: line 1 column 1 (char 0)
            "01"  Extra data: line 1 column 2 (char 1)
            "1."  Extra data: line 1 column 2 (char 1)
            "-"  Expecting value: line 1 column 1 (char 0)
            "1e+"  Extra data: line 1 column 2 (char 1)
            "tru"  Expecting value: line 1 column 1 (char 0)
        "#]]
        .assert_eq(&told.concat());
    }

    #[test]
    fn what_python_takes_has_no_fault() {
        for text in ["{}", " [1, -2.5e-3, true, null, NaN, -Infinity] \n", r#"{"a\u00e9\n": {"b": []}}"#] {
            assert_eq!(json_fault(text), None, "{text}");
        }
        assert_eq!(json_fault(&"[".repeat(100_000)), None);
    }
}
