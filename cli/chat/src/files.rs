//! Files in a message: texts, folders, patterns, images and standard input.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Most files of one message.
const FILES_MAX: usize = 200;
/// Most entries of a folder that are looked at.
const ENTRIES_MAX: usize = 20_000;
/// Most bytes of text in one message.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Most bytes of images in one message.
const IMAGE_BYTES_MAX: u64 = 4 << 20;
/// The images that models take, by the ends of file names.
const IMAGES: [(&str, &str); 5] =
    [("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("gif", "image/gif"), ("webp", "image/webp")];
/// The last answer.
const LAST: &str = "%%";
/// Standard input.
const STDIN: &str = "-";

/// Files as a message has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attachments {
    pub texts: Vec<TextFile>,
    pub images: Vec<ImageFile>,
    /// Files of folders and patterns that are neither texts nor images, and were left out.
    pub left_out: Vec<PathBuf>,
}

/// A text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// What it is called in the message, such as a path.
    pub name: String,
    pub text: String,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFile {
    pub name: String,
    /// For example `image/png`.
    pub mime: &'static str,
    /// Its bytes in Base64.
    pub data: String,
}

/// Why a file cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("could not read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} is neither a text nor an image (png, jpeg, gif, webp)", .0.display())]
    Binary(PathBuf),
    #[error("no file matches {0}")]
    Nothing(String),
    #[error("{0} is not a pattern: {1}")]
    Pattern(String, glob::PatternError),
    #[error("addresses are not fetched: save {0} to a file, or pipe it: curl URL | atlasctl ask …")]
    Address(String),
    #[error("a message has at most {FILES_MAX} files")]
    Many,
    #[error("the {what} of a message have at most {limit} bytes; {} is too much", path.display())]
    Large { what: &'static str, limit: u64, path: PathBuf },
    #[error("there is no last answer")]
    NoAnswer,
}

/// Why what follows `.file` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ItemsError {
    #[error("a quotation mark is not closed")]
    Open,
    #[error("no file is named before --")]
    Nothing,
}

/// Splits `FILE… [-- TEXT]` into the files and the text. Quotation marks and backslashes keep blanks in names.
pub fn split_items(line: &str) -> Result<(Vec<String>, Option<String>), ItemsError> {
    let (mut items, mut item, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut chars = line.char_indices();
    let mut text = None;
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', None) => item.get_or_insert_default().extend(chars.next().map(|(_, c)| c)),
            ('"' | '\'', None) => {
                quote = Some(c);
                item.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => items.extend(item.take()),
            ('-', None) if item.is_none() && is_end(&line[at..]) => {
                text = Some(line[at + 2..].trim().to_owned());
                break;
            }
            (c, _) => item.get_or_insert_default().push(c),
        }
    }
    items.extend(item);
    if quote.is_some() {
        return Err(ItemsError::Open);
    }
    if items.is_empty() {
        return Err(ItemsError::Nothing);
    }
    Ok((items, text.filter(|text| !text.is_empty())))
}

