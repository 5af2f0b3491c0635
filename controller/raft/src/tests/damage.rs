//! Damaged files: two thousand random mutations of a good directory. Every mutation must be detected and refused with
//! the name of the file, including one in the last group of the log.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::offline::StoppedMember;
use atlas_log::sim::next;

/// The number of directories that are opened, each with one mutation.
const MUTATIONS: u64 = 2_000;

/// A directory as a member left it.
struct Good {
    dir: tempfile::TempDir,
    /// Every file of the log and the snapshots, with its content.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// The chain after each number of entries.
    chains: BTreeMap<u64, [u8; 32]>,
}

impl Good {
    /// Several segments, a snapshot and later entries. The member was shut down cleanly or lost power.
    async fn new(in_order: bool) -> Self {
        let (live, dir) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let log = Limits { first_segment_bytes: 32 << 10, segment_bytes: 64 << 10, ..Limits::default() };
        let options = Options { log, ..options(live.path()) };
        let (handle, service) = soon(crate::start(options, Env::system())).await.expect("starts");
        let mut chains = BTreeMap::new();
        for number in 1..=40 {
            soon(handle.propose(vec![set(number)])).await.expect("applied");
            if number == 15 {
                snapshot_and_purge(&handle).await;
            }
            let state = handle.applied();
            chains.insert(state.seq().0, state.chain());
        }
        if !in_order {
            copy(live.path(), dir.path());
        }
        drop(handle);
        soon(service.shutdown()).await;
        if in_order {
            copy(live.path(), dir.path());
        }
        let mut files = Vec::new();
        for folder in ["raft/log", "raft/snapshots"] {
            let found = fs::read_dir(dir.path().join(folder)).expect("a folder");
            let paths = found.map(|entry| entry.expect("readable").path());
            files.extend(paths.filter(|path| is_data(path)).map(|path| {
                let bytes = fs::read(&path).expect("readable");
                (path, bytes)
            }));
        }
        files.sort();
        assert!(files.len() >= 2, "a segment and a snapshot");
        Self { dir, files, chains }
    }

    /// Opens the directory and returns the number of entries in the state, or the whole chain of errors.
    fn open(&self) -> Result<u64, String> {
        let state = StoppedMember::open(self.dir.path()).and_then(|member| member.state());
        let state = state.map_err(|error| atlas_env::chain(&error))?;
        let seq = state.seq().0;
        assert_eq!(self.chains.get(&seq), Some(&state.chain()), "another state was read after {seq} entries");
        Ok(seq)
    }
}

fn is_data(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.starts_with("log-") || name.ends_with(".snap")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

/// Damages some bytes: flips one bit at the start of a block or anywhere, zeroes a block, or truncates.
fn mutate(bytes: &mut Vec<u8>, draw: &mut u64) {
    let written = bytes.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
    let blocks = written.div_ceil(4096) as u64;
    let at = |draw: &mut u64, len: usize| usize::try_from(next(draw)).unwrap_or(usize::MAX) % len;
    match next(draw) % 4 {
        0 => {
            let block = usize::try_from(next(draw) % blocks).expect("small") * 4096;
            let at = (block + at(draw, 120)).min(written - 1);
            bytes[at] ^= 1 << (next(draw) % 8);
        }
        1 => {
            let at = at(draw, written);
            bytes[at] ^= 1 << (next(draw) % 8);
        }
        2 => {
            let start = usize::try_from(next(draw) % blocks).expect("small") * 4096;
            let end = (start + 4096).min(bytes.len());
            bytes[start..end].fill(0);
        }
        _ => bytes.truncate(at(draw, written)),
    }
}

#[tokio::test]
async fn damage_is_refused_by_name_and_never_read() {
    let mut draw = 20_261_122;
    let (mut refused, mut whole) = (0, 0);
    for in_order in [true, false] {
        let good = Good::new(in_order).await;
        let all = good.open().expect("a good directory opens");
        for _ in 0..MUTATIONS / 2 {
            let (path, bytes) = &good.files[usize::try_from(next(&mut draw)).unwrap_or(0) % good.files.len()];
            let mut damaged = bytes.clone();
            mutate(&mut damaged, &mut draw);
            fs::write(path, &damaged).expect("written");
            match good.open() {
                Ok(seq) if seq == all => whole += 1,
                Ok(seq) => panic!("{seq} of {all} entries, ended in order: {in_order}, {}", path.display()),
                Err(text) => {
                    let named = good.files.iter().any(|(path, _)| {
                        text.contains(&*path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default())
                    });
                    assert!(named, "no file is named: {text}");
                    refused += 1;
                }
            }
            fs::write(path, bytes).expect("restored");
        }
        assert_eq!(good.open(), Ok(all));
    }
    assert!(refused > MUTATIONS / 4, "{refused} refused, {whole} unharmed");
}
