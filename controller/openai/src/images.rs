//! Images in messages. They arrive by value, so that nothing is fetched on behalf of a client.

use atlas_model::Image;

use crate::WireError;
use crate::body::Node;

/// The image of an address that holds its data: `data:image/png;base64,…`.
pub(crate) fn read(url: &Node<'_>) -> Result<Image, WireError> {
    let text = url.text()?;
    let Some(rest) = text.strip_prefix("data:") else {
        let why = "images are sent by value, as \"data:image/png;base64,…\"; this server fetches no addresses";
        return Err(WireError::unsupported(&url.path, why));
    };
    let (mime, data) = rest.split_once(";base64,").ok_or_else(|| url.wrong("must be \"data:image/…;base64,…\""))?;
    let mime = mime.to_ascii_lowercase();
    let subtype = mime.strip_prefix("image/").unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-');
    if subtype.is_empty() || subtype.len() > 64 || !subtype.bytes().all(is_name) {
        return Err(url.wrong("must have the type of an image, such as \"image/png\""));
    }
    let letters = data.trim_end_matches('=');
    let is_data = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let padding = data.len() - letters.len();
    if letters.is_empty() || padding > 2 || !data.len().is_multiple_of(4) || !letters.bytes().all(is_data) {
        return Err(url.wrong("has data that is not Base64 with padding"));
    }
    Ok(Image { mime, data: data.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_checked() {
        let image = |text: &str| {
            let value = json!(text);
            read(&Node { value: &value, path: "u".to_owned() }).map_err(|error| error.message)
        };
        let png = Image { mime: "image/png".to_owned(), data: "aGk=".to_owned() };
        assert_eq!(image("data:image/PNG;base64,aGk="), Ok(png));
        for text in [
            "",
            "https://a.test/b.png",
            "data:image/png,aGk=",
            "data:text/html;base64,aGk=",
            "data:image/;base64,aGk=",
            "data:image/a,b;base64,aGk=",
            "data:image/png;base64,",
            "data:image/png;base64,aGk",
            "data:image/png;base64,a===",
            "data:image/png;base64,a Gk",
        ] {
            assert!(image(text).is_err(), "{text}");
        }
    }
}
