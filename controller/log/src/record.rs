//! Records: `[length u32][crc32c u32][kind u8][body]`, little-endian, each checksum seeded with the one before it.
//!
//! The seeds chain the records, so that a record from an earlier use of a recycled segment never continues the current
//! chain.

use bytes::{BufMut, Bytes};

/// The id of an entry: the leader that wrote it, and its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogId {
    /// The leader's term.
    pub term: u64,
    /// The leader.
    pub node: u64,
    /// The entry's index. Indexes are consecutive.
    pub index: u64,
}

/// A member's vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vote {
    pub term: u64,
    /// The member that gets the vote.
    pub node: u64,
    /// True once a quorum agreed.
    pub committed: bool,
}

/// A record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An entry, at the index after the last one.
    Entry {
        /// Its id.
        id: LogId,
        /// Its body, which the log does not interpret.
        data: Bytes,
    },
    /// The complete vote.
    Vote(Vote),
    /// Entries up to this one were committed when the record was written.
    Committed(LogId),
    /// Entries from this index on were dropped.
    Truncate(u64),
    /// Entries up to this one were dropped, because a snapshot contains them.
    Purge(LogId),
}

/// The size of length and checksum, which precede the kind.
pub const FRAME_BYTES: usize = 8;
const KIND_ENTRY: u8 = 1;
const KIND_VOTE: u8 = 2;
const KIND_COMMITTED: u8 = 3;
const KIND_TRUNCATE: u8 = 4;
const KIND_PURGE: u8 = 5;
const ID_BYTES: usize = 24;

impl Record {
    /// The size of the encoded record, including its frame.
    pub fn encoded_len(&self) -> usize {
        let body = match self {
            Self::Entry { data, .. } => ID_BYTES + data.len(),
            Self::Vote(_) => 17,
            Self::Committed(_) | Self::Purge(_) => ID_BYTES,
            Self::Truncate(_) => 8,
        };
        FRAME_BYTES + 1 + body
    }

    /// Writes the record at the start of `out`, which has exactly [`Record::encoded_len`] bytes, and returns the next seed.
    pub fn encode(&self, seed: u32, out: &mut [u8]) -> u32 {
        debug_assert_eq!(out.len(), self.encoded_len());
        let (frame, mut payload) = out.split_at_mut(FRAME_BYTES);
        let len = u32::try_from(payload.len()).expect("a group is far smaller than 4 GiB");
        frame[..4].copy_from_slice(&len.to_le_bytes());
        match self {
            Self::Entry { id, data } => {
                payload.put_u8(KIND_ENTRY);
                put_id(&mut payload, id);
                payload.put_slice(data);
            }
            Self::Vote(vote) => {
                payload.put_u8(KIND_VOTE);
                payload.put_u64_le(vote.term);
                payload.put_u64_le(vote.node);
                payload.put_u8(u8::from(vote.committed));
            }
            Self::Committed(id) => {
                payload.put_u8(KIND_COMMITTED);
                put_id(&mut payload, id);
            }
            Self::Truncate(next) => {
                payload.put_u8(KIND_TRUNCATE);
                payload.put_u64_le(*next);
            }
            Self::Purge(id) => {
                payload.put_u8(KIND_PURGE);
                put_id(&mut payload, id);
            }
        }
        let crc = checksum(seed, &out[..4], &out[FRAME_BYTES..]);
        out[4..FRAME_BYTES].copy_from_slice(&crc.to_le_bytes());
        crc
    }

    /// Decodes the record at the start of `bytes`. Returns it with its size and the next seed. None if it is
    /// incomplete, does not continue the chain or has an unknown content.
    pub fn decode(seed: u32, bytes: &[u8]) -> Option<(Self, usize, u32)> {
        let len = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let crc = u32_at(bytes, 4)?;
        let end = FRAME_BYTES.checked_add(len)?;
        let payload = bytes.get(FRAME_BYTES..end)?;
        if checksum(seed, &bytes[..4], payload) != crc {
            return None;
        }
        let (&kind, body) = payload.split_first()?;
        let record = match kind {
            KIND_ENTRY => Self::Entry { id: id_at(body, 0)?, data: Bytes::copy_from_slice(body.get(ID_BYTES..)?) },
            KIND_VOTE if body.len() == 17 && body[16] <= 1 => {
                Self::Vote(Vote { term: u64_at(body, 0)?, node: u64_at(body, 8)?, committed: body[16] == 1 })
            }
            KIND_COMMITTED if body.len() == ID_BYTES => Self::Committed(id_at(body, 0)?),
            KIND_TRUNCATE if body.len() == 8 => Self::Truncate(u64_at(body, 0)?),
            KIND_PURGE if body.len() == ID_BYTES => Self::Purge(id_at(body, 0)?),
            _ => return None,
        };
        Some((record, end, crc))
    }
}

fn checksum(seed: u32, len: &[u8], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, len), payload)
}

fn put_id(out: &mut &mut [u8], id: &LogId) {
    out.put_u64_le(id.term);
    out.put_u64_le(id.node);
    out.put_u64_le(id.index);
}

fn id_at(bytes: &[u8], at: usize) -> Option<LogId> {
    Some(LogId { term: u64_at(bytes, at)?, node: u64_at(bytes, at + 8)?, index: u64_at(bytes, at + 16)? })
}

/// The little-endian number at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The little-endian number at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Record> {
        let id = LogId { term: 3, node: 1, index: 9 };
        vec![
            Record::Entry { id, data: Bytes::from_static(b"body") },
            Record::Entry { id, data: Bytes::new() },
            Record::Vote(Vote { term: 4, node: 2, committed: true }),
            Record::Committed(id),
            Record::Truncate(8),
            Record::Purge(id),
        ]
    }

    #[test]
    fn records_read_back_as_written_and_only_in_their_chain() {
        for record in samples() {
            let mut bytes = vec![0; record.encoded_len()];
            let next = record.encode(7, &mut bytes);
            assert_eq!(Record::decode(7, &bytes), Some((record.clone(), bytes.len(), next)));
            assert_eq!(Record::decode(8, &bytes), None, "{record:?}");
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        for record in samples() {
            let mut bytes = vec![0; record.encoded_len()];
            record.encode(7, &mut bytes);
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Record::decode(7, &bytes), None, "{record:?} bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            for cut in 0..bytes.len() {
                assert_eq!(Record::decode(7, &bytes[..cut]), None, "{record:?} cut {cut}");
            }
        }
    }
}
