//! Where a value comes from, and how it is sent. It is in memory only until it is sent, and never in an argument, which every user of a
//! machine can read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use atlas_types::SECRET_BYTES_MAX;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::masked;
use crate::words::{could_not, shell};

/// Where the value of a secret is.
#[derive(Debug, clap::Args)]
pub(super) struct Source {
    /// - reads the value from stdin; without it and --file, the terminal is asked.
    #[arg(value_name = "-")]
    stdin: Option<String>,
    /// Read the value from a file; a line end at its end is not part of it.
    #[arg(long, value_name = "FILE", conflicts_with = "stdin")]
    file: Option<std::path::PathBuf>,
}

impl Source {
    /// Reads the value of a secret with this name.
    pub(super) fn read(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        if !atlas_secrets::is_name(name) {
            // Without the name: it may be a value.
            return Err(Failure::usage("the name of a secret consists of letters, digits, -, _ and ."));
        }
        let value = match (&self.stdin, &self.file) {
            (Some(word), _) if word == "-" => text(std::io::stdin().lock(), Path::new("stdin"))?,
            (Some(_), _) => return Err(as_argument(name)),
            (None, Some(file)) if file == Path::new("-") => text(std::io::stdin().lock(), Path::new("stdin"))?,
            (None, Some(file)) => text(File::open(file).map_err(|error| could_not("read", file, &error))?, file)?,
            (None, None) => masked::ask("value: ")?.ok_or_else(|| no_terminal(name))?,
        };
        if value.is_empty() {
            return Err(Failure::usage(format!("the value of secret \"{name}\" is empty: nothing was stored")));
        }
        Ok(value)
    }
}

/// The error never repeats the word: it may be the value.
fn as_argument(name: &str) -> Failure {
    let name = shell(name);
    let failure = Failure::usage(
        "a value is not taken from an argument: other users of this machine can read it, and the shell's history keeps it",
    );
    failure.with_next(format!("enter it at the terminal: atlasctl secret set {name}   and replace it, if it was real"))
}

fn no_terminal(name: &str) -> Failure {
    let name = shell(name);
    Failure::usage("stdin is not a terminal").with_next(format!(
        "read the value from stdin: atlasctl secret set {name} -   or from a file: atlasctl secret set {name} --file FILE"
    ))
}

/// A text without the line end after it.
fn text(from: impl Read, path: &Path) -> Result<Zeroizing<String>, Failure> {
    // Room for everything, so that no buffer is moved and left behind in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX + 4));
    from.take(SECRET_BYTES_MAX as u64 + 3).read_to_end(&mut bytes).map_err(|error| could_not("read", path, &error))?;
    let end = [&b"\r\n"[..], b"\n"].into_iter().find(|end| bytes.ends_with(end)).map_or(0, <[u8]>::len);
    let text = &bytes[..bytes.len() - end];
    if text.len() > SECRET_BYTES_MAX {
        let message = format!("\"{}\" is longer than the {SECRET_BYTES_MAX} bytes of a secret", path.display());
        return Err(Failure::new("E3006", Exit::Invalid, message));
    }
    let text = std::str::from_utf8(text).map_err(|_| {
        Failure::usage(format!("\"{}\" is not UTF-8", path.display())).with_next("encode it, for example with base64")
    })?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Refuses a cluster to which a value would go over a network. A controller refuses it as well, but then the value was sent.
pub(super) fn check_private(client: &Client) -> Result<(), Failure> {
    if client.is_private() {
        return Ok(());
    }
    let message = format!("a value is not sent to {}: others on the network could read it", client.base());
    let failure = Failure::new("E2104", Exit::Denied, message);
    Err(failure.with_next("run this command on the machine of a controller: --server http://127.0.0.1:7400"))
}

/// Stores a value; the answer is the object of the secret.
pub(in crate::command) async fn store(
    client: &Client,
    name: &str,
    value: &str,
    rotate: bool,
) -> Result<Value, Failure> {
    check_private(client)?;
    let body = json!({ "value": value, "rotate": rotate });
    client.put(&["api", "secrets", name], &[], &body).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        text(bytes, Path::new("f")).map(|text| text.to_string()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn one_line_end_is_not_part_of_a_value() {
        for (bytes, value) in [("v", "v"), ("v\n", "v"), ("v\r\n", "v"), ("v\n\n", "v\n"), ("a\nb\n", "a\nb"), ("", "")]
        {
            assert_eq!(read(bytes.as_bytes()).as_deref(), Ok(value));
        }
    }

    #[test]
    fn values_are_bounded_texts() {
        let longest = "x".repeat(SECRET_BYTES_MAX);
        assert_eq!(read(format!("{longest}\r\n").as_bytes()).as_ref(), Ok(&longest));
        let told = read(format!("{longest}x").as_bytes()).expect_err("too long");
        assert_eq!(told, "error[E3006]: \"f\" is longer than the 16384 bytes of a secret");
        assert!(read(&[0xff]).expect_err("no text").starts_with("error: \"f\" is not UTF-8"));
    }

    #[test]
    fn a_value_in_an_argument_is_not_repeated() {
        let source = Source { stdin: Some("sk-canary".to_owned()), file: None };
        let told = source.read("k").expect_err("refused").to_string();
        assert!(told.contains("not taken from an argument") && !told.contains("sk-canary"), "{told}");
    }
}
