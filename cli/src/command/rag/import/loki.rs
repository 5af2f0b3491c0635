//! Reads a base of Loki: one YAML document with settings, files of chunks, and a vector for each chunk. The file is somebody else's: what is
//! too large or has another form is refused, and a file without text is named and costs no other.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use atlas_contract::yaml::{Budget, load_core};
use serde_json::Value;

use super::super::files::{Skipped, source_of};
use super::join::joined;
use crate::failure::Failure;
use crate::words;

/// Most bytes of a file, nearly all of which are vectors.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Most bytes of a line, which holds one chunk or one vector.
const LINE_BYTES_MAX: u64 = 8 << 20;

/// Most bytes without the vectors.
const TEXT_BYTES_MAX: usize = 256 << 20;

/// Most values without the vectors: a chunk has four.
const VALUES_MAX: usize = 2_000_000;

/// How the part with the vectors begins.
const VECTORS: &[u8] = b"vectors:";

/// A base of Loki.
#[derive(Debug, Default)]
pub(super) struct LokiBase {
    pub(super) embedding_model: Option<String>,
    pub(super) reranker_model: Option<String>,
    pub(super) chunk_size: Option<u64>,
    /// In bytes.
    pub(super) chunk_overlap: Option<u64>,
    pub(super) top_k: Option<u64>,
    /// What Loki was told to index.
    pub(super) document_paths: Vec<String>,
    /// How many vectors it has.
    pub(super) vectors: u64,
    /// Sources and texts.
    pub(super) documents: Vec<(String, String)>,
    /// Files without a text.
    pub(super) skipped: Vec<Skipped>,
}

impl LokiBase {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| words::could_not("read", path, &error))?;
        let refused = |why: String| {
            let message = format!("\"{}\" is no base of Loki: {why}", path.display());
            Failure::usage(message).with_next("the files of the folder rags are: atlasctl docs from-loki")
        };
        let (text, vectors) = without_vectors(BufReader::new(file.take(FILE_BYTES_MAX))).map_err(refused)?;
        Self::read(&text, vectors).map_err(refused)
    }

    /// Reads the document without its vectors.
    fn read(text: &[u8], vectors: u64) -> Result<Self, String> {
        let budget =
            Budget { bytes_max: TEXT_BYTES_MAX, depth_max: 16, nodes_max: VALUES_MAX, text_bytes_max: TEXT_BYTES_MAX };
        let document = load_core(text, budget).map_err(|error| error.to_string())?.value;
        let files = document.get("files").and_then(Value::as_object).ok_or("it has no mapping \"files\"")?;
        let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| document.get(name).and_then(Value::as_u64);
        let paths = document.get("document_paths").and_then(Value::as_array).into_iter().flatten();
        let mut base = Self {
            embedding_model: text("embedding_model"),
            reranker_model: text("reranker_model"),
            chunk_size: number("chunk_size"),
            chunk_overlap: number("chunk_overlap"),
            top_k: number("top_k"),
            document_paths: paths.filter_map(Value::as_str).map(str::to_owned).collect(),
            vectors,
            ..Self::default()
        };
        // Without the setting, what looks repeated is repeated.
        let overlap = base.chunk_overlap.unwrap_or(u64::MAX).try_into().unwrap_or(usize::MAX);
        for (id, file) in files {
            match document_of(file, overlap) {
                Ok(document) => base.documents.push(document),
                Err(why) => {
                    let named =
                        file.get("path").and_then(Value::as_str).map_or_else(|| format!("file {id}"), str::to_owned);
                    base.skipped.push(Skipped { path: PathBuf::from(named), why });
                }
            }
        }
        Ok(base)
    }
}

/// The source and the text of a file.
fn document_of(file: &Value, overlap: usize) -> Result<(String, String), String> {
    let path = file.get("path").and_then(Value::as_str).filter(|path| !path.is_empty()).ok_or("it has no path")?;
    let chunks = file.get("documents").and_then(Value::as_array).ok_or("it has no documents")?;
    let chunk = |chunk: &Value| chunk.get("page_content").and_then(Value::as_str).map(str::to_owned);
    let chunks: Option<Vec<String>> = chunks.iter().map(chunk).collect();
    let chunks = chunks.ok_or("a part of it has no text")?;
    let text = joined(chunks.iter().map(String::as_str), overlap);
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    // That of an address stays; a path is named as `rag add` names it.
    let source = if path.contains("://") { path.to_owned() } else { source_of(Path::new(path)) };
    if source.is_empty() { Err("its path names no file".to_owned()) } else { Ok((source, text)) }
}

