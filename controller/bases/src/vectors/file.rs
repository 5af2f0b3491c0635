//! Vectors in one artifact: a head that says how many and how long they are, the keys, and the rows. The digest of the artifact is its checksum.

use atlas_retrieval::{VectorError, Vectors};

use super::{KEY_BYTES, Key};

/// The word of the format. It changes when programs of today could no longer read it.
const FORMAT: &str = "atlas-vectors-1";

/// Most bytes of the head.
const HEAD_BYTES_MAX: usize = 64;

/// Why bytes are no vectors.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("it does not begin like vectors")]
    Head,
    #[error("it has {found} bytes after its head, not {stated}")]
    Length { stated: usize, found: usize },
    #[error("a vector cannot be used")]
    Vector(#[from] VectorError),
}

/// The bytes of vectors and their keys.
pub(crate) fn encode(keys: &[Key], vectors: &Vectors) -> Vec<u8> {
    let mut bytes = format!("{FORMAT} {} {}\n", vectors.dimension(), keys.len()).into_bytes();
    bytes.extend(keys.iter().flatten());
    bytes.extend(vectors.to_bytes());
    bytes
}

/// Reads what [`encode`] has written.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Vec<Key>, Vectors), FileError> {
    let end = bytes.iter().take(HEAD_BYTES_MAX).position(|byte| *byte == b'\n').ok_or(FileError::Head)?;
    let (head, rest) = bytes.split_at(end);
    let rest = rest.get(1..).unwrap_or_default();
    let head = std::str::from_utf8(head).ok().and_then(|head| head.strip_prefix(FORMAT)?.strip_prefix(' '));
    let (dimension, count) = head.and_then(|head| head.split_once(' ')).ok_or(FileError::Head)?;
    let number = |text: &str| text.parse::<usize>().map_err(|_| FileError::Head);
    let (dimension, count) = (number(dimension)?, number(count)?);
    let row = dimension.checked_add(4 + KEY_BYTES).ok_or(FileError::Head)?;
    let stated = row.checked_mul(count).ok_or(FileError::Head)?;
    if rest.len() != stated {
        return Err(FileError::Length { stated, found: rest.len() });
    }
    let (keys, rows) = rest.split_at(KEY_BYTES * count);
    let keys = keys.as_chunks::<KEY_BYTES>().0.to_vec();
    Ok((keys, Vectors::from_bytes(dimension, rows)?))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::vectors::key_of;

    fn check(bytes: &[u8], expected: &Expect) {
        expected.assert_eq(&decode(bytes).map_or_else(|error| error.to_string(), |(keys, _)| keys.len().to_string()));
    }

    #[test]
    fn other_bytes_are_refused() {
        check(b"", &expect!["it does not begin like vectors"]);
        check(b"atlas-vectors-2 1 0\n", &expect!["it does not begin like vectors"]);
        check(b"atlas-vectors-1 1\n", &expect!["it does not begin like vectors"]);
        check(b"atlas-vectors-1 18446744073709551615 2\n", &expect!["it does not begin like vectors"]);
        check(b"atlas-vectors-1 2 1\nabc", &expect!["it has 3 bytes after its head, not 22"]);
        check(b"atlas-vectors-1 0 0\n", &expect!["a vector cannot be used"]);
        check(b"atlas-vectors-1 2 0\n", &expect!["0"]);
        check(&[&b"atlas-vectors-1 1 1\n"[..], &[0; 21]].concat(), &expect!["a vector cannot be used"]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in proptest::collection::vec(0.1_f32..1.0, 0..8)) {
            let keys: Vec<Key> = rows.iter().map(|number| key_of(&number.to_string())).collect();
            let vectors = Vectors::from_rows(2, rows.iter().map(|number| [*number, 1.0])).expect("directions");
            let (read, found) = decode(&encode(&keys, &vectors)).expect("vectors");
            prop_assert_eq!(read, keys);
            prop_assert_eq!(found, vectors);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes);
            let _ = decode(&[&b"atlas-vectors-1 3 2\n"[..], &bytes].concat());
        }
    }
}
