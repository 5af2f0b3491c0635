//! Texts with references in them, such as the header `Bearer {{KEY}}`.

use atlas_types::SecretText;

use crate::Reference;

/// Most bytes of a template.
const TEMPLATE_BYTES_MAX: usize = 64 << 10;

/// Most references in one template.
const REFERENCES_MAX: usize = 64;

/// Why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("a text with references has {found} bytes, more than {TEMPLATE_BYTES_MAX}")]
    TooLong { found: usize },
    #[error("a text has more than {REFERENCES_MAX} references")]
    TooMany,
}

/// A text in which references stand for values. It is read once: a value that looks like a reference stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template<'a>(Vec<Part<'a>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part<'a> {
    Literal(&'a str),
    Reference(Reference<'a>),
}

impl<'a> Template<'a> {
    /// Finds the references of a text: the whole text if it is one, otherwise each `{{NAME}}` and `${NAME}`. Braces without a name
    /// between them stay as they are.
    ///
    /// ```
    /// use atlas_secrets::{Reference, Template};
    /// use atlas_types::SecretText;
    ///
    /// let header = Template::parse("Bearer {{KEY}}").unwrap();
    /// assert_eq!(header.references().collect::<Vec<_>>(), [Reference::Secret("KEY")]);
    /// let filled = header.fill(|_| Ok::<_, ()>(SecretText::new("s3cr3t"))).unwrap();
    /// assert_eq!(filled.expose(), "Bearer s3cr3t");
    /// ```
    pub fn parse(text: &'a str) -> Result<Self, TemplateError> {
        if text.len() > TEMPLATE_BYTES_MAX {
            return Err(TemplateError::TooLong { found: text.len() });
        }
        if let Some(reference) = Reference::read(text) {
            return Ok(Self(vec![Part::Reference(reference)]));
        }
        let (mut parts, mut rest, mut from) = (Vec::new(), text, 0);
        while let Some(at) = rest[from..].find(['{', '$']).map(|at| from + at) {
            let Some((reference, length)) = Reference::at_start(&rest[at..]) else {
                from = at + 1;
                continue;
            };
            if parts.len() >= 2 * REFERENCES_MAX {
                return Err(TemplateError::TooMany);
            }
            parts.push(Part::Literal(&rest[..at]));
            parts.push(Part::Reference(reference));
            (rest, from) = (&rest[at + length..], 0);
        }
        parts.push(Part::Literal(rest));
        Ok(Self(parts))
    }

    /// The references, in order; one that is written twice comes twice.
    pub fn references(&self) -> impl Iterator<Item = Reference<'a>> {
        self.0.iter().filter_map(|part| match part {
            Part::Reference(reference) => Some(*reference),
            Part::Literal(_) => None,
        })
    }

    /// The text with values instead of references.
    pub fn fill<E>(&self, mut value: impl FnMut(Reference<'a>) -> Result<SecretText, E>) -> Result<SecretText, E> {
        if let [Part::Reference(reference)] = &self.0[..] {
            return value(*reference);
        }
        let values = self.references().map(&mut value).collect::<Result<Vec<_>, E>>()?;
        let literals: usize =
            self.0.iter().map(|part| if let Part::Literal(text) = part { text.len() } else { 0 }).sum();
        // Without room for everything the buffer would grow, and leave pieces of values behind in memory.
        let mut filled =
            String::with_capacity(literals + values.iter().map(|value| value.expose().len()).sum::<usize>());
        let mut values = values.iter();
        for part in &self.0 {
            match part {
                Part::Literal(text) => filled.push_str(text),
                Part::Reference(_) => filled.push_str(values.next().map_or("", SecretText::expose)),
            }
        }
        Ok(SecretText::new(filled))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let shown = |reference: Reference<'_>| match reference {
            Reference::Secret(name) => SecretText::new(format!("<{name}>")),
            Reference::Variable(name) => SecretText::new(format!("<${name}>")),
        };
        let filled = Template::parse(text).map(|template| template.fill(|found| Ok::<_, ()>(shown(found))));
        expected.assert_eq(&match filled {
            Ok(filled) => filled.expect("a value each").expose().to_owned(),
            Err(error) => format!("error: {error}"),
        });
    }

    #[test]
    fn references_become_values() {
        check("secret://a", &expect!["<a>"]);
        check("Bearer {{ KEY }}", &expect!["Bearer <KEY>"]);
        check("{{A}}{{B}}:${C}", &expect!["<A><B>:<$C>"]);
        check("é{{A}}é", &expect!["é<A>é"]);
        check("see secret://a", &expect!["see secret://a"]);
        check("{{{A}}}", &expect!["{<A>}"]);
        check("{{}} {{a b}} ${} $ { ${1}", &expect!["{{}} {{a b}} ${} $ { ${1}"]);
        check("", &expect![""]);
    }

    #[test]
    fn a_value_is_not_read_again() {
        let template = Template::parse("{{A}}{{B}}").expect("short");
        let filled = template.fill(|_| Ok::<_, ()>(SecretText::new("{{A}}"))).expect("values");
        assert_eq!(filled.expose(), "{{A}}{{A}}");
    }

    #[test]
    fn a_missing_value_is_an_error() {
        let template = Template::parse("{{A}} {{B}}").expect("short");
        let missing = template.fill(|reference| match reference {
            Reference::Secret("A") => Ok(SecretText::new("a")),
            other => Err(other),
        });
        assert_eq!(missing.err(), Some(Reference::Secret("B")));
    }

    #[test]
    fn templates_are_bounded() {
        check(&"{{A}}".repeat(65), &expect!["error: a text has more than 64 references"]);
        check(
            &" ".repeat(TEMPLATE_BYTES_MAX + 1),
            &expect!["error: a text with references has 65537 bytes, more than 65536"],
        );
        assert_eq!(Template::parse(&"{{".repeat(10_000)).expect("short").references().count(), 0);
    }

    proptest! {
        /// A text without values is the text with each reference as it was written.
        #[test]
        fn nothing_but_references_changes(text in "[{}$a-c é]{0,40}") {
            let template = Template::parse(&text).expect("short");
            let filled = template.fill(|_| Ok::<_, ()>(SecretText::new("")));
            prop_assert!(filled.expect("values").expose().len() <= text.len());
            if template.references().next().is_none() {
                prop_assert_eq!(template.fill(|_| Err(())).map(|text| text.expose().to_owned()), Ok(text));
            }
        }
    }
}
