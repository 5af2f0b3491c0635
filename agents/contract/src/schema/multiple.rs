//! `multipleOf` with Python's arithmetic, in which 0.3 is not a multiple of 0.1; existing agents rely on it.

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value};

use super::exact;

/// The keyword; its texts come from [`super::message`].
struct MultipleOf {
    of: Value,
}

/// Creates the keyword for `multipleOf: of`.
pub(super) fn keyword<'a>(
    _parent: &'a Map<String, Value>,
    of: &'a Value,
    _at: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    Ok(Box::new(MultipleOf { of: of.clone() }))
}

impl<'i> Keyword<'i> for MultipleOf {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if is_multiple(instance, &self.of) { Ok(()) } else { Err(ValidationError::custom("not a multiple")) }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        is_multiple(instance, &self.of)
    }
}

fn is_multiple(value: &Value, of: &Value) -> bool {
    let (Value::Number(value), Value::Number(of)) = (value, of) else { return true };
    if let (Some(value), Some(of)) = (value.as_i128(), of.as_i128()) {
        return of != 0 && value % of == 0;
    }
    // Python has no doubles for these either.
    if (exact::is_beyond(value) || exact::is_beyond(of))
        && let Some(is_multiple) = exact::is_multiple(value, of)
    {
        return is_multiple;
    }
    let (Some(value), Some(divisor)) = (value.as_f64(), of.as_f64()) else { return true };
    if !of.is_f64() {
        return value % divisor == 0.0;
    }
    let quotient = value / divisor;
    // If the quotient overflows, the exact remainder decides.
    if quotient.is_finite() { quotient.trunc() == quotient } else { value % divisor == 0.0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_quotient_decides_as_in_python() {
        for (value, of, multiple) in [
            (json!(10), json!(5), true),
            (json!(7), json!(5), false),
            (json!(-6), json!(3), true),
            (json!(9.0), json!(3), true),
            (json!(9.5), json!(3), false),
            (json!(1.5), json!(0.5), true),
            (json!(0.3), json!(0.1), false),
            (json!(1.1), json!(0.1), true),
            (json!(19.99), json!(0.01), false),
            (json!(1e308), json!(0.5), true),
            (json!(18_446_744_073_709_551_615_u64), json!(5), true),
            (json!("7"), json!(5), true),
        ] {
            assert_eq!(is_multiple(&value, &of), multiple, "{value} of {of}");
        }
    }
}
