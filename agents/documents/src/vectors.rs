//! Vectors of chunks, kept between runs so that a chunk that did not change is not embedded again.
//!
//! A vector is a file, named by the digest of its model and its text, so a changed chunk or another model has another file. Programs may share
//! the folder. What is damaged counts as missing.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The beginning of each file: the version of its form.
const MAGIC: &[u8; 8] = b"atlasvc1";
/// Bytes of the digest at the end of a file.
const CHECK_BYTES: usize = 8;
/// Most bytes of a file: 16,384 numbers.
const FILE_BYTES_MAX: u64 = 4 * 16_384 + 64;
/// A file that is read is marked as used again after this time.
const MARK_AFTER: Duration = Duration::from_secs(24 * 3600);
/// How much is left after files are removed, in percent of the bound.
const LEFT_PERCENT: u64 = 80;
/// Bytes that a file takes beside its content, about.
const FILE_OVERHEAD: u64 = 512;

/// What a vector is kept under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VectorKey([u8; 32]);

impl VectorKey {
    /// The key of a text for a model. `model` has all that decides which vectors it gives.
    pub fn of(model: &str, text: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(model.len() as u64).to_le_bytes());
        hasher.update(model.as_bytes());
        hasher.update(text.as_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    /// It as 64 hexadecimal digits.
    pub fn to_hex(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

/// A folder of vectors, with a bound of its bytes.
#[derive(Debug)]
pub struct VectorCache {
    folder: PathBuf,
    bytes_max: u64,
    /// Bytes that were written since the folder was last measured.
    written: AtomicU64,
}

impl VectorCache {
    /// Vectors in a folder, which need not exist.
    pub fn new(folder: PathBuf, bytes_max: u64) -> Self {
        // The first write measures what earlier programs left.
        Self { folder, bytes_max, written: AtomicU64::new(bytes_max) }
    }

    fn path(&self, key: VectorKey) -> PathBuf {
        let name = key.to_hex();
        self.folder.join(&name[..2]).join(&name[2..])
    }

    /// A vector. None if it is not kept, or its file is damaged.
    pub fn get(&self, key: VectorKey) -> Option<Vec<f32>> {
        let path = self.path(key);
        let mut file = fs::File::open(&path).ok()?;
        let mut bytes = Vec::new();
        io::Read::by_ref(&mut file).take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let vector = decoded(key, &bytes);
        match &vector {
            // A damaged file is written again. If it cannot be removed, it is read as missing again.
            None => drop(fs::remove_file(&path)),
            Some(_) => mark(&file),
        }
        vector
    }

    /// Keeps a vector. A folder that has too much loses the vectors that were not used for longest.
    pub fn put(&self, key: VectorKey, vector: &[f32]) -> io::Result<()> {
        let path = self.path(key);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        let bytes = encoded(key, vector);
        let temporary = folder.join(format!(".{}-{}", std::process::id(), key.to_hex()));
        fs::write(&temporary, &bytes)?;
        fs::rename(&temporary, &path)?;
        let more = bytes.len() as u64 + FILE_OVERHEAD;
        // Measured each time a tenth of the bound was written.
        if self.written.fetch_add(more, Ordering::Relaxed).saturating_add(more) > self.bytes_max / 10 {
            self.written.store(0, Ordering::Relaxed);
            self.prune()?;
        }
        Ok(())
    }

    /// Removes a vector, if it is kept.
    pub fn remove(&self, key: VectorKey) {
        // What cannot be removed is replaced by the next vector of the same key.
        let _ = fs::remove_file(self.path(key));
    }

    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for folder in fs::read_dir(&self.folder)?.filter_map(Result::ok) {
            files.extend(listed(&folder.path()));
        }
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes + FILE_OVERHEAD).sum();
        if total <= self.bytes_max {
            return Ok(());
        }
        files.sort_by_key(|(used, ..)| *used);
        let left = self.bytes_max / 100 * LEFT_PERCENT;
        for (_, bytes, path) in files {
            if total <= left {
                break;
            }
            // Another program may have removed it.
            let _ = fs::remove_file(path);
            total = total.saturating_sub(bytes + FILE_OVERHEAD);
        }
        Ok(())
    }
}

/// The files of a folder: when they were used, their bytes and paths.
fn listed(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let file = |entry: fs::DirEntry| {
        let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((data.modified().ok()?, data.len(), entry.path()))
    };
    entries.filter_map(Result::ok).filter_map(file).collect()
}

/// Notes that a file is used, at most once a day.
fn mark(file: &fs::File) {
    let used = file.metadata().and_then(|data| data.modified());
    let is_old = used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > MARK_AFTER));
    if is_old {
        #[expect(clippy::disallowed_methods, reason = "the time of a file is that of the system")]
        let now = SystemTime::now();
        // Without the mark the file may be removed earlier.
        let _ = file.set_modified(now);
    }
}

