//! Addresses of controllers.

use super::ConfigurationError;

/// Whether the connections to controllers are encrypted, as their addresses say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

/// The controllers as `host:port`, and what their addresses say about TLS, if they say it.
pub(super) fn controllers(texts: &[String]) -> Result<(Vec<String>, Option<Scheme>), ConfigurationError> {
    let (mut addresses, mut said) = (Vec::new(), None);
    for text in texts {
        let (scheme, address) = address(text).ok_or_else(|| ConfigurationError::Address { text: text.clone() })?;
        if scheme.is_some() && said.is_some() && said != scheme {
            return Err(ConfigurationError::Schemes);
        }
        said = scheme.or(said);
        addresses.push(address);
    }
    Ok((addresses, said))
}

/// `HOST:PORT`, also with `http://` or `https://` before it and `/` after it.
fn address(text: &str) -> Option<(Option<Scheme>, String)> {
    let text = text.trim();
    let (scheme, rest) = match text.split_once("://") {
        Some(("http", rest)) => (Some(Scheme::Http), rest),
        Some(("https", rest)) => (Some(Scheme::Https), rest),
        Some(_) => return None,
        None => (None, text),
    };
    let rest = if scheme.is_some() { rest.strip_suffix('/').unwrap_or(rest) } else { rest };
    // What is read here is what a connection is made to later.
    let authority: http::uri::Authority = rest.parse().ok()?;
    let port = authority.port_u16().filter(|port| *port > 0)?;
    let host = authority.host();
    let plain = !host.is_empty() && rest.rsplit_once(':').is_some_and(|(before, _)| before == host);
    plain.then(|| (scheme, format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_address_is_a_host_with_a_port() {
        let told: String = [
            "c1:7401",
            "10.0.0.1:7401",
            "[::1]:7401",
            " c1:7401 ",
            "http://c1:7401",
            "https://c1:7401/",
            "HTTP://c1:7401",
            "c1",
            "c1:",
            ":7401",
            "c1:0",
            "c1:70000",
            "::1:7401",
            "http://c1",
            "http://c1:7401/path",
            "http://user@c1:7401",
            "grpc://c1:7401",
            "c1:7401/",
            "c 1:7401",
            "",
        ]
        .iter()
        .map(|text| match controllers(&[(*text).to_owned()]) {
            Ok((addresses, scheme)) => format!("{text:?}: {} {scheme:?}\n", addresses.join(" ")),
            Err(error) => format!("{error}\n"),
        })
        .collect();
        expect![[r#"
            "c1:7401": c1:7401 None
            "10.0.0.1:7401": 10.0.0.1:7401 None
            "[::1]:7401": [::1]:7401 None
            " c1:7401 ": c1:7401 None
            "http://c1:7401": c1:7401 Some(Http)
            "https://c1:7401/": c1:7401 Some(Https)
            "HTTP://c1:7401" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "c1" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "c1:" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            ":7401" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "c1:0" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "c1:70000" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "::1:7401" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "http://c1" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "http://c1:7401/path" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "http://user@c1:7401" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "grpc://c1:7401" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "c1:7401/" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "c 1:7401" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
            "" is not the address of a controller's worker port: write HOST:PORT, http://HOST:PORT or https://HOST:PORT
        "#]].assert_eq(&told);
    }

    #[test]
    fn all_addresses_say_the_same_about_tls() {
        let read = |texts: &[&str]| controllers(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let scheme = |texts: &[&str]| read(texts).map(|(_, scheme)| scheme).map_err(|error| error.to_string());
        assert_eq!(scheme(&["a:1", "https://b:1"]), Ok(Some(Scheme::Https)));
        assert!(scheme(&["http://a:1", "https://b:1"]).is_err());
    }
}
