use expect_test::{Expect, expect};

use super::*;

/// Made with other implementations of Argon2id and XChaCha20-Poly1305.
const EXAMPLE: &[u8] = include_bytes!("example.yml");
const PASSWORD: &str = "correct horse battery staple";

fn opened(text: &[u8], password: &str) -> String {
    let envelopes = match read(text) {
        Ok(envelopes) => envelopes,
        Err(error) => return format!("error: {error}"),
    };
    let shown = envelopes.iter().map(|(name, envelope)| match envelope.open(password) {
        Ok(value) => format!("{name}={:?}", value.as_str()),
        Err(error) => format!("{name}: {error}"),
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn check(text: &[u8], password: &str, expected: &Expect) {
    expected.assert_eq(&opened(text, password));
}

#[test]
fn a_vault_is_opened_with_its_password() {
    check(
        EXAMPLE,
        PASSWORD,
        &expect![[r#"
            OPENAI_API_KEY="sk-example-4711"
            empty=""
            smtp-password="pässwort \"quoted\"\nsecond line""#]],
    );
    check(
        EXAMPLE,
        "wrong",
        &expect![[r#"
            OPENAI_API_KEY: the password is wrong, or the envelope is damaged
            empty: the password is wrong, or the envelope is damaged
            smtp-password: the password is wrong, or the envelope is damaged"#]],
    );
}

/// The smallest envelope of the example with one part replaced.
fn with(from: &str, to: &str) -> String {
    let line = std::str::from_utf8(EXAMPLE).expect("UTF-8").lines().find(|line| line.starts_with("empty"));
    let line = line.expect("a line").replacen(from, to, 1);
    opened(line.as_bytes(), PASSWORD)
}

#[test]
fn files_that_are_no_vaults_are_refused() {
    check(b"", PASSWORD, &expect![""]);
    check(b"- a", PASSWORD, &expect!["error: the file is not a vault: a vault is a map of names and envelopes"]);
    check(b"a: [", PASSWORD, &expect!["error: the file is not YAML"]);
    check(&[0xff], PASSWORD, &expect!["error: the file is not YAML"]);
    check(b"a: 5", PASSWORD, &expect![[r#"error: "a" is not an envelope: it does not begin with $VAULT;"#]]);
    check(b"a: canary", PASSWORD, &expect![[r#"error: "a" is not an envelope: it does not begin with $VAULT;"#]]);
    let many: String = (0..=SECRETS_MAX).map(|number| format!("n{number}: x\n")).collect();
    check(many.as_bytes(), PASSWORD, &expect!["error: the vault has 1001 secrets, more than 1000"]);
}

#[test]
fn envelopes_are_read_to_the_letter() {
    let told = [
        with(";v1;", ";v2;"),
        with("argon2id", "scrypt"),
        with(";salt", ";x=y;salt"),
        with(";nonce=AgMEBQYHCAkKCwwNDg8QERITFBUWFxgZ", ""),
        with("m=64,t=1,p=1", "m=64,t=1"),
        with("m=64,t=1,p=1", "m=64,t=1,p=1,p=1"),
        with("m=64,", "m=4294967296,"),
        with("m=64,", "m=1048577,"),
        with("m=64,", "m=1,"),
        with("t=1,", "t=0,"),
        with("p=1", "p=-1"),
        with("salt=", "salt=!"),
        with("salt=AgMEBQYHCAkKCwwNDg8QEQ==", "salt=AgME"),
        with("nonce=", "iv="),
        with("nonce=AgME", "nonce="),
        with("ct=ijWDOIJNn6MZNg0LSaM6MQ==", "ct="),
        with("ct=ijWD", "ct=ijWE"),
    ];
    expect![[r#"
        error: "empty" is not an envelope: its version is not v1
        error: "empty" is not an envelope: its key derivation is not argon2id
        error: "empty" is not an envelope: it does not consist of seven parts
        error: "empty" is not an envelope: it does not consist of seven parts
        error: "empty" is not an envelope: its parameters are not m, t and p within m=1048576, t=64, p=16
        error: "empty" is not an envelope: its parameters are not m, t and p within m=1048576, t=64, p=16
        error: "empty" is not an envelope: its parameters are not m, t and p within m=1048576, t=64, p=16
        error: "empty" is not an envelope: its parameters are not m, t and p within m=1048576, t=64, p=16
        error: "empty" is not an envelope: its parameters are not m, t and p within m=1048576, t=64, p=16
        error: "empty" is not an envelope: its parameters are not m, t and p within m=1048576, t=64, p=16
        error: "empty" is not an envelope: its parameters are not m, t and p within m=1048576, t=64, p=16
        error: "empty" is not an envelope: its part salt is missing, is not base64 or has a wrong length
        error: "empty" is not an envelope: its part salt is missing, is not base64 or has a wrong length
        error: "empty" is not an envelope: its part nonce is missing, is not base64 or has a wrong length
        error: "empty" is not an envelope: its part nonce is missing, is not base64 or has a wrong length
        error: "empty" is not an envelope: its part ct is missing, is not base64 or has a wrong length
        empty: the password is wrong, or the envelope is damaged"#]]
    .assert_eq(&told.join("\n"));
}
