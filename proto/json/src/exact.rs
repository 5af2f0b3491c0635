//! Added for Atlas: which numbers `u64`, `i64` and `f64` hold exactly. The others are kept as their text.

use crate::de::ParserNumber;
use alloc::boxed::Box;

/// A number of this many digits comes out of an `f64` as it went in, unless it is very large or very small.
const DIGITS_OF_F64: usize = 15;

/// The number of a text that the grammar of JSON allows; none if its nearest `f64` is infinite.
pub(crate) fn number(text: &[u8]) -> Option<ParserNumber> {
    let text = core::str::from_utf8(text).ok()?;
    let is_integer = !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if is_integer && text != "-0" {
        if let Ok(number) = text.parse() {
            return Some(ParserNumber::U64(number));
        }
        if let Ok(number) = text.parse() {
            return Some(ParserNumber::I64(number));
        }
    }
    let nearest: f64 = text.parse().ok()?;
    if !nearest.is_finite() {
        return None;
    }
    // Beyond 64 bits, an `f64` would print an integer with an exponent, which other programs read as no integer.
    let is_same = (!is_integer || text == "-0") && is_same(text, nearest);
    Some(if is_same { ParserNumber::F64(nearest) } else { ParserNumber::Exact(Box::from(text)) })
}

/// Whether what an `f64` prints is the number of a text.
fn is_same(text: &str, nearest: f64) -> bool {
    let digits = text.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).filter(u8::is_ascii_digit).count();
    let is_usual = nearest == 0.0 || (1e-290..1e290).contains(&nearest.abs());
    if is_usual && nearest != 0.0 && digits <= DIGITS_OF_F64 {
        return true;
    }
    match (Decimal::of(text), Decimal::of(zmij::Buffer::new().format_finite(nearest))) {
        (Some(ours), Some(printed)) => ours.is(&printed),
        _ => false,
    }
}

/// A number in parts: its digits before and after the point, and its exponent.
struct Decimal<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// None if the exponent is beyond 64 bits.
    fn of(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match text.split_once(|c| matches!(c, 'e' | 'E')) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Some(Decimal { whole: whole.as_bytes(), fraction: fraction.as_bytes(), exponent })
    }

    /// The digits without the zeros at either end, and the power of ten of the first of them; none for zero.
    fn significant(&self) -> Option<(impl Iterator<Item = u8> + '_, i64)> {
        let digit = |at: usize| *self.whole.get(at).unwrap_or_else(|| &self.fraction[at - self.whole.len()]);
        let all = self.whole.len() + self.fraction.len();
        let first = (0..all).find(|&at| digit(at) != b'0')?;
        let last = (0..all).rfind(|&at| digit(at) != b'0')?;
        let power = self.exponent.checked_add(self.whole.len() as i64 - first as i64)?;
        Some(((first..=last).map(digit), power))
    }

    fn is(&self, other: &Decimal) -> bool {
        match (self.significant(), other.significant()) {
            (Some((ours, power)), Some((theirs, other))) => power == other && ours.eq(theirs),
            (None, None) => true,
            _ => false,
        }
    }
}