/// Whether `--` stands alone at the beginning of a text.
fn is_end(rest: &str) -> bool {
    rest.strip_prefix("--").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// Reads what is to be sent. `-` is `stdin`, `%%` the last answer, and everything else a file, a folder or a pattern. A file that is named is
/// refused if it is neither a text nor an image; one of a folder or pattern is left out then.
pub fn read_items(items: &[String], stdin: &mut dyn Read, last: Option<&str>) -> Result<Attachments, FileError> {
    let mut reading = Reading::default();
    for item in items {
        reading.item(item, stdin, last)?;
    }
    Ok(reading.read)
}

#[derive(Default)]
struct Reading {
    read: Attachments,
    text_bytes: u64,
    image_bytes: u64,
}

impl Reading {
    fn item(&mut self, item: &str, stdin: &mut dyn Read, last: Option<&str>) -> Result<(), FileError> {
        if item == LAST {
            let text = last.ok_or(FileError::NoAnswer)?.to_owned();
            return self.text("the last answer".to_owned(), text, Path::new(LAST));
        }
        if item == STDIN {
            let path = Path::new("standard input");
            let bytes = bounded(stdin, TEXT_BYTES_MAX, "texts", path)?;
            let text = text_of(bytes).ok_or_else(|| FileError::Binary(path.to_owned()))?;
            return self.text("standard input".to_owned(), text, path);
        }
        if item.starts_with("http://") || item.starts_with("https://") {
            return Err(FileError::Address(item.to_owned()));
        }
        let path = Path::new(item);
        if path.is_dir() {
            return self.all(item, folder(path)?);
        }
        if !path.exists() && item.contains(['*', '?', '[']) {
            let paths = glob::glob(item).map_err(|error| FileError::Pattern(item.to_owned(), error))?;
            let paths: Vec<PathBuf> =
                paths.filter_map(Result::ok).take(ENTRIES_MAX).filter(|path| path.is_file()).collect();
            return self.all(item, paths);
        }
        if self.file(path)? { Ok(()) } else { Err(FileError::Binary(path.to_owned())) }
    }

    fn all(&mut self, item: &str, paths: Vec<PathBuf>) -> Result<(), FileError> {
        if paths.is_empty() {
            return Err(FileError::Nothing(item.to_owned()));
        }
        for path in paths {
            if !self.file(&path)? {
                self.read.left_out.push(path);
            }
        }
        Ok(())
    }

    /// Reads a file. False if it is neither a text nor an image.
    fn file(&mut self, path: &Path) -> Result<bool, FileError> {
        let failed = |error| FileError::Read { path: path.to_owned(), error };
        let mut file = fs::File::open(path).map_err(failed)?;
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
        if let Some((_, mime)) = IMAGES.iter().find(|(known, _)| *known == end) {
            let bytes = bounded(&mut file, IMAGE_BYTES_MAX - self.image_bytes, "images", path)?;
            self.image_bytes += bytes.len() as u64;
            self.count()?;
            let image = ImageFile { name: path.display().to_string(), mime, data: STANDARD.encode(bytes) };
            self.read.images.push(image);
            return Ok(true);
        }
        let mut head = [0; 4096];
        let count = file.read(&mut head).map_err(failed)?;
        let head = &head[..count];
        if head.contains(&0) {
            return Ok(false);
        }
        let bytes = bounded(&mut head.chain(file), TEXT_BYTES_MAX, "texts", path)?;
        let Some(text) = text_of(bytes) else { return Ok(false) };
        self.text(path.display().to_string(), text, path).map(|()| true)
    }

    fn text(&mut self, name: String, text: String, path: &Path) -> Result<(), FileError> {
        self.text_bytes += text.len() as u64;
        if self.text_bytes > TEXT_BYTES_MAX {
            return Err(FileError::Large { what: "texts", limit: TEXT_BYTES_MAX, path: path.to_owned() });
        }
        self.count()?;
        self.read.texts.push(TextFile { name, text });
        Ok(())
    }

    fn count(&self) -> Result<(), FileError> {
        let count = self.read.texts.len() + self.read.images.len();
        if count < FILES_MAX { Ok(()) } else { Err(FileError::Many) }
    }
}

fn bounded(reader: &mut dyn Read, limit: u64, what: &'static str, path: &Path) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let read = reader.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| FileError::Read { path: path.to_owned(), error })?;
    if bytes.len() as u64 > limit {
        let limit = if what == "images" { IMAGE_BYTES_MAX } else { TEXT_BYTES_MAX };
        return Err(FileError::Large { what, limit, path: path.to_owned() });
    }
    Ok(bytes)
}

/// Bytes as a text; none if they are no UTF-8, or have a zero byte.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The files of a folder and of the folders in it, by name. Hidden ones are left out, and links are not followed.
fn folder(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    let (mut files, mut folders, mut seen) = (BTreeSet::new(), vec![path.to_owned()], 0_usize);
    while let Some(folder) = folders.pop() {
        let failed = |error| FileError::Read { path: folder.clone(), error };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            seen += 1;
            if seen > ENTRIES_MAX {
                return Err(FileError::Many);
            }
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.insert(entry.path());
            }
        }
    }
    Ok(files.into_iter().collect())
}

