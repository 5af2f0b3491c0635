//! The bytes of vectors: for each row a byte for each number, then its scale, a float of 4 bytes, least byte first.

use super::{VectorError, VectorOf, Vectors};

/// The bytes of the scale of a row.
const SCALE_BYTES: usize = size_of::<f32>();

impl Vectors {
    /// All rows, one after the other. Their dimension is not among the bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() * (self.dimension + SCALE_BYTES));
        for (numbers, scale) in (0..self.len()).filter_map(|row| self.row(row)) {
            bytes.extend(numbers.iter().map(|number| number.to_le_bytes()[0]));
            bytes.extend_from_slice(&scale.to_le_bytes());
        }
        bytes
    }

    /// The rows of [`Self::to_bytes`], of 1 to 8,192 numbers each. Bytes that no vectors have are an error.
    pub fn from_bytes(dimension: usize, bytes: &[u8]) -> Result<Self, VectorError> {
        let mut vectors = Self::new(dimension)?;
        let row_bytes = dimension + SCALE_BYTES;
        let rows = bytes.chunks_exact(row_bytes);
        if !rows.remainder().is_empty() {
            return Err(VectorError::Bytes { bytes: bytes.len(), row_bytes });
        }
        let mut numbers = Vec::with_capacity(dimension);
        for row in rows {
            let (row, scale) = row.split_at(dimension);
            numbers.clear();
            numbers.extend(row.iter().map(|byte| i8::from_le_bytes([*byte])));
            let scale = scale.try_into().map_or(0.0, f32::from_le_bytes);
            let which = VectorOf::Row(vectors.len());
            vectors.push_stored(&numbers, scale).ok_or(VectorError::Stored { which })?;
        }
        Ok(vectors)
    }

    /// Adds the rows of other vectors. If these have another dimension, nothing has changed.
    pub fn append_rows(&mut self, rows: &Self) -> Result<(), VectorError> {
        if rows.dimension != self.dimension {
            let which = VectorOf::Row(self.len());
            return Err(VectorError::Length { which, found: rows.dimension, wanted: self.dimension });
        }
        self.append(rows);
        Ok(())
    }

    /// Adds one row of other vectors. The answer is whether they have that row, and their dimension is the same; otherwise nothing has changed.
    pub fn push_row_of(&mut self, other: &Self, row: usize) -> bool {
        let Some((numbers, scale)) = other.row(row).filter(|_| other.dimension == self.dimension) else { return false };
        self.numbers.extend_from_slice(numbers);
        self.scales.push(scale);
        true
    }

    /// Adds a row that is near nothing, for a chunk without a vector: its cosine is 0.
    pub fn push_none(&mut self) {
        self.numbers.extend(std::iter::repeat_n(0, self.dimension));
        self.scales.push(0.0);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(dimension: usize, bytes: &[u8], expected: &Expect) {
        let read = Vectors::from_bytes(dimension, bytes);
        expected.assert_eq(&read.map_or_else(|error| error.to_string(), |read| format!("{} rows", read.len())));
    }

    #[test]
    fn a_row_is_its_numbers_and_its_scale() {
        let vectors = Vectors::from_rows(2, [[3.0, -4.0]]).expect("a direction");
        let bytes = vectors.to_bytes();
        assert_eq!(bytes[..2], [95, 129]);
        assert_eq!(bytes[2..], ((4.0 / 5.0 / 127.0) as f32).to_le_bytes());
    }

    #[test]
    fn other_bytes_are_refused() {
        let row = Vectors::from_rows(2, [[3.0, -4.0]]).expect("a direction").to_bytes();
        check(2, &[], &expect!["0 rows"]);
        check(2, &[&*row, &*row].concat(), &expect!["2 rows"]);
        check(2, &row[..5], &expect!["5 bytes are no whole number of vectors of 6 bytes"]);
        check(0, &row, &expect!["vectors of 0 numbers: a vector has 1 to 8192"]);
        check(usize::MAX, &row, &expect!["vectors of 18446744073709551615 numbers: a vector has 1 to 8192"]);
        let damaged = |place: usize, byte: u8| {
            let mut damaged = [&*row, &*row].concat();
            damaged[place] = byte;
            damaged
        };
        let refused = expect!["vector 1 is not as vectors are written: it is damaged"];
        // The largest number is 127 or -127.
        check(2, &damaged(7, 0x80), &refused);
        check(2, &damaged(7, 0x01), &refused);
        // The scale becomes a negative one, and one without a value.
        check(2, &damaged(11, 0xbc), &refused);
        check(2, &damaged(11, 0x7f), &refused);
    }

    #[test]
    fn rows_of_another_length_are_not_joined() {
        let mut vectors = Vectors::from_rows(2, [[3.0, -4.0]]).expect("a direction");
        let longer = Vectors::from_rows(3, [[1.0, 0.0, 0.0]]).expect("a direction");
        let error = vectors.append_rows(&longer).expect_err("another length");
        assert_eq!(error.to_string(), "vector 1 has 3 numbers instead of 2; another model made it");
        vectors.append_rows(&vectors.clone()).expect("the same length");
        assert_eq!(vectors.len(), 2);
    }

    #[test]
    fn rows_are_copied_and_left_out() {
        let rows = Vectors::from_rows(2, [[1.0, 0.0], [0.0, 1.0]]).expect("directions");
        let mut picked = Vectors::new(2).expect("a dimension");
        assert!(picked.push_row_of(&rows, 1) && !picked.push_row_of(&rows, 2));
        assert!(!picked.push_row_of(&Vectors::from_rows(1, [[1.0]]).expect("a direction"), 0));
        picked.push_none();
        assert_eq!(picked.cosines(&[0.0, 2.0], &|_| true).expect("it fits").get(1), Some(&0.0));
        assert_eq!(picked.len(), 2);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in proptest::collection::vec(proptest::collection::vec(-1e30_f32..1e30, 5), 0..9)) {
            let Ok(vectors) = Vectors::from_rows(5, &rows) else { return Ok(()) };
            let read = Vectors::from_bytes(5, &vectors.to_bytes());
            prop_assert_eq!(read, Ok(vectors));
        }

        #[test]
        fn any_bytes_are_read_or_refused(dimension in 0_usize..9, bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            if let Ok(vectors) = Vectors::from_bytes(dimension, &bytes) {
                prop_assert_eq!(vectors.to_bytes(), bytes);
            }
        }
    }
}
