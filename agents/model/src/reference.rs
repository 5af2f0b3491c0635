//! References to secrets in the specs of models: where a key comes from, never the key.

/// Most bytes of a reference.
const REFERENCE_BYTES_MAX: usize = 300;

/// What a whole text refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// use atlas_model::Reference;
    ///
    /// assert_eq!(Reference::read("secret://openai-key"), Some(Reference::Secret("openai-key")));
    /// assert_eq!(Reference::read("${OPENAI_API_KEY}"), Some(Reference::Variable("OPENAI_API_KEY")));
    /// assert_eq!(Reference::read("a literal"), None);
    /// ```
    pub fn read(text: &'a str) -> Option<Self> {
        if text.len() > REFERENCE_BYTES_MAX {
            return None;
        }
        let between = |start: &str, end: &str| text.strip_prefix(start)?.strip_suffix(end);
        if let Some(name) = text.strip_prefix("secret://").or_else(|| between("{{", "}}")) {
            return is_secret_name(name).then_some(Self::Secret(name));
        }
        let name = between("${", "}")?;
        is_variable_name(name).then_some(Self::Variable(name))
    }
}

/// Whether a text is a reference or has one as `{{NAME}}` or `${NAME}` in it.
pub(crate) fn has_reference(text: &str) -> bool {
    let has = |start: &str, end: &str| {
        text.match_indices(start).any(|(at, _)| {
            let rest = &text[at..];
            rest.find(end).is_some_and(|to| Reference::read(&rest[..to + end.len()]).is_some())
        })
    };
    Reference::read(text).is_some() || has("{{", "}}") || has("${", "}")
}

fn is_secret_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.bytes().all(is_allowed)
}

fn is_variable_name(name: &str) -> bool {
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
            ("${KEY_1}", Some(Variable("KEY_1"))),
            ("secret://", None),
            ("secret://a/b", None),
            ("secret://a b", None),
            ("Secret://a", None),
            ("${1}", None),
            ("${}", None),
            ("$KEY", None),
            ("{{a b}}", None),
            ("{{}}", None),
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
