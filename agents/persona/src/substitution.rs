//! Replaces `{{name}}` by values, once: what a value contains is not replaced again.

/// The variables that a persona may use in its text, such as `{{__os__}}`. Their values are those of the machine that the persona is used
/// on, at that time; the caller knows them.
pub const SPECIAL_VARIABLES: [&str; 8] =
    ["__os__", "__os_distro__", "__os_family__", "__arch__", "__shell__", "__locale__", "__now__", "__cwd__"];

/// The text with the values of the variables that `value` knows. Others stay as they are written.
pub(crate) fn substitute<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        replaced.push_str(before);
        let inside = from.get(2..).unwrap_or_default();
        let end = inside.find("}}");
        let name = end.and_then(|end| inside.get(..end)).unwrap_or_default();
        match (end, value(name)) {
            (Some(end), Some(value)) => {
                replaced.push_str(value);
                rest = inside.get(end + 2..).unwrap_or_default();
            }
            // Nothing known: the name may begin with the second brace.
            _ => {
                replaced.push('{');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_replaced_once() {
        let value = |name: &str| match name {
            "a" => Some("{{b}}"),
            "b" => Some("2"),
            _ => None,
        };
        for (text, expected) in [
            ("{{a}} {{b}}", "{{b}} 2"),
            ("{{c}} {a} {{a", "{{c}} {a} {{a"),
            ("{{{b}}}", "{2}"),
            ("{{c{{b}}", "{{c2"),
            ("", ""),
        ] {
            assert_eq!(substitute(text, value), expected);
        }
    }
}
