//! References to secrets: where a value comes from, never the value.

/// Most bytes of a reference.
const REFERENCE_BYTES_MAX: usize = 300;

/// What a whole text refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference<'a> {
    /// `secret://NAME` or `{{NAME}}`: a secret of the namespace.
    Secret(&'a str),
    /// `${NAME}`: a variable of the environment in which it is resolved.
    Variable(&'a str),
}

impl<'a> Reference<'a> {
    /// The reference that a text is as a whole; none if it is anything else.
    ///
    /// ```
    /// use atlas_secrets::Reference;
    ///
    /// assert_eq!(Reference::read("secret://openai-key"), Some(Reference::Secret("openai-key")));
    /// assert_eq!(Reference::read("{{ openai-key }}"), Some(Reference::Secret("openai-key")));
    /// assert_eq!(Reference::read("${OPENAI_API_KEY}"), Some(Reference::Variable("OPENAI_API_KEY")));
    /// assert_eq!(Reference::read("a literal"), None);
    /// ```
    pub fn read(text: &'a str) -> Option<Self> {
        if text.len() > REFERENCE_BYTES_MAX {
            return None;
        }
        if let Some(name) = text.strip_prefix("secret://") {
            return is_name(name).then_some(Self::Secret(name));
        }
        let (found, length) = Self::at_start(text)?;
        (length == text.len()).then_some(found)
    }

    /// The reference in braces with which a text begins, and its length.
    pub(crate) fn at_start(text: &'a str) -> Option<(Self, usize)> {
        let (inner, end, is_variable) = match (text.strip_prefix("{{"), text.strip_prefix("${")) {
            (Some(inner), _) => (inner, "}}", false),
            (None, Some(inner)) => (inner, "}", true),
            (None, None) => return None,
        };
        // A longer one is refused, so that a hostile text is not searched again and again.
        let inner = &inner[..inner.floor_char_boundary(REFERENCE_BYTES_MAX)];
        let name = &inner[..inner.find(end)?];
        let length = 2 + name.len() + end.len();
        if is_variable {
            return is_variable_name(name).then_some((Self::Variable(name), length));
        }
        let name = name.trim_matches([' ', '\t']);
        is_name(name).then_some((Self::Secret(name), length))
    }
}

/// Whether a text is a reference or has one as `{{NAME}}` or `${NAME}` in it.
pub fn has_reference(text: &str) -> bool {
    let has = |start: &str| text.match_indices(start).any(|(at, _)| Reference::at_start(&text[at..]).is_some());
    Reference::read(text).is_some() || has("{{") || has("${")
}

/// Whether a text is a name of a secret: letters, digits, `-`, `_` and `.`.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.bytes().all(is_allowed)
}

/// Whether a text is a name of an environment variable.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_texts() {
        use Reference::{Secret, Variable};
        let long = format!("secret://{}", "x".repeat(300));
        let cases = [
            ("secret://a.b-c_D1", Some(Secret("a.b-c_D1"))),
            ("{{KEY}}", Some(Secret("KEY"))),
            ("{{ KEY\t}}", Some(Secret("KEY"))),
            ("${KEY_1}", Some(Variable("KEY_1"))),
            ("secret://", None),
            ("secret://a/b", None),
            ("secret://a b", None),
            ("Secret://a", None),
            ("${1}", None),
            ("${ A }", None),
            ("${}", None),
            ("$KEY", None),
            ("{{a b}}", None),
            ("{{{a}}}", None),
            ("{{}}", None),
            ("{{a}} ", None),
            ("{{a}}{{b}}", None),
            ("{{", None),
            ("Bearer {{KEY}}", None),
            ("sk-live", None),
            ("", None),
            (long.as_str(), None),
        ];
        for (text, expected) in cases {
            assert_eq!(Reference::read(text), expected, "{text}");
        }
    }

    #[test]
    fn references_inside_texts() {
        for text in ["Bearer {{KEY}}", "Bearer ${KEY}", "{{ {{KEY}}", "secret://a", "é${K}é"] {
            assert!(has_reference(text), "{text}");
        }
        for text in ["Bearer sk-live", "Bearer secret://a", "{{a b}}", "${", "}}{{", ""] {
            assert!(!has_reference(text), "{text}");
        }
    }
}
