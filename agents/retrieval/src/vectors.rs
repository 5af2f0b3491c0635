//! Embeddings, and how near they are to the one of a question.

mod bytes;

use std::fmt;

/// Most numbers of a vector.
pub(crate) const DIMENSION_MAX: usize = 8192;

/// The largest number of a question after rounding. With [`ROW_MAX`] and [`DIMENSION_MAX`], a sum of products fits into 32 bits.
const QUESTION_MAX: f64 = 2047.0;
const ROW_MAX: f64 = 127.0;

/// Which vector an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorOf {
    /// A row, counted from 0.
    Row(usize),
    /// The vector of the question.
    Question,
}

impl fmt::Display for VectorOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(row) => write!(f, "vector {row}"),
            Self::Question => write!(f, "the vector of the question"),
        }
    }
}

/// Why vectors cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    #[error("vectors of {dimension} numbers: a vector has 1 to {DIMENSION_MAX}")]
    Dimension { dimension: usize },
    #[error("{which} has {found} numbers instead of {wanted}; another model made it")]
    Length { which: VectorOf, found: usize, wanted: usize },
    #[error("{which}: number {place} is {number}")]
    Number { which: VectorOf, place: usize, number: String },
    #[error("{which} has only zeros, so it points nowhere")]
    Zero { which: VectorOf },
    #[error("{rows} vectors for {chunks} chunks; each chunk has one")]
    Count { rows: usize, chunks: usize },
    #[error("the question has a vector, but the chunks have none; build them with a model")]
    NoVectors,
    #[error("{bytes} bytes are no whole number of vectors of {row_bytes} bytes")]
    Bytes { bytes: usize, row_bytes: usize },
    #[error("{which} is not as vectors are written: it is damaged")]
    Stored { which: VectorOf },
}

/// Vectors of one length, of which only the direction counts. Each number is a byte: a row takes its dimension and four bytes more.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    dimension: usize,
    /// Row after row. The largest number of a row is ±127.
    numbers: Vec<i8>,
    /// For each row, what its numbers are to be multiplied by to have the length 1.
    scales: Vec<f32>,
}

impl Vectors {
    /// No vectors yet, of 1 to 8,192 numbers each.
    pub fn new(dimension: usize) -> Result<Self, VectorError> {
        if !(1..=DIMENSION_MAX).contains(&dimension) {
            return Err(VectorError::Dimension { dimension });
        }
        Ok(Self { dimension, numbers: Vec::new(), scales: Vec::new() })
    }

