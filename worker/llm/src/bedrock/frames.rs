//! The framing of event streams of Amazon Web Services: length, headers, payload, and two checksums.

use std::collections::BTreeMap;

use atlas_model::CallError;

use crate::{failure, json};

/// The longest frame that is read. An event carries one piece of an answer; Amazon allows 16 MiB.
pub(crate) const FRAME_BYTES_MAX: usize = 1 << 20;

/// Two lengths and their checksum.
const PRELUDE: usize = 12;
/// The prelude and the checksum of the whole.
const OVERHEAD: usize = PRELUDE + 4;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The headers that are texts: `:message-type`, `:event-type`, `:exception-type` and others.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The name of the event and its payload, or the error that the frame reports.
    pub(crate) fn event(&self) -> Result<(&str, &[u8]), CallError> {
        let header = |name: &str| self.headers.get(name).map(String::as_str).unwrap_or_default();
        match header(":message-type") {
            "exception" => {
                let report = json::parse(&self.payload).unwrap_or_default();
                let message = json::text(&report, "/message").or_else(|| json::text(&report, "/Message"));
                Err(failure::of_code(header(":exception-type"), message.unwrap_or_default()))
            }
            "error" => Err(failure::of_code(header(":error-code"), header(":error-message"))),
            _ => Ok((header(":event-type"), &self.payload)),
        }
    }
}

/// Why bytes are no event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("an event of {0} bytes is not between 16 bytes and 1 MiB")]
    Length(u32),
    #[error("the headers of an event are longer than the event")]
    HeadersLength,
    #[error("the checksum of the prelude of an event does not match")]
    PreludeSum,
    #[error("the checksum of an event does not match")]
    Sum,
    #[error("a header of an event is malformed")]
    Header,
}

impl From<FrameError> for CallError {
    fn from(error: FrameError) -> Self {
        failure::answer(error.to_string())
    }
}

/// Collects bytes into frames. Holds less than one frame and the bytes pushed last.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    /// Adds the frames that are complete with `bytes`, also those before an error. An error ends the stream.
    pub(crate) fn push(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), FrameError> {
        self.bytes.extend_from_slice(bytes);
        let mut rest = self.bytes.as_slice();
        while let Some(length) = length(rest)? {
            let Some((frame, after)) = rest.split_at_checked(length) else { break };
            frames.push(read(frame)?);
            rest = after;
        }
        let used = self.bytes.len() - rest.len();
        self.bytes.drain(..used);
        Ok(())
    }
}

/// The length of the frame that `bytes` begin with, once its prelude is there and sound.
fn length(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
    if number(prelude, 8) != Some(crc32fast::hash(&prelude[..8])) {
        return Err(FrameError::PreludeSum);
    }
    let (total, headers) = (number(prelude, 0).unwrap_or_default(), number(prelude, 4).unwrap_or_default());
    let length = usize::try_from(total).unwrap_or(usize::MAX);
    if !(OVERHEAD..=FRAME_BYTES_MAX).contains(&length) {
        return Err(FrameError::Length(total));
    }
    if usize::try_from(headers).unwrap_or(usize::MAX) > length - OVERHEAD {
        return Err(FrameError::HeadersLength);
    }
    Ok(Some(length))
}

/// A whole frame, whose prelude is sound.
fn read(frame: &[u8]) -> Result<Frame, FrameError> {
    let (content, _) = frame.split_at(frame.len() - 4);
    if number(frame, content.len()) != Some(crc32fast::hash(content)) {
        return Err(FrameError::Sum);
    }
    let headers = number(frame, 4).and_then(|length| usize::try_from(length).ok()).ok_or(FrameError::HeadersLength)?;
    let (headers, payload) = content[PRELUDE..].split_at_checked(headers).ok_or(FrameError::HeadersLength)?;
    Ok(Frame { headers: texts(headers).ok_or(FrameError::Header)?, payload: payload.to_vec() })
}

