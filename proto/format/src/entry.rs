//! Log entries. Requests come first in the bytes and the header last, so that a planner can append one request after the
//! other, knowing the size, and write the header when the entry is full.

use atlas_types::{ClusterTime, Entry, Level, Parent, Request, Seq, Timestamp};
use prost::encoding::{
    DecodeContext, WireType, decode_key, encode_key, encode_varint, encoded_len_varint, key_len, skip_field,
};
use prost::{DecodeError, Message as _};

use crate::convert::{fixed, required};
use crate::{FormatError, proto};

/// Most bytes of an entry that a leader plans.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;

/// Most requests of an entry that a leader plans.
pub const ENTRY_REQUESTS_MAX: usize = 512;

/// Readers take twice what planners write: an entry is committed before it is read, and a planner that counts one byte wrong
/// must not stop every replica.
const READ_BYTES_MAX: usize = 2 * ENTRY_BYTES_MAX;
const READ_REQUESTS_MAX: usize = 2 * ENTRY_REQUESTS_MAX;

const REQUESTS_TAG: u32 = 1;
const HEADER_TAG: u32 = 2;

/// Appends one request to the bytes of an entry.
pub fn encode_request(request: &Request, entry: &mut Vec<u8>) {
    append(REQUESTS_TAG, &proto::Request::from(request), entry);
}

/// Bytes that [`encode_request`] appends.
pub fn request_len(request: &Request) -> usize {
    let len = proto::Request::from(request).encoded_len();
    key_len(REQUESTS_TAG) + encoded_len_varint(len as u64) + len
}

fn append(tag: u32, message: &impl prost::Message, bytes: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, bytes);
    encode_varint(message.encoded_len() as u64, bytes);
    message.encode_raw(bytes);
}

/// Builds the bytes of an entry while it is planned: each request is encoded once.
#[derive(Debug, Clone, Default)]
pub struct EntryEncoder {
    bytes: Vec<u8>,
    requests: usize,
}

impl EntryEncoder {
    /// Bytes that the header may take, kept free by [`Self::fits`].
    const HEADER_BYTES_MAX: usize = 128;

    /// An encoder without requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a request.
    pub fn push(&mut self, request: &Request) {
        encode_request(request, &mut self.bytes);
        self.requests += 1;
    }

    /// Appends a request if the entry stays within its bounds with it; otherwise leaves everything as it was.
    pub fn try_push(&mut self, request: &Request) -> bool {
        let before = self.bytes.len();
        self.push(request);
        if self.fits() {
            return true;
        }
        self.bytes.truncate(before);
        self.requests -= 1;
        false
    }

    /// Drops all requests after the first `requests`, whose bytes end at `bytes` (both as told when the last of them had
    /// been pushed): used when a plan is abandoned.
    pub fn truncate(&mut self, requests: usize, bytes: usize) {
        self.requests = self.requests.min(requests);
        self.bytes.truncate(bytes);
    }

    /// True while the entry keeps to its bounds.
    fn fits(&self) -> bool {
        self.requests <= ENTRY_REQUESTS_MAX && self.bytes.len() + Self::HEADER_BYTES_MAX <= ENTRY_BYTES_MAX
    }

    /// Bytes so far, the header not counted.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True without requests.
    pub fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// Requests so far.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// Appends the header of `entry` and gives the bytes out. The requests are those that were pushed; `entry`'s own are not
    /// looked at.
    pub fn finish(mut self, entry: &Entry) -> Vec<u8> {
        append(HEADER_TAG, &header_out(entry), &mut self.bytes);
        self.bytes
    }
}

/// The bytes of an entry.
pub fn encode_entry(entry: &Entry) -> Vec<u8> {
    let mut encoder = EntryEncoder::new();
    for request in &entry.requests {
        encoder.push(request);
    }
    encoder.finish(entry)
}

/// Reads an entry. Whatever it does not understand is an error: the replica must stop.
pub fn decode_entry(bytes: &[u8]) -> Result<Entry, FormatError> {
    if bytes.len() > READ_BYTES_MAX {
        return Err(FormatError::TooLarge { field: "entry", found: bytes.len(), max: READ_BYTES_MAX });
    }
    check_requests(bytes, READ_REQUESTS_MAX)?;
    let message = proto::Entry::decode(bytes).map_err(|source| FormatError::Malformed { source })?;
    let understood = message.encoded_len();
    let header = required("entry.header", message.header)?;
    // Before anything else is looked at: an entry for newer readers may hold anything.
    let min_reader_level = Level(header.min_reader_level);
    if min_reader_level > Level::CURRENT {
        return Err(FormatError::Level { wanted: min_reader_level });
    }
    if let Some(index) = message.requests.iter().position(|request| request.command.is_none()) {
        return Err(FormatError::UnknownCommand { index });
    }
    if understood != bytes.len() {
        return Err(FormatError::UnknownField { found: bytes.len(), understood });
    }
    Ok(Entry {
        cluster_id: u128::from_be_bytes(fixed("header.cluster_id", &header.cluster_id)?),
        level: Level(header.level),
        min_reader_level,
        parent: Parent { seq: Seq(header.parent_seq), chain: fixed("header.parent_chain", &header.parent_chain)? },
        at: Timestamp(header.at_us),
        clock: ClusterTime(header.clock_us),
        requests: message.requests.into_iter().map(Request::try_from).collect::<Result<_, _>>()?,
    })
}

/// The bytes of requests that travel without an entry: what an entry of them has before its header.
pub fn encode_requests(requests: &[Request]) -> Vec<u8> {
    let mut bytes = Vec::new();
    requests.iter().for_each(|request| encode_request(request, &mut bytes));
    bytes
}

/// Reads requests that travelled without an entry, at most `max` of them. Whatever it does not understand is an error.
pub fn decode_requests(bytes: &[u8], max: usize) -> Result<Vec<Request>, FormatError> {
    check_requests(bytes, max)?;
    let message = proto::Entry::decode(bytes).map_err(|source| FormatError::Malformed { source })?;
    let understood = message.encoded_len();
    if let Some(index) = message.requests.iter().position(|request| request.command.is_none()) {
        return Err(FormatError::UnknownCommand { index });
    }
    if message.header.is_some() || understood != bytes.len() {
        return Err(FormatError::UnknownField { found: bytes.len(), understood });
    }
    message.requests.into_iter().map(Request::try_from).collect()
}

/// Counts the requests before any is read: an empty one has two bytes in the entry and hundreds in memory.
fn check_requests(bytes: &[u8], max: usize) -> Result<(), FormatError> {
    let found = count_requests(bytes).map_err(|source| FormatError::Malformed { source })?;
    if found > max { Err(FormatError::TooLarge { field: "entry.requests", found, max }) } else { Ok(()) }
}

fn count_requests(mut bytes: &[u8]) -> Result<usize, DecodeError> {
    let mut found = 0;
    while !bytes.is_empty() {
        let (tag, wire_type) = decode_key(&mut bytes)?;
        skip_field(wire_type, tag, &mut bytes, DecodeContext::default())?;
        found += usize::from(tag == REQUESTS_TAG);
    }
    Ok(found)
}

fn header_out(entry: &Entry) -> proto::EntryHeader {
    proto::EntryHeader {
        cluster_id: entry.cluster_id.to_be_bytes().to_vec(),
        level: entry.level.0,
        min_reader_level: entry.min_reader_level.0,
        parent_seq: entry.parent.seq.0,
        parent_chain: entry.parent.chain.to_vec(),
        at_us: entry.at.0,
        clock_us: entry.clock.0,
    }
}
