//! The signature of a delivery: HMAC-SHA256 over its time, its id and its body, so that a receiver can tell a forged or
//! repeated request.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::secrets::Secret;

/// The value of the header `Atlas-Signature`: `t=SECONDS,v1=HEX`, with one `v1` per secret.
///
/// What is signed is `SECONDS.ID.BODY`. During a rotation there are two secrets, and a receiver accepts either.
pub(crate) fn sign(secrets: &[Secret], seconds: i64, id: &str, body: &[u8]) -> String {
    let mut header = format!("t={seconds}");
    for secret in secrets {
        // HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.bytes()) else { continue };
        mac.update(format!("{seconds}.{id}.").as_bytes());
        mac.update(body);
        header.push_str(",v1=");
        hex(&mut header, &mac.finalize().into_bytes());
    }
    header
}

/// Appends bytes as lower-case hexadecimal digits.
pub(crate) fn hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_covers_time_id_and_body() {
        let signed_by = |secrets: &[&str], seconds, id: &str, body: &str| {
            let secrets: Vec<Secret> = secrets.iter().map(|text| Secret::new(text.as_bytes().to_vec())).collect();
            sign(&secrets, seconds, id, body.as_bytes())
        };
        let signed = signed_by(&["key"], 1_700_000_000, "delivery-1", "{}");
        // printf '1700000000.delivery-1.{}' | openssl dgst -sha256 -hmac key
        let digest = "c62a9be936a75db328e048bac23d289dec79431bbeeb3b69fc579a7cc393de83";
        assert_eq!(signed, format!("t=1700000000,v1={digest}"));
        assert_ne!(signed_by(&["key"], 1_700_000_001, "delivery-1", "{}").split_once(','), signed.split_once(','));
        assert_ne!(signed_by(&["key"], 1_700_000_000, "delivery-2", "{}"), signed);
        assert_ne!(signed_by(&["key"], 1_700_000_000, "delivery-1", "{ }"), signed);
        let both = signed_by(&["new", "key"], 1_700_000_000, "delivery-1", "{}");
        assert!(both.ends_with(digest) && both.matches("v1=").count() == 2, "{both}");
    }
}
