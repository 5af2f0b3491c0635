//! How the texts of a call are divided: a process answers a line in a short time and in little memory.

use std::ops::Range;

/// Most texts of a line.
const TEXTS_MAX: usize = 64;
/// Most bytes of the texts of a line with more than one.
const BYTES_MAX: usize = 256 << 10;
/// Most bytes of a text.
pub(super) const TEXT_BYTES_MAX: usize = 64 << 10;

/// The texts of each line, by their places. `lengths` are the bytes of the texts.
pub(super) fn batches(lengths: &[usize]) -> Vec<Range<usize>> {
    let (mut all, mut first, mut bytes) = (Vec::new(), 0_usize, 0_usize);
    for (place, length) in lengths.iter().enumerate() {
        let is_full = place - first == TEXTS_MAX || bytes.saturating_add(*length) > BYTES_MAX;
        if is_full && place > first {
            all.push(first..place);
            (first, bytes) = (place, 0);
        }
        bytes = bytes.saturating_add(*length);
    }
    if first < lengths.len() {
        all.push(first..lengths.len());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lengths: &[usize], expected: &[Range<usize>]) {
        assert_eq!(batches(lengths), expected);
    }

    #[test]
    fn lines_have_few_texts_and_few_bytes() {
        check(&[], &[]);
        check(&[7; 64], std::slice::from_ref(&(0..64)));
        check(&[7; 65], &[0..64, 64..65]);
        check(&[100 << 10; 5], &[0..2, 2..4, 4..5]);
        check(&[1, 300 << 10, 1], &[0..1, 1..2, 2..3]);
        check(&[usize::MAX; 2], &[0..1, 1..2]);
    }
}
