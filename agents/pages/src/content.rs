//! What an answer of a server is, and its text.

use std::io::Read;

use encoding_rs::{Encoding, UTF_8};
use flate2::read::MultiGzDecoder;

/// How far into a page its own word for its encoding is looked for, in bytes.
const PRESCAN_BYTES: usize = 1_024;

/// What the body of an answer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Html,
    /// Text that is taken as it is: prose, JSON, XML, programs.
    Text,
    /// Something that a loader of this name could read, such as `pdf`.
    File(String),
}

/// Why a body is no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableText {
    #[error("its encoding \"{0}\" is not known")]
    Encoding(String),
    #[error("it is binary")]
    Binary,
    #[error("it is not {0}")]
    Malformed(&'static str),
    #[error("it cannot be decompressed")]
    Compressed,
    #[error("it has more than {0} bytes when it is decompressed")]
    Long(usize),
}

/// Types of files whose names say less than they are, by the names of their loaders.
const FILES: [(&str, &str); 10] = [
    ("application/pdf", "pdf"),
    ("application/msword", "doc"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.oasis.opendocument.text", "odt"),
    ("application/epub+zip", "epub"),
    ("application/rtf", "rtf"),
    ("application/gzip", "gz"),
    ("application/zip", "zip"),
];

/// Types that are text although they do not begin with `text/`.
const TEXTS: [&str; 9] = [
    "application/json",
    "application/ld+json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/x-ndjson",
    "application/markdown",
];

/// What a body is, by the header `content-type` and, without one that says it, by the end of the path. The second answer is the encoding
/// that the header names.
pub fn kind(content_type: Option<&str>, path: &str) -> (Kind, Option<String>) {
    let header = content_type.unwrap_or_default();
    let (essence, parameters) = header.split_once(';').unwrap_or((header, ""));
    let essence = essence.trim().to_ascii_lowercase();
    let encoding = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        name.trim().eq_ignore_ascii_case("charset").then(|| value.to_owned()).filter(|value| !value.is_empty())
    });
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let file = FILES.iter().find(|(kind, _)| *kind == essence).map(|(_, name)| (*name).to_owned());
    let kind = match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/pdf" | "text/pdf" => Kind::File("pdf".to_owned()),
        text if text.starts_with("text/") || TEXTS.contains(&text) => Kind::Text,
        text if text.ends_with("+xml") || text.ends_with("+json") => Kind::Text,
        "" | "application/octet-stream" | "binary/octet-stream" => match ending.as_str() {
            "" => Kind::Text,
            "html" | "htm" | "xhtml" => Kind::Html,
            "md" | "txt" | "rst" | "json" | "xml" | "yaml" | "yml" | "csv" => Kind::Text,
            other => Kind::File(other.to_owned()),
        },
        other => Kind::File(file.unwrap_or_else(|| {
            let after = other.rsplit('/').next().unwrap_or_default();
            after.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(32).collect()
        })),
    };
    (kind, encoding)
}

/// The text of a body, in the encoding that its header or, for HTML, the page itself names; UTF-8 without either.
pub fn decoded(body: &[u8], named: Option<&str>, is_html: bool) -> Result<String, UnreadableText> {
    let label = named.map(str::to_owned).or_else(|| is_html.then(|| named_in(body)).flatten());
    let encoding = match &label {
        Some(label) => Encoding::for_label(label.as_bytes())
            .ok_or_else(|| UnreadableText::Encoding(label.chars().take(40).collect()))?,
        None => UTF_8,
    };
    let (text, used, malformed) = encoding.decode(body);
    if text.contains('\0') {
        return Err(UnreadableText::Binary);
    }
    // A page with a byte that is wrong is still a page; without a word on its encoding it may be anything.
    if malformed && !is_html && label.is_none() {
        return Err(UnreadableText::Malformed(used.name()));
    }
    Ok(text.into_owned())
}

