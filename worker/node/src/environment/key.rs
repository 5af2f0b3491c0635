//! The name of an environment: it follows from all that decides what is in it.

use std::ffi::OsString;

use sha2::{Digest as _, Sha256};

use crate::python::Python;

/// The identity of an environment: the interpreter with its version, the requirements, and pip's package sources.
pub(super) fn key_of(base: &Python, requirements: &[String], pip: &[(OsString, OsString)]) -> String {
    let mut requirements: Vec<String> = requirements.iter().map(|text| normalised(text)).collect();
    requirements.sort();
    requirements.dedup();
    let mut settings: Vec<_> = pip.iter().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PIP_")).collect();
    settings.sort();
    let mut hasher = Sha256::new();
    let ((major, minor), patch) = (base.version, base.patch);
    hasher.update(format!("{}\0{major}.{minor}.{patch}\0{}\0", base.program.display(), requirements.join("\0")));
    for (name, value) in settings {
        for part in [name, value] {
            hasher.update(part.as_encoded_bytes());
            hasher.update([0]);
        }
    }
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A requirement in the form that pip compares: lower-case names with dashes, and no spaces without a meaning.
fn normalised(requirement: &str) -> String {
    let text = requirement.trim();
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let mut plain = String::new();
    for c in name.to_ascii_lowercase().chars() {
        match c {
            '.' | '_' | '-' if plain.ends_with('-') => {}
            '.' | '_' | '-' => plain.push('-'),
            other => plain.push(other),
        }
    }
    if rest.contains([';', '@']) {
        return plain + rest.trim();
    }
    plain.extend(rest.chars().filter(|c| !c.is_whitespace()));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_requirements_have_the_same_key_however_they_are_written() {
        let python = Python { program: "/usr/bin/python3".into(), version: (3, 13), patch: 1 };
        let key = |requirements: &[&str], pip: &[(&str, &str)]| {
            let requirements: Vec<String> = requirements.iter().map(|text| (*text).to_owned()).collect();
            let pip: Vec<_> = pip.iter().map(|&(name, value)| (name.into(), value.into())).collect();
            key_of(&python, &requirements, &pip)
        };
        let plain = key(&["numpy >=1.26", "Ruamel.Yaml==0.18"], &[]);
        assert_eq!(plain, key(&[" ruamel_yaml == 0.18", "numpy>=1.26", "numpy>=1.26"], &[("HOME", "/root")]));
        assert_ne!(plain, key(&["numpy>=1.25", "ruamel.yaml==0.18"], &[]));
        assert_ne!(plain, key(&["numpy>=1.26", "ruamel.yaml==0.18"], &[("PIP_INDEX_URL", "http://x")]));
        let newer = Python { patch: 2, ..python.clone() };
        assert_ne!(key_of(&newer, &[], &[]), key_of(&python, &[], &[]));
    }
}
