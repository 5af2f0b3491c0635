//! The files of the audit: segments of lines, named by the number of their first line. Blocking.
//!
//! A segment is filled with zeros, and then written from its beginning. Each start of a controller begins a new one, and so does a
//! failed write. A last line without a line break was not completed: it counts as not written, and its number is given again. After a failed write the same lines are
//! written to the next segment, so what the failed one has of them is there twice, byte for byte; readers skip the repetition.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_artifacts::{AuditAsk, AuditPage};
use atlas_audit::{Chain, LINE_BYTES_MAX, Record, Verifier};
use atlas_env::{FileWriter, Files};

use super::AuditOptions;

/// A segment that has this many bytes, or a quarter of all that are allowed, is followed by another.
const SEGMENT_BYTES: u64 = 4 << 20;
/// Most segments that one request reads.
const SEGMENTS_READ_MAX: usize = 8;
/// A page with this many bytes ends, so that it fits into a frame between controllers with its last record.
const PAGE_BYTES: usize = 4 << 20;
/// Most damaged lines that are shown before a record. A verification stops at the first one.
const DAMAGED_MAX: usize = 16;
/// What a line usually has at most.
const LINE_BYTES_USUAL: usize = 512;
const ENDING: &str = ".jsonl";

pub(super) struct Store {
    options: AuditOptions,
    segment_bytes: u64,
    files: Arc<dyn Files>,
    end: Chain,
    /// The segment that is written; none until something is, and after a failed write.
    current: Option<Segment>,
}

struct Segment {
    writer: Box<dyn FileWriter>,
    bytes: u64,
}

/// Reads without the lock of the store.
pub(super) struct Reader {
    dir: PathBuf,
    files: Arc<dyn Files>,
    /// The number of the newest record.
    end: u64,
}

impl Store {
    pub(super) fn open(options: AuditOptions, files: Arc<dyn Files>) -> io::Result<Self> {
        files.create_dir_all(&options.dir)?;
        let end = Chain::new(&options.controller);
        let segment_bytes = (options.bytes_max / 4).clamp(SEGMENT_BYTES / 64, SEGMENT_BYTES);
        let mut store = Self { options, segment_bytes, files, end, current: None };
        store.end = store.find_end()?;
        Ok(store)
    }

    pub(super) fn reader(&self) -> Reader {
        Reader { dir: self.options.dir.clone(), files: self.files.clone(), end: self.end.number() }
    }

    /// Appends records durably. After an error it is called again with the same records.
    pub(super) fn append(&mut self, records: &[Arc<Record>]) -> io::Result<()> {
        let mut chain = self.end.clone();
        let mut segment = match self.current.take().filter(|segment| segment.bytes < self.segment_bytes) {
            Some(segment) => segment,
            None => {
                self.remove_oldest()?;
                let path = self.options.dir.join(format!("{:020}{ENDING}", chain.number() + 1));
                let writer = self.files.create_filled(&path, self.segment_bytes)?;
                self.files.sync_dir(&self.options.dir)?;
                Segment { writer, bytes: 0 }
            }
        };
        let mut lines = Vec::with_capacity(records.len() * LINE_BYTES_USUAL);
        for record in records {
            chain.write(record, &mut lines);
        }
        segment.writer.write_all(&lines)?;
        segment.writer.sync()?;
        segment.bytes += lines.len() as u64;
        (self.end, self.current) = (chain, Some(segment));
        Ok(())
    }

    /// The chain after the last line that was completed. That line is made durable, because the next one has its hash.
    fn find_end(&self) -> io::Result<Chain> {
        let controller = &self.options.controller;
        for (_, path) in self.reader().segments()?.into_iter().rev() {
            let text = self.reader().text(&path)?;
            // Lines that cannot be read are damage, which a verification finds.
            let last = text.lines().rev().find_map(|line| {
                let mut verifier = Verifier::default();
                verifier.line(line).ok().map(|_| verifier)
            });
            let Some(last) = last else { continue };
            // A controller that was killed may not have synced it. Without room for a copy it stays as it is.
            if let Err(error) = self.reader().completed(&path).and_then(|bytes| self.files.write_durably(&path, &bytes))
            {
                tracing::warn!(%error, "could not sync the last records of the audit");
            }
            return Chain::after(controller, &last).ok_or_else(|| {
                let found = last.end().map(Chain::controller).unwrap_or_default();
                let text = format!("the audit in \"{}\" is that of controller {found}", self.options.dir.display());
                io::Error::new(io::ErrorKind::InvalidData, text)
            });
        }
        Ok(Chain::new(controller))
    }