impl Attachments {
    /// The message with a text. One file alone is the message itself; otherwise each has a line before it that says where it is from.
    pub fn message(&self, text: Option<&str>) -> String {
        let text = text.map(str::trim_end).filter(|text| !text.is_empty());
        if let ([file], None, []) = (&self.texts[..], text, &self.images[..]) {
            return file.text.trim_end().to_owned();
        }
        let mut parts: Vec<String> = text.map(str::to_owned).into_iter().collect();
        parts.extend(self.texts.iter().map(|file| format!("FILE: {}\n\n{}", file.name, file.text.trim_end())));
        parts.extend(self.images.iter().map(|image| format!("IMAGE: {}", image.name)));
        parts.join("\n\n")
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.images.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(names: &[String]) -> Result<Attachments, String> {
        read_items(names, &mut &b"piped\n"[..], Some("said")).map_err(|error| error.to_string())
    }

    #[test]
    fn items_are_split_as_in_a_shell() {
        let split = |line: &str| split_items(line).expect("items");
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(split("a b.txt"), (names(&["a", "b.txt"]), None));
        assert_eq!(
            split(r#""a b" c\ d 'e"f' -- What -- is it? "#),
            (names(&["a b", "c d", "e\"f"]), Some("What -- is it?".to_owned()))
        );
        assert_eq!(split("--x - --"), (names(&["--x", "-"]), None));
        assert_eq!(split_items("'a"), Err(ItemsError::Open));
        assert_eq!(split_items(" -- text"), Err(ItemsError::Nothing));
        assert_eq!(split("é\\").0, names(&["é"]));
    }

    #[test]
    fn files_folders_and_patterns_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::create_dir(at("sub")).expect("a folder");
        for (name, bytes) in [
            ("a.txt", &b"one\n"[..]),
            ("sub/b.md", b"two"),
            ("sub/.hidden", b"no"),
            ("c.bin", b"a\0b"),
            ("d.png", b"\x89PNG"),
            ("e.txt", b"\xff\xfe"),
        ] {
            fs::write(at(name), bytes).expect("written");
        }
        let read = items(&[at("a.txt")]).expect("a text");
        assert_eq!(read.message(None), "one");
        assert_eq!(read.message(Some("Why?\n")), format!("Why?\n\nFILE: {}\n\none", at("a.txt")));
        let all = items(&[folder.path().display().to_string()]).expect("a folder");
        let names: Vec<_> = all.texts.iter().map(|file| file.name.clone()).collect();
        assert_eq!(names, [at("a.txt"), at("sub/b.md")]);
        assert_eq!((all.images[0].mime, all.images[0].data.as_str()), ("image/png", "iVBORw=="));
        assert_eq!(all.left_out.len(), 2);
        assert_eq!(items(&[at("*.txt")]).expect("a pattern").texts.len(), 1);
        assert_eq!(items(&["-".to_owned(), "%%".to_owned()]).expect("texts").texts.len(), 2);
        assert_eq!(
            items(&[at("c.bin")]),
            Err(format!("{} is neither a text nor an image (png, jpeg, gif, webp)", at("c.bin")))
        );
        assert!(items(&[at("e.txt")]).is_err());
        assert!(items(&[at("gone")]).expect_err("gone").starts_with("could not read"));
        assert!(items(&[at("*.gone")]).expect_err("none").starts_with("no file matches"));
        assert!(
            items(&["https://example.org".to_owned()])
                .expect_err("an address")
                .starts_with("addresses are not fetched")
        );
        assert!(items(&["[".to_owned()]).is_err());
    }

    #[test]
    fn what_is_sent_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let large = folder.path().join("large.txt");
        fs::write(&large, "x".repeat(TEXT_BYTES_MAX as usize + 1)).expect("written");
        assert!(items(&[large.display().to_string()]).expect_err("large").contains("at most 1048576 bytes"));
        for number in 0..=FILES_MAX {
            fs::write(folder.path().join(format!("{number}.md")), "x").expect("written");
        }
        let pattern = folder.path().join("*.md").display().to_string();
        assert_eq!(items(&[pattern]), Err("a message has at most 200 files".to_owned()));
        let endless = read_items(&["-".to_owned()], &mut io::repeat(b'x'), None).expect_err("endless");
        assert!(matches!(endless, FileError::Large { .. }));
        assert!(matches!(read_items(&["%%".to_owned()], &mut io::empty(), None), Err(FileError::NoAnswer)));
    }
}