/// The encoding that a page names at its beginning.
fn named_in(body: &[u8]) -> Option<String> {
    let beginning = body.get(..PRESCAN_BYTES).unwrap_or(body).to_ascii_lowercase();
    let place = beginning.windows(8).position(|bytes| bytes == b"charset=")?;
    let rest = beginning.get(place + 8..)?;
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let label = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte));
    let label: String = label.map(|byte| char::from(*byte)).collect();
    // A page that could be read up to here is not in UTF-16, whatever it says. A word that nobody knows is no reason to lose the page.
    let label = if label.starts_with("utf-16") { "utf-8".to_owned() } else { label };
    Some(label).filter(|label| Encoding::for_label(label.as_bytes()).is_some())
}

/// What a file in gzip contains, at most so many bytes; another file as it is.
pub fn gunzipped(body: Vec<u8>, bytes_max: usize) -> Result<Vec<u8>, UnreadableText> {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return Ok(body);
    }
    let mut inside = Vec::new();
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(body.as_slice()).take(most).read_to_end(&mut inside).map_err(|_| UnreadableText::Compressed)?;
    if inside.len() > bytes_max { Err(UnreadableText::Long(bytes_max)) } else { Ok(inside) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_header_says_what_a_body_is() {
        let file = |name: &str| Kind::File(name.to_owned());
        for (header, path, expected) in [
            (Some("text/html; charset=utf-8"), "/a.pdf", Kind::Html),
            (Some("TEXT/Plain"), "/a", Kind::Text),
            (Some("application/problem+json"), "/a", Kind::Text),
            (Some("application/pdf"), "/a", file("pdf")),
            (Some("image/png"), "/a.png", file("png")),
            (Some("application/octet-stream"), "/x/a.docx", file("docx")),
            (Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document"), "/a", file("docx")),
            (None, "/a.md", Kind::Text),
            (None, "/a", Kind::Text),
            (Some("x/../../etc"), "/a", file("etc")),
            (Some(";;;"), "/a.htm", Kind::Html),
        ] {
            assert_eq!(kind(header, path).0, expected, "{header:?} {path}");
        }
        assert_eq!(kind(Some("text/html; x=y; Charset=\"ISO-8859-1\""), "/").1.as_deref(), Some("ISO-8859-1"));
        assert_eq!(kind(Some("text/html; charset="), "/").1, None);
    }

    #[test]
    fn texts_are_read_in_their_encoding() {
        assert_eq!(decoded("é".as_bytes(), None, false), Ok("é".to_owned()));
        assert_eq!(decoded(b"\xe9", Some("latin1"), false), Ok("é".to_owned()));
        assert_eq!(
            decoded(b"<meta charset='windows-1252'>\xe9", None, true),
            Ok("<meta charset='windows-1252'>é".to_owned())
        );
        assert_eq!(decoded(b"\xff\xfea\0", None, false), Ok("a".to_owned()), "a byte order mark");
        assert_eq!(decoded(b"\xe9", None, false), Err(UnreadableText::Malformed("UTF-8")));
        assert_eq!(decoded(b"<p>\xe9", None, true), Ok("<p>\u{fffd}".to_owned()));
        assert_eq!(decoded(b"a\0b", None, false), Err(UnreadableText::Binary));
        assert_eq!(decoded(b"a", Some("klingon"), false), Err(UnreadableText::Encoding("klingon".to_owned())));
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b' '; 1 << 20]).expect("written");
        let packed = encoder.finish().expect("packed");
        assert_eq!(gunzipped(packed.clone(), 1_000), Err(UnreadableText::Long(1_000)));
        assert_eq!(gunzipped(packed.clone(), 1 << 20).map(|inside| inside.len()), Ok(1 << 20));
        assert_eq!(gunzipped(packed[..packed.len() / 2].to_vec(), 1 << 21), Err(UnreadableText::Compressed));
        assert_eq!(gunzipped(b"plain".to_vec(), 5), Ok(b"plain".to_vec()));
    }
}
