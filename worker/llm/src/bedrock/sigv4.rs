//! The request signature of Amazon Web Services, version 4.
//!
//! The signature covers the method, the path, the query, the host, the type of the body, every `x-amz-` header, and the body.
//! It is made after all other changes to a request, for the time at which the request is sent.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::percent;

/// Who signs, and for what.
pub(super) struct Scope<'a> {
    pub(super) access_key_id: &'a str,
    pub(super) secret_access_key: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// What is signed.
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    /// As it is sent, that is already encoded.
    pub(super) path: &'a str,
    /// As it is sent, without the question mark.
    pub(super) query: &'a str,
    /// Names in lower case.
    pub(super) headers: &'a [(String, String)],
    pub(super) body: &'a [u8],
}

/// The value of the header `authorization`. `time` is that of the header `x-amz-date`, for example `20150830T123600Z`.
pub(super) fn authorization(scope: &Scope<'_>, signed: &Signed<'_>, time: &str) -> String {
    let mut headers: Vec<(&str, String)> =
        signed.headers.iter().map(|(name, value)| (name.as_str(), one_space(value))).collect();
    headers.sort();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let mut query: Vec<&str> = signed.query.split('&').filter(|pair| !pair.is_empty()).collect();
    query.sort_unstable();
    let request = format!(
        "{}\n{}\n{}\n{lines}\n{names}\n{}",
        signed.method,
        percent::encode(signed.path, "/"),
        query.join("&"),
        hex(&Sha256::digest(signed.body)),
    );
    let day = time.get(..8).unwrap_or(time);
    let within = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{within}\n{}", hex(&Sha256::digest(request.as_bytes())));
    let mut key = hmac(format!("AWS4{}", scope.secret_access_key).as_bytes(), day);
    for part in [scope.region, scope.service, "aws4_request"] {
        key = hmac(&key, part);
    }
    let signature = hex(&hmac(&key, &text));
    format!(
        "AWS4-HMAC-SHA256 Credential={}/{within}, SignedHeaders={names}, Signature={signature}",
        scope.access_key_id
    )
}

/// The value without spaces at its ends, and one space for each row of them.
fn one_space(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    // HMAC takes a key of any length, so there is always one.
    Hmac::<Sha256>::new_from_slice(key)
        .map_or_else(|_| Vec::new(), |mac| mac.chain_update(text).finalize().into_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The access key, the secret, the date and the region of the examples that Amazon publishes.
    const TIME: &str = "20150830T123600Z";

    fn check(
        service: &str,
        method: &str,
        path: &str,
        query: &str,
        headers: &[(&str, &str)],
        body: &str,
        signature: &str,
    ) {
        let scope = Scope {
            access_key_id: "AKIDEXAMPLE",
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            region: "us-east-1",
            service,
        };
        let mut all = vec![("x-amz-date".to_owned(), TIME.to_owned())];
        all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let signed = Signed { method, path, query, headers: &all, body: body.as_bytes() };
        let value = authorization(&scope, &signed, TIME);
        let (_, made) = value.rsplit_once("Signature=").expect("the signature comes last");
        assert_eq!(made, signature, "{value}");
    }

    const HOST: (&str, &str) = ("host", "example.amazonaws.com");

    #[test]
    fn requests_of_the_published_suite_have_their_signatures() {
        let get = |path, query, headers: &[_], signature| check("service", "GET", path, query, headers, "", signature);
        get("/", "", &[HOST], "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
        get(
            "/",
            "Param2=value2&Param1=value1",
            &[HOST],
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        );
        get("/ሴ", "", &[HOST], "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
        let post = |headers: &[_], body, signature| check("service", "POST", "/", "", headers, body, signature);
        post(&[HOST], "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
        let form = ("content-type", "application/x-www-form-urlencoded");
        post(&[HOST, form], "Param1=value1", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
    }

    #[test]
    fn a_session_token_is_signed() {
        let token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
        let headers = [HOST, ("x-amz-security-token", token)];
        check(
            "service",
            "POST",
            "/",
            "",
            &headers,
            "",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        );
    }

    #[test]
    fn the_request_of_the_user_guide_has_its_signature() {
        let headers =
            [("host", "iam.amazonaws.com"), ("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        let query = "Action=ListUsers&Version=2010-05-08";
        check(
            "iam",
            "GET",
            "/",
            query,
            &headers,
            "",
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        );
    }
}