/// The headers that are texts. None if the bytes are no headers.
fn texts(mut bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let (length, rest) = match kind {
            0 | 1 => (0, rest),
            2 => (1, rest),
            3 => (2, rest),
            4 => (4, rest),
            5 | 8 => (8, rest),
            6 | 7 => {
                let (length, rest) = rest.split_at_checked(2)?;
                (usize::from(u16::from_be_bytes(length.try_into().ok()?)), rest)
            }
            9 => (16, rest),
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        if *kind == 7 {
            headers.insert(String::from_utf8(name.to_vec()).ok()?, String::from_utf8(value.to_vec()).ok()?);
        }
        bytes = rest;
    }
    Some(headers)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame with headers that are texts.
    pub(in crate::bedrock) fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut encoded = Vec::new();
        for (name, value) in headers {
            encoded.push(u8::try_from(name.len()).unwrap());
            encoded.extend(name.bytes());
            encoded.push(7);
            encoded.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
            encoded.extend(value.bytes());
        }
        with_headers(&encoded, payload)
    }

    fn with_headers(headers: &[u8], payload: &[u8]) -> Vec<u8> {
        let total = u32::try_from(OVERHEAD + headers.len() + payload.len()).unwrap();
        let mut frame = total.to_be_bytes().to_vec();
        frame.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame.extend(headers);
        frame.extend(payload);
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame
    }

    fn check(bytes: &[u8], expected: Result<usize, FrameError>) {
        let mut frames = Vec::new();
        assert_eq!(Frames::default().push(bytes, &mut frames).map(|()| frames.len()), expected);
    }

    #[test]
    fn a_frame_of_known_bytes_is_read() {
        // An empty message, as Amazon documents it.
        let bytes = [0, 0, 0, 16, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        check(&bytes, Ok(1));
    }

    #[test]
    fn damage_is_found() {
        let sound = frame(&[(":event-type", "x")], b"{}");
        check(&sound, Ok(1));
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x10;
            let expected = if at < PRELUDE { FrameError::PreludeSum } else { FrameError::Sum };
            check(&bytes, Err(expected));
        }
    }

    #[test]
    fn frames_that_are_too_long_are_refused_by_their_prelude() {
        let mut prelude = 0x0100_0000u32.to_be_bytes().to_vec();
        prelude.extend(0u32.to_be_bytes());
        prelude.extend(crc32fast::hash(&prelude).to_be_bytes());
        check(&prelude, Err(FrameError::Length(0x0100_0000)));
    }

    #[test]
    fn headers_of_every_type_are_passed_over() {
        let mut headers = Vec::new();
        let values: [&[u8]; 10] =
            [&[], &[], &[1], &[1; 2], &[1; 4], &[1; 8], &[0, 3, 1, 2, 3], &[0, 1, b'v'], &[1; 8], &[1; 16]];
        for (kind, value) in (0u8..).zip(values) {
            headers.extend([1, b'a' + kind, kind]);
            headers.extend(value);
        }
        let mut frames = Vec::new();
        Frames::default().push(&with_headers(&headers, b""), &mut frames).unwrap();
        assert_eq!(frames[0].headers, BTreeMap::from([("h".to_owned(), "v".to_owned())]));
        check(&with_headers(&[1, b'a', 10], b""), Err(FrameError::Header));
        check(&with_headers(&[9, b'a', 0], b""), Err(FrameError::Header));
        check(&with_headers(&[1, b'a', 7, 0, 9, b'v'], b""), Err(FrameError::Header));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_frames(payloads: Vec<Vec<u8>>, cuts: Vec<prop::sample::Index>) {
            let bytes: Vec<u8> = payloads.iter().flat_map(|payload| frame(&[("n", "v")], payload)).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut frames = Frames::default();
            let mut read = Vec::new();
            for piece in cuts.windows(2) {
                frames.push(&bytes[piece[0]..piece[1]], &mut read).unwrap();
            }
            prop_assert!(frames.bytes.is_empty());
            prop_assert_eq!(read.into_iter().map(|frame| frame.payload).collect::<Vec<_>>(), payloads);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, mut headers: Vec<u8>) {
            let _ = Frames::default().push(&bytes, &mut Vec::new());
            headers.truncate(64);
            let _ = Frames::default().push(&with_headers(&headers, &bytes), &mut Vec::new());
        }
    }
}