/// The digest of a file's numbers together with what they belong to.
fn check(key: VectorKey, numbers: &[u8]) -> [u8; CHECK_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&key.0);
    hasher.update(numbers);
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&hasher.finalize().as_bytes()[..CHECK_BYTES]);
    check
}

fn encoded(key: VectorKey, vector: &[f32]) -> Vec<u8> {
    let numbers: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    [MAGIC.as_slice(), &numbers, &check(key, &numbers)].concat()
}

fn decoded(key: VectorKey, bytes: &[u8]) -> Option<Vec<f32>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (numbers, given) = rest.split_at_checked(rest.len().checked_sub(CHECK_BYTES)?)?;
    let (whole, half) = numbers.as_chunks::<4>();
    if given != check(key, numbers) || !half.is_empty() || whole.is_empty() {
        return None;
    }
    Some(whole.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cache(bytes_max: u64) -> (tempfile::TempDir, VectorCache) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = VectorCache::new(folder.path().join("vectors"), bytes_max);
        (folder, cache)
    }

    #[test]
    fn a_vector_belongs_to_its_model_and_text() {
        let (_folder, cache) = cache(1 << 20);
        let key = VectorKey::of("m", "text");
        assert_eq!(cache.get(key), None);
        cache.put(key, &[1.0, -2.5]).expect("kept");
        assert_eq!(cache.get(key), Some(vec![1.0, -2.5]));
        for other in [VectorKey::of("n", "text"), VectorKey::of("m", "texts"), VectorKey::of("mt", "ext")] {
            assert_eq!(cache.get(other), None);
        }
        cache.remove(key);
        assert_eq!(cache.get(key), None);
    }

    #[test]
    fn a_damaged_file_counts_as_missing_and_is_removed() {
        let (_folder, cache) = cache(1 << 20);
        let key = VectorKey::of("m", "text");
        cache.put(key, &[1.0, 2.0]).expect("kept");
        let whole = fs::read(cache.path(key)).expect("a file");
        let flipped = whole.iter().enumerate().map(|(place, byte)| if place == 9 { byte ^ 1 } else { *byte }).collect();
        for damaged in [flipped, whole[..10].to_vec(), [whole.as_slice(), &[0]].concat(), Vec::new()] {
            fs::write(cache.path(key), damaged).expect("a file");
            assert_eq!(cache.get(key), None);
            assert!(!cache.path(key).exists());
        }
        // That of another text is no vector of this one.
        let other = VectorKey::of("m", "other");
        cache.put(other, &[1.0]).expect("kept");
        fs::create_dir_all(cache.path(key).parent().expect("a folder")).expect("a folder");
        fs::rename(cache.path(other), cache.path(key)).expect("moved");
        assert_eq!(cache.get(key), None);
    }

    #[test]
    fn the_folder_keeps_its_bound() {
        let bytes_max = 20 * (FILE_OVERHEAD + 20);
        let (_folder, cache) = cache(bytes_max);
        for number in 0..200 {
            cache.put(VectorKey::of("m", &number.to_string()), &[1.0]).expect("kept");
        }
        let kept = (0..200).filter(|number| cache.get(VectorKey::of("m", &number.to_string())).is_some()).count();
        assert!((10..=22).contains(&kept), "{kept}");
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(vector in prop::collection::vec(any::<f32>(), 1..50), bytes: Vec<u8>) {
            let key = VectorKey::of("m", "t");
            let back = decoded(key, &encoded(key, &vector)).expect("readable");
            prop_assert_eq!(back.iter().map(|n| n.to_bits()).collect::<Vec<_>>(), vector.iter().map(|n| n.to_bits()).collect::<Vec<_>>());
            prop_assert_eq!(decoded(key, &bytes), None);
        }
    }
}
