//! A memory in a file, and knowledge in a folder. Each has one writer at a time, and belongs to one controller.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use atlas_env::{Env, chain};
use atlas_knowledge::memory::File;
use atlas_knowledge::{Acl, Entry, Folder, FolderError, Name, Query, list, search};
use atlas_library::{
    EntryPage, EntryQuery, EntryRecord, EntryUpdate, KnowledgeStore, MemoryStore, Reader, StoreAnswer, StoreError,
    StorePlace, WriteKey, Writer,
};
use futures::future::FutureExt as _;

/// A value on the disk, which one task uses at a time.
struct Single<T> {
    env: Env,
    value: Arc<Mutex<T>>,
    place: StorePlace,
}

impl<T: Send + 'static> Single<T> {
    fn new(env: &Env, path: &Path, value: T) -> Self {
        let place = StorePlace { name: path.display().to_string(), is_shared: false };
        Self { env: env.clone(), value: Arc::new(Mutex::new(value)), place }
    }

    /// Works with it on a thread that may block.
    fn with<R, E>(&self, work: impl FnOnce(&T) -> Result<R, E> + Send + 'static) -> StoreAnswer<'_, R>
    where
        R: Send + 'static,
        E: std::error::Error + Send + 'static,
    {
        let value = Arc::clone(&self.value);
        let locked = move || work(&value.lock().unwrap_or_else(PoisonError::into_inner));
        async move {
            match self.env.spawn_blocking("store", locked).join().await {
                Ok(done) => done.map_err(|error| StoreError::Outside(chain(&error))),
                Err(_) => Err(StoreError::Outside(format!("{} could not be used", self.place.name))),
            }
        }
        .boxed()
    }
}

/// A memory in a file.
pub(crate) struct FileMemory(Single<File>);

impl FileMemory {
    pub(crate) fn new(env: &Env, path: &Path) -> Self {
        Self(Single::new(env, path, File::new(path.to_owned())))
    }
}

impl MemoryStore for FileMemory {
    fn place(&self) -> &StorePlace {
        &self.0.place
    }

    fn read(&self) -> StoreAnswer<'_, String> {
        self.0.with(File::read)
    }

    fn write<'a>(&'a self, text: &'a str, replaces: bool, _: WriteKey) -> StoreAnswer<'a, ()> {
        let text = text.to_owned();
        self.0.with(move |file| if replaces { file.write(&text) } else { file.append(&text) })
    }
}

/// Knowledge in a folder.
pub(crate) struct FolderKnowledge(Single<Folder>);

impl FolderKnowledge {
    pub(crate) fn new(env: &Env, path: &Path) -> Self {
        Self(Single::new(env, path, Folder::new(path.to_owned())))
    }

    fn put(&self, entry: &Entry) -> StoreAnswer<'_, EntryRecord> {
        let entry = entry.clone();
        self.0.with(move |folder| folder.put(&entry).map(|()| entry.into()))
    }
}

impl KnowledgeStore for FolderKnowledge {
    fn place(&self) -> Option<&StorePlace> {
        Some(&self.0.place)
    }

    fn search<'a>(&'a self, _: Reader<'a>, wanted: EntryQuery<'a>) -> StoreAnswer<'a, Vec<EntryRecord>> {
        let EntryQuery { text, domains, tags, limit } = wanted;
        let (text, tags) = (text.to_owned(), tags.to_vec());
        let everything = Acl::everything();
        let acl = match domains {
            Some(domains) => Acl { read_domains: domains.to_vec(), ..everything },
            None => everything,
        };
        self.0.with(move |folder| {
            let query = Query { text: &text, domain: None, tags: &tags, acl: &acl };
            Ok::<_, FolderError>(kept(search(folder.entries()?, &query, limit)))
        })
    }

    fn list<'a>(&'a self, _: Reader<'a>, page: EntryPage<'a>) -> StoreAnswer<'a, Vec<EntryRecord>> {
        let EntryPage { domain, limit, offset } = page;
        let domain = domain.map(str::to_owned);
        self.0.with(move |folder| {
            let entries = folder.entries()?;
            Ok::<_, FolderError>(kept(list(entries, domain.as_deref(), &Acl::everything(), limit, offset)))
        })
    }

    fn get<'a>(&'a self, _: Reader<'a>, id: &'a Name) -> StoreAnswer<'a, Option<EntryRecord>> {
        let id = id.clone();
        self.0.with(move |folder| Ok::<_, FolderError>(folder.get(id.as_str())?.map(EntryRecord::from)))
    }

    fn create<'a>(&'a self, _: Writer<'a>, entry: &'a Entry, _: bool) -> StoreAnswer<'a, EntryRecord> {
        self.put(entry)
    }

    fn update<'a>(&'a self, _: Writer<'a>, update: EntryUpdate<'a>) -> StoreAnswer<'a, EntryRecord> {
        self.put(update.new)
    }

    fn delete<'a>(&'a self, _: Writer<'a>, id: &'a Name) -> StoreAnswer<'a, bool> {
        let id = id.clone();
        self.0.with(move |folder| folder.remove(id.as_str()))
    }
}

fn kept(entries: Vec<Entry>) -> Vec<EntryRecord> {
    entries.into_iter().map(EntryRecord::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn appends_at_once_are_all_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let memory = FileMemory::new(&Env::system(), &folder.path().join("a/memory.txt"));
        let lines: Vec<String> = (0..50).map(|line| format!("line {line}")).collect();
        let writes = lines.iter().map(|line| memory.write(line, false, WriteKey::random(0)));
        for done in futures::future::join_all(writes).await {
            done.expect("written");
        }
        let text = memory.read().await.expect("read");
        assert_eq!(text.lines().count(), 50);
        assert!(lines.iter().all(|line| text.lines().any(|found| found == line)), "{text}");
        memory.write("short", true, WriteKey::random(0)).await.expect("written");
        assert_eq!(memory.read().await.expect("read"), "short");
    }

    #[tokio::test]
    async fn what_cannot_be_used_says_where() {
        let folder = tempfile::tempdir().expect("a folder");
        let memory = FileMemory::new(&Env::system(), folder.path());
        let error = memory.read().await.expect_err("a folder is no file").to_string();
        assert!(error.starts_with("could not read the memory "), "{error}");
    }
}
