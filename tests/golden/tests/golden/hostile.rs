//! Truncated, changed or foreign bytes give an error or a value, never a panic.

use atlas_format::{
    FormatError, SnapshotError, decode_entry, decode_job, decode_outcomes, decode_snapshot, encode_entry, encode_job,
    encode_outcomes, encode_snapshot,
};
use atlas_types::Request;

use crate::samples;

/// Cuts `bytes` everywhere and flips each of its bits.
fn mangle(bytes: &[u8], read: impl Fn(&[u8])) {
    for len in 0..bytes.len() {
        read(&bytes[..len]);
    }
    let mut changed = bytes.to_vec();
    for at in 0..changed.len() {
        for bit in 0..8 {
            changed[at] ^= 1 << bit;
            read(&changed);
            changed[at] ^= 1 << bit;
        }
    }
}

#[test]
fn mangled_entries_do_no_harm() {
    for (_, command) in samples::commands() {
        let bytes = encode_entry(&samples::entry(Request { origin: samples::origin(), command }));
        mangle(&bytes, |bytes| {
            // What is still understood is understood whole.
            if let Ok(entry) = decode_entry(bytes) {
                assert_eq!(encode_entry(&entry).len(), bytes.len());
            }
        });
    }
}

#[test]
fn mangled_outcomes_and_jobs_do_no_harm() {
    mangle(&encode_outcomes(&samples::outcomes()), |bytes| drop(decode_outcomes(bytes)));
    for job in samples::jobs() {
        mangle(&encode_job(&job), |bytes| drop(decode_job(bytes)));
    }
}

#[test]
fn mangled_snapshots_are_refused() {
    let mut bytes = Vec::new();
    encode_snapshot(&samples::image(), &mut bytes).expect("a vector takes everything");
    mangle(&bytes, |bytes| assert!(decode_snapshot(bytes).is_err()));
}

/// A record that says it is large, in a file that is not, is refused without making room for it.
#[test]
fn a_record_takes_no_more_memory_than_has_arrived() {
    let mut bytes = b"ATLSNAP1".to_vec();
    bytes.extend((8_u32 << 20).to_le_bytes());
    bytes.extend([0; 100]);
    assert!(matches!(decode_snapshot(bytes.as_slice()), Err(SnapshotError::Truncated { records: 0 })));
}

/// An empty request has two bytes in the entry and hundreds in memory, so requests are counted before they are read.
#[test]
fn many_empty_requests_are_refused() {
    let bytes = [0x0a, 0x00].repeat(1 << 20);
    assert!(matches!(decode_entry(&bytes), Err(FormatError::TooLarge { field: "entry.requests", .. })));
}
