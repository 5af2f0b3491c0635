//! Images in requests. Only images by value exist, so a provider fetches nothing.

use atlas_model::Image;

use crate::EncodeError;

/// Refuses a MIME type that is no image, and data with characters that Base64 does not have.
pub fn check(image: &Image) -> Result<(), EncodeError> {
    let refused = |problem: String| Err(EncodeError::Invalid { what: "an image", problem });
    let subtype = image.mime.strip_prefix("image/").unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-');
    if subtype.is_empty() || subtype.len() > 64 || !subtype.bytes().all(is_name) {
        return refused(format!("{:?} is not the type of an image", image.mime.chars().take(64).collect::<String>()));
    }
    let is_data = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if image.data.is_empty() || !image.data.bytes().all(is_data) {
        return refused("its data is not Base64".to_owned());
    }
    Ok(())
}

/// The image as an address that holds its data.
pub fn data_url(image: &Image) -> Result<String, EncodeError> {
    check(image)?;
    Ok(format!("data:{};base64,{}", image.mime, image.data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_checked() {
        let url = |mime: &str, data: &str| data_url(&Image { mime: mime.to_owned(), data: data.to_owned() });
        assert_eq!(url("image/png", "aGk=").as_deref(), Ok("data:image/png;base64,aGk="));
        for (mime, data) in
            [("text/html", "aGk="), ("image/", "aGk="), ("image/a,b", "aGk="), ("image/png", ""), ("image/png", "a b")]
        {
            assert!(url(mime, data).is_err(), "{mime} {data}");
        }
    }
}
