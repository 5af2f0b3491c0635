//! Who a certificate is for: a URI among its alternative names.

use std::fmt::Write as _;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

const CONTROLLER: &str = "spiffe://atlas/controller/";
const NODE: &str = "spiffe://atlas/node/";
/// A controller that is not a member yet. Members count from 1.
const NO_MEMBER: u64 = 0;

/// Who a certificate is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A controller, by its member number; none while it joins.
    Controller(Option<u64>),
    /// A worker, by the name of its node.
    Node(String),
}

impl Subject {
    /// The URI of the subject.
    pub fn uri(&self) -> String {
        match self {
            Self::Controller(member) => format!("{CONTROLLER}{}", member.unwrap_or(NO_MEMBER)),
            Self::Node(name) => {
                let mut uri = NODE.to_owned();
                for byte in name.bytes() {
                    match byte {
                        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => uri.push(char::from(byte)),
                        _ => drop(write!(uri, "%{byte:02X}")),
                    }
                }
                uri
            }
        }
    }

    /// The subject of a URI; none if it is that of no subject.
    pub fn of(uri: &str) -> Option<Self> {
        let subject = if let Some(member) = uri.strip_prefix(CONTROLLER) {
            let member: u64 = member.parse().ok()?;
            Self::Controller((member != NO_MEMBER).then_some(member))
        } else {
            Self::Node(decoded(uri.strip_prefix(NODE)?)?)
        };
        // One spelling per subject, so that names can be compared as texts.
        (subject.uri() == uri).then_some(subject)
    }

    /// The subject of a certificate. None if it does not have exactly one.
    pub(crate) fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = EndEntityCert::try_from(certificate).ok()?;
        let mut subjects = parsed.valid_uri_names().filter_map(Self::of);
        match (subjects.next(), subjects.next()) {
            (Some(subject), None) => Some(subject),
            _ => None,
        }
    }
}

fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_one_uri() {
        let node = |name: &str| Subject::Node(name.to_owned());
        let all =
            [Subject::Controller(Some(3)), Subject::Controller(None), node("gpu-1"), node("a b/ä%"), node("a:b_c.d")];
        for subject in all {
            assert_eq!(Subject::of(&subject.uri()), Some(subject.clone()), "{}", subject.uri());
            assert!(subject.uri().is_ascii());
        }
        let wrong = ["", "spiffe://atlas/controller/", "spiffe://atlas/controller/+1", "spiffe://atlas/controller/01"];
        let more =
            ["spiffe://atlas/node/", "spiffe://atlas/node/%", "spiffe://atlas/node/%4", "spiffe://atlas/node/%61"];
        for uri in wrong.into_iter().chain(more).chain(["spiffe://atlas/node/a b", "spiffe://other/node/a"]) {
            assert_eq!(Subject::of(uri), None, "{uri}");
        }
    }
}