    /// Makes room for another segment.
    fn remove_oldest(&self) -> io::Result<()> {
        let segments = self.reader().segments()?;
        let mut sizes = Vec::with_capacity(segments.len());
        for (_, path) in &segments {
            sizes.push(self.files.size(path)?.unwrap_or(0));
        }
        let mut total: u64 = sizes.iter().sum();
        let mut removed = false;
        for ((_, path), size) in segments.iter().zip(sizes) {
            // The last one has the end of the chain.
            if total + self.segment_bytes <= self.options.bytes_max
                || Some(path) == segments.last().map(|(_, path)| path)
            {
                break;
            }
            self.files.remove(path)?;
            removed = true;
            total -= size;
        }
        if removed { self.files.sync_dir(&self.options.dir) } else { Ok(()) }
    }
}

impl Reader {
    /// The wanted lines. Lines that are no records are shown as they are, before the record that follows them, so that a verification of
    /// what was read finds them.
    pub(super) fn page(&self, ask: &AuditAsk) -> io::Result<AuditPage> {
        let segments = self.segments()?;
        let begin = segments.iter().rposition(|(first, _)| *first <= ask.after.saturating_add(1)).unwrap_or(0);
        let mut page = AuditPage { last: ask.after, end: self.end, ..AuditPage::default() };
        let (mut damaged, mut count, mut bytes) = (Vec::new(), 0, 0);
        for (read, (_, path)) in segments.iter().skip(begin).enumerate() {
            if read >= SEGMENTS_READ_MAX {
                page.more = true;
                // If nothing else was read, the reader learns why.
                if page.last == ask.after {
                    page.lines.append(&mut damaged);
                }
                return Ok(page);
            }
            let text = match self.text(path) {
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text?,
            };
            for line in text.lines() {
                // What an earlier page showed is not hashed again.
                if number(line).is_some_and(|number| number <= page.last) {
                    damaged.clear();
                    continue;
                }
                let mut verifier = Verifier::default();
                let (Ok(record), Some((number, _))) = (verifier.line(line), verifier.span()) else {
                    if damaged.len() < DAMAGED_MAX {
                        damaged.push(line.to_owned());
                    }
                    continue;
                };
                if count >= ask.limit || bytes >= PAGE_BYTES {
                    page.more = true;
                    return Ok(page);
                }
                bytes += damaged.iter().map(String::len).sum::<usize>();
                page.lines.append(&mut damaged);
                page.last = number;
                if ask.filter.admits(&record) {
                    bytes += line.len();
                    page.lines.push(line.to_owned());
                    count += 1;
                }
            }
        }
        page.lines.append(&mut damaged);
        Ok(page)
    }

    /// The segments by the number of their first line.
    fn segments(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let number = |path: &Path| path.file_name()?.to_str()?.strip_suffix(ENDING)?.parse().ok();
        let listed = self.files.list(&self.dir)?;
        let mut segments: Vec<(u64, PathBuf)> =
            listed.into_iter().filter_map(|path| Some((number(&path)?, path))).collect();
        segments.sort_unstable();
        Ok(segments)
    }

    /// The completed lines of a segment: those before the zeros that it was filled with. After a power cut, zeros may be in the
    /// middle of lines that were not synced.
    fn completed(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = self.files.read(path)?;
        bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        Ok(bytes)
    }

    /// The same as text. Of a line that is too long for a record the beginning is left, which is no record.
    fn text(&self, path: &Path) -> io::Result<String> {
        let bytes = self.completed(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let cut = |line: &str| line.chars().take(LINE_BYTES_MAX).collect::<String>() + "\n";
        Ok(match text.lines().any(|line| line.len() > LINE_BYTES_MAX) {
            true => text.lines().map(cut).collect(),
            false => text.into_owned(),
        })
    }
}

/// The number that a line begins with.
fn number(line: &str) -> Option<u64> {
    line.strip_prefix("{\"number\":")?.split_once(',')?.0.parse().ok()
}
