//! Images in an input: the contract names the member that has them.

use atlas_model::Image;
use serde_json::Value;

/// Most images of one input.
const IMAGES_MAX: usize = 32;

/// Types that providers accept.
const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Takes the images out of a member of an input. They are objects with `data` (Base64) and `mime_type`.
pub fn take(input: &mut Value, member: &str) -> Result<Vec<Image>, String> {
    let Some(found) = input.as_object_mut().and_then(|members| members.shift_remove(member)) else {
        return Ok(Vec::new());
    };
    let Value::Array(found) = found else { return Err(format!("'{member}' is not a list of images")) };
    if found.len() > IMAGES_MAX {
        return Err(format!("'{member}' has more than {IMAGES_MAX} images"));
    }
    found.iter().enumerate().map(|(at, value)| image(value).map_err(|why| format!("'{member}/{at}' {why}"))).collect()
}

pub(crate) fn image(value: &Value) -> Result<Image, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let (Some(data), Some(mime)) = (text("data"), text("mime_type")) else {
        return Err("has no \"data\" and \"mime_type\"".to_owned());
    };
    if !TYPES.contains(&mime) {
        return Err(format!("has the type \"{mime}\", which is none of {}", TYPES.join(", ")));
    }
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if data.is_empty() || !data.bytes().all(is_base64) {
        return Err("has data that is not Base64".to_owned());
    }
    Ok(Image { mime: mime.to_owned(), data: data.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_taken_out() {
        let mut input = json!({"q": 1, "images": [{"data": "AA==", "mime_type": "image/png"}], "z": 2});
        let images = take(&mut input, "images").expect("images");
        assert_eq!((images.len(), &images[0].mime[..], input.to_string()), (1, "image/png", r#"{"q":1,"z":2}"#.into()));
        assert_eq!(take(&mut input, "images"), Ok(Vec::new()));
        assert_eq!(take(&mut json!([1]), "images"), Ok(Vec::new()));
    }

    #[test]
    fn malformed_images_are_refused() {
        let refused = |images: Value| take(&mut json!({"images": images}), "images").expect_err("refused");
        assert_eq!(refused(json!("x")), "'images' is not a list of images");
        assert_eq!(refused(json!([{"data": "AA=="}])), "'images/0' has no \"data\" and \"mime_type\"");
        assert!(refused(json!([{"data": "AA==", "mime_type": "text/html"}])).contains("none of image/png"));
        assert!(refused(json!([{"data": "http://x", "mime_type": "image/png"}])).contains("not Base64"));
        assert!(refused(json!(vec![json!({}); 33])).contains("more than 32"));
    }
}
