//! An in-memory file system that loses unsynced data: contents of files and names in directories.
//!
//! After a crash, a random prefix of the changes of names is kept, as with a journal, and for each file a random part
//! of the unsynced writes.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_env::{FileReader, FileWriter, Files};
use atlas_log::sim::next;

/// The file system. Clones share it. Each clone belongs to one run of the machine and fails after the next crash.
#[derive(Clone, Default)]
pub(crate) struct SimFiles {
    state: Arc<Mutex<State>>,
    life: u64,
}

#[derive(Default)]
struct State {
    names: Names,
    /// The names that certainly survive a crash.
    durable: Names,
    changes: Vec<Change>,
    life: u64,
    /// A deliberate bug: syncs of directories do nothing.
    forgets_names: bool,
    syncs: u64,
}

type Names = BTreeMap<PathBuf, Arc<Mutex<Contents>>>;

#[derive(Default)]
struct Contents {
    bytes: Vec<u8>,
    durable: Vec<u8>,
}

/// A change of names.
enum Change {
    Create(PathBuf, Arc<Mutex<Contents>>),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Change {
    fn make(&self, names: &mut Names) {
        match self {
            Self::Create(path, contents) => drop(names.insert(path.clone(), Arc::clone(contents))),
            Self::Rename(from, to) => {
                if let Some(contents) = names.remove(from) {
                    names.insert(to.clone(), contents);
                }
            }
            Self::Remove(path) => drop(names.remove(path)),
        }
    }

    fn is_in(&self, dir: &Path) -> bool {
        let path = match self {
            Self::Create(path, _) | Self::Rename(_, path) | Self::Remove(path) => path,
        };
        path.parent() == Some(dir)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimFiles {
    /// The same files for the machine's next run.
    pub(crate) fn again(&self) -> Self {
        Self { state: Arc::clone(&self.state), life: locked(&self.state).life }
    }

    /// The power fails.
    pub(crate) fn crash(&self, seed: u64) {
        let mut draw = seed;
        let mut state = locked(&self.state);
        state.life += 1;
        let changes = std::mem::take(&mut state.changes);
        let kept = (next(&mut draw) % (changes.len() as u64 + 1)) as usize;
        changes.iter().take(kept).for_each(|change| change.make(&mut state.durable));
        state.names = state.durable.clone();
        for contents in state.names.values() {
            let mut contents = locked(contents);
            if contents.bytes != contents.durable {
                let (least, most) = (contents.durable.len().min(contents.bytes.len()), contents.bytes.len());
                let len = least + (next(&mut draw) % ((most - least) as u64 + 1)) as usize;
                contents.bytes.truncate(len);
                contents.durable = contents.bytes.clone();
            }
        }
    }

    /// Removes everything, because the machine gets a new disk.
    pub(crate) fn wipe(&self) {
        let mut state = locked(&self.state);
        state.life += 1;
        state.names.clear();
        state.durable.clear();
        state.changes.clear();
    }

    /// Makes syncs of directories do nothing.
    pub(crate) fn forget_names(&self) {
        locked(&self.state).forgets_names = true;
    }

    fn alive(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = locked(&self.state);
        if state.life == self.life { Ok(state) } else { Err(io::Error::other("the machine crashed")) }
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = self.alive()?;
        change.make(&mut state.names);
        state.changes.push(change);
        Ok(())
    }
}

struct Writer {
    files: SimFiles,
    contents: Arc<Mutex<Contents>>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        drop(self.files.alive()?);
        locked(&self.contents).bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWriter for Writer {
    fn sync(&mut self) -> io::Result<()> {
        self.files.alive()?.syncs += 1;
        let mut contents = locked(&self.contents);
        contents.durable = contents.bytes.clone();
        Ok(())
    }
}

struct Reader {
    contents: Arc<Mutex<Contents>>,
    size: u64,
}

impl FileReader for Reader {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let contents = locked(&self.contents);
        let found = contents.bytes.get(start..start.saturating_add(buf.len()));
        buf.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Files for SimFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn FileWriter>> {
        let contents = Arc::<Mutex<Contents>>::default();
        self.change(Change::Create(path.to_owned(), Arc::clone(&contents)))?;
        Ok(Box::new(Writer { files: self.clone(), contents }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn FileReader>> {
        let contents = Arc::clone(self.alive()?.names.get(path).ok_or(io::ErrorKind::NotFound)?);
        let size = locked(&contents).bytes.len() as u64;
        Ok(Arc::new(Reader { contents, size }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if !self.alive()?.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(Change::Rename(from.to_owned(), to.to_owned()))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.alive()?;
        if state.forgets_names {
            return Ok(());
        }
        let changes = std::mem::take(&mut state.changes);
        let (synced, open): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.is_in(dir));
        synced.iter().for_each(|change| change.make(&mut state.durable));
        state.changes = open;
        Ok(())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let contents = Arc::clone(self.alive()?.names.get(path).ok_or(io::ErrorKind::NotFound)?);
        let bytes = locked(&contents).bytes.clone();
        Ok(bytes)
    }

    fn write_durably(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = path.with_extension("tmp");
        let mut file = self.create(&temporary)?;
        file.write_all(bytes)?;
        file.sync()?;
        self.rename(&temporary, path)?;
        self.sync_dir(path.parent().unwrap_or(Path::new("/")))
    }

    fn create_dir_all(&self, _path: &Path) -> io::Result<()> {
        self.alive().map(drop)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if !self.alive()?.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(Change::Remove(path.to_owned()))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.alive()?.names.keys().filter(|path| path.parent() == Some(dir)).cloned().collect())
    }

    fn size(&self, path: &Path) -> io::Result<Option<u64>> {
        Ok(self.alive()?.names.get(path).map(|contents| locked(contents).bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In how many of 100 crashes a file survives completely that was written with these syncs.
    fn survives(sync: bool, sync_dir: bool) -> usize {
        let whole = |seed: u64| {
            let files = SimFiles::default();
            let mut file = files.create(Path::new("/d/new.tmp")).expect("created");
            file.write_all(&[7; 4_096]).expect("written");
            if sync {
                file.sync().expect("synced");
            }
            files.rename(Path::new("/d/new.tmp"), Path::new("/d/file")).expect("renamed");
            if sync_dir {
                files.sync_dir(Path::new("/d")).expect("synced");
            }
            files.crash(seed);
            assert!(files.read(Path::new("/d/file")).is_err(), "an old life cannot read");
            files.again().read(Path::new("/d/file")).is_ok_and(|bytes| bytes.len() == 4_096)
        };
        (0..100).filter(|&seed| whole(seed)).count()
    }

    #[test]
    fn only_what_was_synced_twice_surely_survives() {
        assert_eq!(survives(true, true), 100);
        assert!((10..90).contains(&survives(true, false)));
        assert!(survives(false, true) < 90);
    }
}