/// The lines of a document without those of its vectors, and how many these are. Only a member of the document begins in the first column.
fn without_vectors(mut lines: impl BufRead) -> Result<(Vec<u8>, u64), String> {
    let (mut text, mut line) = (Vec::new(), Vec::new());
    let (mut is_vectors, mut vectors) = (false, 0);
    loop {
        line.clear();
        let read =
            lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            return Ok((text, vectors));
        }
        if read as u64 >= LINE_BYTES_MAX {
            return Err(format!("a line has more than {LINE_BYTES_MAX} bytes"));
        }
        if line.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            is_vectors = line.starts_with(VECTORS);
        } else if is_vectors && line.iter().any(|byte| !byte.is_ascii_whitespace()) {
            vectors += 1;
        }
        if is_vectors {
            continue;
        }
        if text.len() + line.len() > TEXT_BYTES_MAX {
            return Err(format!("it has more than {TEXT_BYTES_MAX} bytes besides its vectors"));
        }
        text.extend_from_slice(&line);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let read = without_vectors(text.as_bytes()).and_then(|(text, vectors)| LokiBase::read(&text, vectors));
        let told = match read {
            Err(why) => format!("refused: {why}\n"),
            Ok(base) => {
                let LokiBase { embedding_model, chunk_size, chunk_overlap, top_k, vectors, .. } = &base;
                let mut told = format!("{embedding_model:?} {chunk_size:?} {chunk_overlap:?} {top_k:?} {vectors}\n");
                for (source, text) in &base.documents {
                    writeln!(told, "{source}: {text:?}").expect("a text");
                }
                for Skipped { path, why } in &base.skipped {
                    writeln!(told, "skipped {}: {why}", path.display()).expect("a text");
                }
                told
            }
        };
        expected.assert_eq(&told);
    }

    const BASE: &str = "\
embedding_model: openai:text-embedding-3-small
chunk_size: 1000
chunk_overlap: 50
reranker_model: null
top_k: 5
batch_size: null
next_file_id: 3
document_paths:
- /srv/docs/**/*.md
files:
  0:
    hash: 9f86d081
    path: /srv/docs/leave.md
    documents:
    - page_content: |-
        # Leave

        vectors: are no vectors here.
      metadata: {}
    - page_content: are no vectors here. Ask your lead.
      metadata: {}
  2:
    hash: 60303ae2
    path: https://example.com/a?b
    documents:
    - page_content: 'yes'
      metadata: {}
vectors:
  0-0: AACAPwAAAAA=
  0-1: AACAPwAAAAA=
  2-0: AACAPwAAAAA=
";

    #[test]
    fn a_base_is_its_documents() {
        check(
            BASE,
            &expect![[r##"
                Some("openai:text-embedding-3-small") Some(1000) Some(50) Some(5) 3
                srv/docs/leave.md: "# Leave\n\nvectors: are no vectors here. Ask your lead."
                https://example.com/a?b: "yes"
            "##]],
        );
    }

    #[test]
    fn a_file_that_is_none_costs_no_other() {
        check(
            "vectors: {}\nfiles:\n  0: 1\n  1: {path: a.md}\n  2: {path: b.md, documents: [{page_content: 1}]}\n  3: {path: ../.., documents: [{page_content: x}]}\n  \
             4: {path: c.md, documents: []}\n  5: {path: ../../d.md, documents: [{page_content: d}]}\ntop_k: -1\n",
            &expect![[r#"
                None None None None 0
                d.md: "d"
                skipped file 0: it has no path
                skipped a.md: it has no documents
                skipped b.md: a part of it has no text
                skipped ../..: its path names no file
                skipped c.md: it is empty
            "#]],
        );
    }

    #[test]
    fn what_is_no_base_is_refused() {
        for (text, expected) in [
            (
                "",
                expect![[r#"
                refused: it has no mapping "files"
            "#]],
            ),
            (
                "files: [1]",
                expect![[r#"
                refused: it has no mapping "files"
            "#]],
            ),
            (
                "files: {",
                expect![[r#"
                refused: line 1, column 8: unclosed bracket '{'
            "#]],
            ),
        ] {
            check(text, &expected);
        }
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                    files: {g: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]}\n";
        check(
            bomb,
            &expect![[r#"
            refused: the document has more than 2000000 values
        "#]],
        );
        let line = "x".repeat(usize::try_from(LINE_BYTES_MAX).expect("it fits"));
        check(
            &format!("files: {line}"),
            &expect![[r#"
            refused: a line has more than 8388608 bytes
        "#]],
        );
        assert!(
            without_vectors(&b"files: \xff\n"[..]).and_then(|(text, _)| LokiBase::read(&text, 0).map(drop)).is_err()
        );
    }
}