    /// Vectors of rows. The first row that cannot be used is named.
    pub fn from_rows<R: AsRef<[f32]>>(
        dimension: usize,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Self, VectorError> {
        let mut vectors = Self::new(dimension)?;
        for row in rows {
            vectors.push(row.as_ref())?;
        }
        Ok(vectors)
    }

    /// Adds a row; its length makes no difference. After an error nothing has changed.
    pub fn push(&mut self, row: &[f32]) -> Result<(), VectorError> {
        let norm = norm(row, self.dimension, VectorOf::Row(self.len()))?;
        let most = row.iter().fold(0.0, |most: f64, number| most.max(f64::from(*number).abs()));
        let rounded = |number: &f32| (f64::from(*number) / most * ROW_MAX).round() as i8;
        self.numbers.extend(row.iter().map(rounded));
        self.scales.push((most / norm / ROW_MAX) as f32);
        Ok(())
    }

    /// The numbers of a row and their scale, as they are stored.
    pub(crate) fn row(&self, row: usize) -> Option<(&[i8], f32)> {
        let begin = row.checked_mul(self.dimension)?;
        Some((self.numbers.get(begin..begin.checked_add(self.dimension)?)?, *self.scales.get(row)?))
    }

    /// Adds a row as it was stored. `None` if it is none of these vectors.
    pub(crate) fn push_stored(&mut self, numbers: &[i8], scale: f32) -> Option<()> {
        let most = numbers.iter().map(|number| number.unsigned_abs()).max();
        if numbers.len() != self.dimension || most != Some(127) || !(scale.is_finite() && scale > 0.0 && scale <= 1.0) {
            return None;
        }
        self.numbers.extend_from_slice(numbers);
        self.scales.push(scale);
        Some(())
    }

    /// Adds all rows of vectors of the same dimension.
    pub(crate) fn append(&mut self, rows: &Self) {
        self.numbers.extend_from_slice(&rows.numbers);
        self.scales.extend_from_slice(&rows.scales);
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// How many numbers a row has.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The cosine of each row and a question, exact but for rounding; 0 for rows that are not readable.
    pub(crate) fn cosines(
        &self,
        question: &[f32],
        is_readable: &impl Fn(u32) -> bool,
    ) -> Result<Vec<f64>, VectorError> {
        let norm = norm(question, self.dimension, VectorOf::Question)?;
        let most = question.iter().fold(0.0, |most: f64, number| most.max(f64::from(*number).abs()));
        let rounded = |number: &f32| (f64::from(*number) / most * QUESTION_MAX).round() as i16;
        let asked: Vec<i16> = question.iter().map(rounded).collect();
        let scale = most / norm / QUESTION_MAX;
        let rows = self.numbers.chunks_exact(self.dimension).zip(&self.scales);
        // Every row is compared, so that the time tells nothing about those that are not readable.
        let cosine = |(chunk, (row, own)): (u32, (&[i8], &f32))| {
            let cosine = f64::from(product(row, &asked)) * scale * f64::from(*own);
            if is_readable(chunk) { cosine } else { 0.0 }
        };
        Ok((0_u32..).zip(rows).map(cosine).collect())
    }
}

/// The sum of the products of the numbers of two vectors.
fn product(row: &[i8], asked: &[i16]) -> i32 {
    row.iter().zip(asked).map(|(row, asked)| i32::from(*row) * i32::from(*asked)).sum()
}

/// The length of a vector; an error if it has no direction.
fn norm(vector: &[f32], wanted: usize, which: VectorOf) -> Result<f64, VectorError> {
    if vector.len() != wanted {
        return Err(VectorError::Length { which, found: vector.len(), wanted });
    }
    if let Some((place, number)) = vector.iter().enumerate().find(|(_, number)| !number.is_finite()) {
        return Err(VectorError::Number { which, place, number: number.to_string() });
    }
    let norm = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if norm > 0.0 { Ok(norm) } else { Err(VectorError::Zero { which }) }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(rows: &[&[f32]], question: &[f32], expected: &Expect) {
        let found = Vectors::from_rows(2, rows).and_then(|vectors| vectors.cosines(question, &|_| true));
        let shown = found.map_or_else(
            |error| error.to_string(),
            |cosines| cosines.iter().map(|cosine| format!("{cosine:.2}")).collect::<Vec<_>>().join(" "),
        );
        expected.assert_eq(&shown);
    }

    #[test]
    fn directions_are_compared() {
        check(&[&[1.0, 0.0], &[0.0, 2.0], &[-3.0, 0.0], &[1.0, 1.0]], &[5.0, 0.0], &expect!["1.00 0.00 -1.00 0.71"]);
        check(&[&[1e-45, 0.0], &[3e38, 3e38]], &[1e-45, 1e-45], &expect!["0.71 1.00"]);
        check(&[], &[1.0, 0.0], &expect![""]);
    }

    #[test]
    fn vectors_without_a_direction_are_refused() {
        check(&[&[1.0, 0.0], &[0.0, 0.0]], &[1.0, 0.0], &expect!["vector 1 has only zeros, so it points nowhere"]);
        check(&[&[1.0, 0.0], &[0.0, f32::NAN]], &[1.0, 0.0], &expect!["vector 1: number 1 is NaN"]);
        check(&[&[f32::NEG_INFINITY, 0.0]], &[1.0, 0.0], &expect!["vector 0: number 0 is -inf"]);
        check(&[&[1.0, 0.0, 0.0]], &[1.0, 0.0], &expect!["vector 0 has 3 numbers instead of 2; another model made it"]);
        check(
            &[&[1.0, 0.0]],
            &[1.0],
            &expect!["the vector of the question has 1 numbers instead of 2; another model made it"],
        );
        check(
            &[&[1.0, 0.0]],
            &[0.0, -0.0],
            &expect!["the vector of the question has only zeros, so it points nowhere"],
        );
        check(&[&[1.0, 0.0]], &[0.0, f32::INFINITY], &expect!["the vector of the question: number 1 is inf"]);
        expect!["vectors of 0 numbers: a vector has 1 to 8192"]
            .assert_eq(&Vectors::new(0).map_or_else(|error| error.to_string(), |_| String::new()));
        expect!["vectors of 8193 numbers: a vector has 1 to 8192"]
            .assert_eq(&Vectors::new(8193).map_or_else(|error| error.to_string(), |_| String::new()));
    }

    #[test]
    fn the_longest_vectors_do_not_overflow() {
        let ones = vec![1.0; DIMENSION_MAX];
        let vectors = Vectors::from_rows(DIMENSION_MAX, [&ones]).expect("a direction");
        let cosines = vectors.cosines(&ones, &|_| true).expect("a direction");
        assert!((cosines[0] - 1.0).abs() < 1e-4);
    }

    proptest! {
        #[test]
        fn cosines_are_nearly_exact(row in proptest::collection::vec(-1.0_f32..1.0, 64), question in proptest::collection::vec(-1.0_f32..1.0, 64)) {
            let vectors = Vectors::from_rows(64, [&row]).expect("a direction");
            let cosine = vectors.cosines(&question, &|_| true).expect("a direction")[0];
            let dot = |left: &[f32], right: &[f32]| left.iter().zip(right).map(|(l, r)| f64::from(*l) * f64::from(*r)).sum::<f64>();
            let exact = dot(&row, &question) / (dot(&row, &row) * dot(&question, &question)).sqrt();
            prop_assert!((cosine - exact).abs() < 0.01, "{cosine} {exact}");
        }

        #[test]
        fn any_numbers_are_used_or_refused(row in proptest::collection::vec(any::<f32>(), 0..5), question in proptest::collection::vec(any::<f32>(), 0..5)) {
            let Ok(vectors) = Vectors::from_rows(3, [&row]) else { return Ok(()) };
            if let Ok(cosines) = vectors.cosines(&question, &|_| true) {
                prop_assert!(cosines.iter().all(|cosine| cosine.is_finite() && cosine.abs() < 1.01));
            }
        }
    }
}
