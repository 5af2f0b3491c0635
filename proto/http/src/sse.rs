//! Server-sent events.
//!
//! Lines end with CR, LF or CRLF, and an empty line ends an event. Bytes may arrive split at any place, inside a character too.

/// Bytes that are kept of lines that are no fields.
const STRAY_BYTES_MAX: usize = 1024;

/// One event of a stream. Its `retry` is for browsers that reconnect, and is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerEvent {
    /// The field `id`, with which another connection continues after this event; empty if there is none.
    pub id: String,
    /// The field `event`; empty if there is none.
    pub name: String,
    /// The fields `data`, joined with line feeds.
    pub data: String,
}

/// An event is larger than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {max} bytes")]
pub struct TooLarge {
    pub max: usize,
}

/// Splits bytes into events. It holds at most one event.
#[derive(Debug)]
pub struct Parser {
    bytes_max: usize,
    line: Vec<u8>,
    event: ServerEvent,
    has_data: bool,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_return: bool,
    /// The first line is still to come; it may begin with a byte order mark.
    first: bool,
    /// The beginning of the lines that are no fields.
    stray: Vec<u8>,
}

impl Parser {
    /// A parser that refuses events of more than `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            event: ServerEvent::default(),
            has_data: false,
            after_return: false,
            first: true,
            stray: Vec::new(),
        }
    }

    /// Adds the events that end in `bytes` to `events`, those before an error too.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<ServerEvent>) -> Result<(), TooLarge> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(at) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
                self.extend(rest)?;
                break;
            };
            self.extend(&rest[..at])?;
            self.after_return = rest[at] == b'\r';
            rest = &rest[at + 1..];
            events.extend(self.end_line());
        }
        Ok(())
    }

    /// The event that the end of the stream cut off, if it has data. Some servers leave out the last empty line.
    pub fn end(&mut self) -> Option<ServerEvent> {
        let last = if self.line.is_empty() { None } else { self.end_line() };
        last.or_else(|| self.take())
    }

    /// The beginning of what came between the events and is no field of one. Servers write errors there.
    pub fn stray(&self) -> &[u8] {
        &self.stray
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        let held = self.line.len() + self.event.data.len() + self.event.name.len() + self.event.id.len();
        if held.saturating_add(bytes.len()) > self.bytes_max {
            return Err(TooLarge { max: self.bytes_max });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<ServerEvent> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.first) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return self.take();
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            b"id" => self.event.id = String::from_utf8_lossy(value).into_owned(),
            b"" | b"retry" => {}
            _ => {
                let room = STRAY_BYTES_MAX.saturating_sub(self.stray.len());
                self.stray.extend(line.iter().chain(b"\n").take(room));
            }
        }
        None
    }

    fn take(&mut self) -> Option<ServerEvent> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &Expect) {
        expected.assert_eq(&format!("{:?}", all(text.as_bytes(), &[], 100)));
    }

    /// The events of `bytes`, pushed in the pieces that `cuts` makes.
    fn all(bytes: &[u8], cuts: &[usize], max: usize) -> Result<Vec<(String, String)>, TooLarge> {
        let mut parser = Parser::new(max);
        let mut events = Vec::new();
        let (mut rest, mut at) = (bytes, 0);
        for cut in cuts {
            let here = (cut % (bytes.len() + 1)).max(at) - at;
            parser.push(&rest[..here], &mut events)?;
            rest = &rest[here..];
            at += here;
        }
        parser.push(rest, &mut events)?;
        events.extend(parser.end());
        Ok(events.into_iter().map(|event| (event.name, event.data)).collect())
    }

    #[test]
    fn lines_end_in_three_ways() {
        check(
            "data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d",
            &expect![[r#"Ok([("", "a"), ("", "b"), ("", "c"), ("", "d")])"#]],
        );
    }

    #[test]
    fn data_is_joined_and_comments_are_dropped() {
        check(
            "\u{feff}: hello\nevent: x\ndata:one\ndata:  two\ndata\nid: 7\n\n",
            &expect![[r#"Ok([("x", "one\n two\n")])"#]],
        );
    }

    #[test]
    fn an_id_belongs_to_its_event() {
        let mut events = Vec::new();
        Parser::new(100).push(b"id: 3\r\ndata: x\n\ndata: y\n\n", &mut events).expect("short events");
        let ids: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
        assert_eq!(ids, ["3", ""]);
    }

    #[test]
    fn an_event_without_data_is_none() {
        check("event: x\n\nevent: y\ndata: 1\n\n\n\n", &expect![[r#"Ok([("y", "1")])"#]]);
    }

    #[test]
    fn an_event_above_the_limit_is_refused() {
        check(&format!("data: {}\n\n", "x".repeat(100)), &expect!["Err(TooLarge { max: 100 })"]);
        check(&"data: 123456789\n".repeat(20), &expect!["Err(TooLarge { max: 100 })"]);
    }

    proptest! {
        #[test]
        fn a_split_changes_nothing(text in "(data|event|id|:|: |\\r|\\n|\\r\\n|[a-zé🙂]){0,60}", mut cuts in prop::collection::vec(0_usize..200, 0..6)) {
            cuts.sort_unstable();
            let cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
            let mut cuts = cuts;
            cuts.sort_unstable();
            prop_assert_eq!(all(text.as_bytes(), &cuts, 1000), all(text.as_bytes(), &[], 1000));
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = all(&bytes, &[7, 30], 64);
        }
    }
}
