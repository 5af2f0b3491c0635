//! Addresses that people write into objects: of models and of receivers of events.

/// Most bytes of an address.
pub const URL_BYTES_MAX: usize = 2_048;

/// Refuses what is no `http://` or `https://` address with a host. The text says what is wrong with it, without a subject.
///
/// Whether plain HTTP is acceptable depends on the machine that sends, so that machine decides it. A change here belongs to a feature
/// level: the refusal is part of the answer of every replica.
pub fn check_url(url: &str) -> Result<(), &'static str> {
    if url.len() > URL_BYTES_MAX {
        return Err("is longer than 2048 bytes");
    }
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return Err("does not start with http:// or https://");
    };
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("contains a space, a control character or a character beyond ASCII; percent-encode it");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || authority.starts_with(':') {
        return Err("names no host");
    }
    // Whoever reads the object would read the password.
    if authority.contains('@') {
        return Err("contains a user name; keep credentials out of addresses");
    }
    Ok(())
}
