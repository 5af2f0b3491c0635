//! Signatures of webhooks: HMAC-SHA256 of the body, in lower-case hexadecimal digits (compatibility §14.5).

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The prefix that a header may have, once.
const PREFIX: &str = "sha256=";

/// The signature of `body` with the UTF-8 bytes of `secret` as the key.
pub fn sign(secret: &str, body: &[u8]) -> String {
    let digest = mac(secret.as_bytes(), body).finalize().into_bytes();
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether the header `X-Atlas-Signature` signs `body`. The time that the comparison takes tells nothing about the signature.
pub fn verify(secret: &str, body: &[u8], header: &str) -> bool {
    let digits = header.strip_prefix(PREFIX).unwrap_or(header);
    hex(digits).is_some_and(|signature| fits(secret.as_bytes(), body, &signature))
}

/// Whether a signature is that of `body` with a key. The time that the comparison takes tells nothing about the signature.
pub(crate) fn fits(key: &[u8], body: &[u8], signature: &[u8]) -> bool {
    mac(key, body).verify_slice(signature).is_ok()
}

fn mac(key: &[u8], body: &[u8]) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.chain_update(body)
}

/// The bytes of 64 lower-case hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let pairs = digits.as_bytes().chunks_exact(2);
    if digits.len() != 64 {
        return None;
    }
    pairs.map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 2 of RFC 4231.
    #[test]
    fn signs_as_the_rfc_says() {
        let signature = sign("Jefe", b"what do ya want for nothing?");
        assert_eq!(signature, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn only_the_exact_signature_fits() {
        let (secret, body) = ("key", b"{}".as_slice());
        let signature = sign(secret, body);
        let fits = |header: &str| verify(secret, body, header);
        assert!(fits(&signature) && fits(&format!("sha256={signature}")));
        let wrong = [
            String::new(),
            signature.to_uppercase(),
            format!("SHA256={signature}"),
            format!("sha256=sha256={signature}"),
            format!(" {signature}"),
            signature[..63].to_owned(),
            format!("{signature}0"),
            "é".repeat(32),
            sign("other", body),
            sign(secret, b"{ }"),
        ];
        for header in wrong {
            assert!(!fits(&header), "{header}");
        }
    }
}
