//! Parts of an expression that are accepted, as Atlas for Python does, and hardly mean what their author thinks.

use super::{FIELDS, Range};

/// Most remarks: an expression can have thousands of items.
const REMARKS_MAX: usize = 8;

/// What is odd about an expression that can be read: values that never match, steps that are longer than their field, and steps of
/// weekdays that come to Sunday. Each is one sentence that says what to write.
pub(super) fn of(expression: &str) -> Vec<String> {
    let fields = FIELDS.iter().zip(expression.split_whitespace());
    let items = fields.flat_map(|(&(name, least, most), field)| {
        let range = Range { name, least, most, expression };
        field.split(',').filter_map(move |item| range.remark(item))
    });
    items.take(REMARKS_MAX).collect()
}

impl Range<'_> {
    fn remark(&self, item: &str) -> Option<String> {
        let Self { name, least, most, .. } = *self;
        let (first, last, step) = self.item(item)?;
        // The first value of the field: steps count from the first value of the item.
        let begins = if first < least { first + (least - first).div_ceil(step) * step } else { first };
        let within = (begins, last.min(most));
        if within.0 > within.1 || (first == last && !item.contains('-')) {
            let outside = first < least || first > most;
            return outside.then(|| {
                format!("'{item}' in the field {name} is outside {least}-{most} and never matches; leave it out")
            });
        }
        if within != (first, last) {
            let step = if step > 1 { format!("/{step}") } else { String::new() };
            let (first, last) = within;
            return Some(format!(
                "'{item}' in the field {name} goes beyond {least}-{most}; write {first}-{last}{step}"
            ));
        }
        if step > most - least + 1 {
            return Some(format!(
                "'{item}' in the field {name} has a step that is longer than the field, so only {first} matches; write {first}, or make a \
                 trigger of the type interval"
            ));
        }
        // The author wrote neither 7 nor a star.
        let to_sunday = name == "weekday" && !item.starts_with('*') && !item.contains('-') && item.contains('/');
        (to_sunday && (1..7).contains(&first) && (7 - first).is_multiple_of(step)).then(|| {
            format!("'{item}' in the field weekday goes up to 7, which is Sunday; write {first}-6/{step}, or {first}-7/{step} for that")
        })
    }
}
