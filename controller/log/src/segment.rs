//! A segment: one header block, then groups of whole blocks. One write and one sync make a group durable.
//!
//! Group n+1 is written only after group n is durable. So a readable group proves that every earlier group was durable,
//! and an unreadable group without a later one is a tail that was never acknowledged. The salt is random for each start
//! of the program. It prevents a group from an earlier use of the file, or one forged inside an entry, from being such
//! a proof.

use super::block::BLOCK_BYTES;
use super::record::{u32_at, u64_at};

/// The format that this program writes.
pub const FORMAT: u32 = 1;
const SEGMENT_MAGIC: [u8; 8] = *b"ATLASLOG";
const GROUP_MAGIC: [u8; 4] = *b"AGRP";
const HEADER_BYTES: usize = 64;
/// The size of a group's header, which precedes its records.
pub const GROUP_HEADER_BYTES: usize = 48;

/// The first block of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The cluster that the log belongs to.
    pub cluster_id: u128,
    /// The segment's number, also in its name.
    pub sequence: u64,
    /// The salt that the segment's groups repeat.
    pub salt: u64,
    /// The number of its first group.
    pub group: u64,
    /// The chain at its start: the checksum of the previous record.
    pub chain: u32,
}

/// The result of reading the first block of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderRead {
    /// A header of this format.
    Header(Header),
    /// A valid header in a format that this program does not know.
    Newer(u32),
    /// Anything else: never written, torn or damaged.
    Unreadable,
}

impl Header {
    /// Writes the header at the start of `out`.
    pub fn encode(&self, out: &mut [u8]) {
        out[..8].copy_from_slice(&SEGMENT_MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[12..28].copy_from_slice(&self.cluster_id.to_le_bytes());
        out[28..36].copy_from_slice(&self.sequence.to_le_bytes());
        out[36..44].copy_from_slice(&self.salt.to_le_bytes());
        out[44..52].copy_from_slice(&self.group.to_le_bytes());
        out[52..56].copy_from_slice(&self.chain.to_le_bytes());
        let crc = crc32c::crc32c(&out[..HEADER_BYTES - 4]);
        out[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    }

    /// Decodes the first block of a segment. Magic, format and checksum have the same place in every format.
    pub fn decode(bytes: &[u8]) -> HeaderRead {
        Self::decode_whole(bytes).unwrap_or(HeaderRead::Unreadable)
    }

    fn decode_whole(bytes: &[u8]) -> Option<HeaderRead> {
        let crc = u32_at(bytes, HEADER_BYTES - 4)?;
        if bytes[..8] != SEGMENT_MAGIC || crc32c::crc32c(&bytes[..HEADER_BYTES - 4]) != crc {
            return None;
        }
        let format = u32_at(bytes, 8)?;
        if format > FORMAT {
            return Some(HeaderRead::Newer(format));
        }
        Some(HeaderRead::Header(Self {
            cluster_id: u128::from(u64_at(bytes, 12)?) | (u128::from(u64_at(bytes, 20)?) << 64),
            sequence: u64_at(bytes, 28)?,
            salt: u64_at(bytes, 36)?,
            group: u64_at(bytes, 44)?,
            chain: u32_at(bytes, 52)?,
        }))
    }
}

/// The header of a group. Its checksum covers only the header, so that a group can be recognised after damaged data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupHeader {
    /// The size of the records that follow.
    pub len: u32,
    /// The segment's number.
    pub sequence: u64,
    /// The segment's salt.
    pub salt: u64,
    /// The group's number, counted over the whole log.
    pub group: u64,
    /// Random for each start of the program, so that sectors of a torn group never complete a group that is later
    /// written over it.
    pub life: u64,
    /// The checksum of the previous record.
    pub chain: u32,
}

impl GroupHeader {
    /// The seed of the group's first record.
    pub fn seed(&self) -> u32 {
        crc32c::crc32c_append(self.chain, &self.life.to_le_bytes())
    }

    /// Writes the header at the start of `out`.
    pub fn encode(&self, out: &mut [u8]) {
        out[..4].copy_from_slice(&GROUP_MAGIC);
        out[4..8].copy_from_slice(&self.len.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..24].copy_from_slice(&self.salt.to_le_bytes());
        out[24..32].copy_from_slice(&self.group.to_le_bytes());
        out[32..40].copy_from_slice(&self.life.to_le_bytes());
        out[40..44].copy_from_slice(&self.chain.to_le_bytes());
        let crc = crc32c::crc32c(&out[..GROUP_HEADER_BYTES - 4]);
        out[GROUP_HEADER_BYTES - 4..GROUP_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    }

    /// Decodes a group's header; none if it is not valid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let crc = u32_at(bytes, GROUP_HEADER_BYTES - 4)?;
        if bytes[..4] != GROUP_MAGIC || crc32c::crc32c(&bytes[..GROUP_HEADER_BYTES - 4]) != crc {
            return None;
        }
        Some(Self {
            len: u32_at(bytes, 4)?,
            sequence: u64_at(bytes, 8)?,
            salt: u64_at(bytes, 16)?,
            group: u64_at(bytes, 24)?,
            life: u64_at(bytes, 32)?,
            chain: u32_at(bytes, 40)?,
        })
    }

    /// The size of the whole group with its padding.
    pub fn padded_len(&self) -> usize {
        (GROUP_HEADER_BYTES + self.len as usize).next_multiple_of(BLOCK_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back_as_written() {
        let header = Header { cluster_id: 1 << 100 | 7, sequence: 3, salt: 9, group: 40, chain: 5 };
        let mut bytes = vec![0; BLOCK_BYTES];
        header.encode(&mut bytes);
        assert_eq!(Header::decode(&bytes), HeaderRead::Header(header));
        let group = GroupHeader { len: 5000, sequence: 3, salt: 9, group: 41, life: 2, chain: 6 };
        group.encode(&mut bytes);
        assert_eq!(GroupHeader::decode(&bytes), Some(group));
        assert_eq!(group.padded_len(), 2 * BLOCK_BYTES);
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let header = Header { cluster_id: 7, sequence: 3, salt: 9, group: 40, chain: 5 };
        let mut bytes = vec![0; BLOCK_BYTES];
        header.encode(&mut bytes);
        bytes[8] = 2;
        assert_eq!(Header::decode(&bytes), HeaderRead::Unreadable);
        let crc = crc32c::crc32c(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Header::decode(&bytes), HeaderRead::Newer(2));
        assert_eq!(Header::decode(&[0; BLOCK_BYTES]), HeaderRead::Unreadable);
    }
}
