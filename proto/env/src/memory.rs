//! The memory of this process: the size of its pages, and giving back what is used during the start and not later.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use nix::sys::mman::{MmapAdvise, madvise};
use nix::sys::prctl;

use crate::{Env, Task};

/// How long after its start a program gives memory back. Searches for other programs have ended by then.
const START_MAX: Duration = Duration::from_secs(2);

/// What [`know_start_memory`] found out.
static BEGIN: OnceLock<Begin> = OnceLock::new();

/// The allocator of a program.
#[derive(Debug, Clone, Copy)]
pub struct Heap {
    /// From now on, free memory is given back to the system at once.
    pub keep_nothing: fn(),
    /// Gives free memory back to the system. From now on, free memory is kept for a while.
    pub give_back: fn(),
}

impl Heap {
    /// That of the system, for programs without one of their own.
    pub const SYSTEM: Self = Self { keep_nothing: || {}, give_back: || {} };
}

/// What is needed later to give memory back.
struct Begin {
    heap: Heap,
    /// The mappings of the program and of the libraries it is linked with, which stay as long as the process runs.
    files: Vec<Range<usize>>,
}

/// Disables transparent huge pages in this process, and in its children unless they enable them again.
///
/// The allocator requests huge pages, with which an idle program uses 60 MiB instead of 30. Call this first in `main`.
/// It returns no error, because a system that does not support it only uses more memory.
pub fn no_huge_pages() {
    let _ = prctl::set_thp_disable(true);
}

/// Undoes [`no_huge_pages`] before this process executes an agent, so that agents have the system's default.
pub fn huge_pages_as_the_system_does() {
    let _ = prctl::set_thp_disable(false);
}

/// Prepares [`Env::free_start_memory`]. Call this in `main`, before a thread is started.
pub fn know_start_memory(heap: Heap) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    // Only `main` calls this, once.
    let _ = BEGIN.set(Begin { heap, files: maps.lines().filter_map(mapping).collect() });
}

/// Gives free memory of the system's allocator back. Libraries in C use that one in any case.
fn trim_system_heap() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a call of C")]
    // SAFETY: the C library's manual says that threads may call this beside each other.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

impl Env {
    /// Until [`Env::free_start_memory`], free memory of the heap is given back at once. Call this when a start begins that ends with that call: it
    /// costs calls of the kernel, so programs that never do the latter should not do this either.
    pub fn keep_no_free_memory(&self) {
        if let Some(begin) = BEGIN.get() {
            (begin.heap.keep_nothing)();
        }
    }

    /// Gives memory back a while after the call: free memory of the heap, and pages of the program itself, most of which are used during the
    /// start and not later. Call this at the end of a start.
    pub fn free_start_memory(&self) -> Task<()> {
        let env = self.clone();
        self.spawn("free memory of the start", async move {
            env.clock.sleep(START_MAX).await;
            // A failure leaves the memory as it is.
            let _ = env.spawn_blocking("free memory of the start", free_start_memory).join().await;
        })
    }
}

fn free_start_memory() {
    trim_system_heap();
    let Some(begin) = BEGIN.get() else { return };
    (begin.heap.give_back)();
    release(&begin.files);
}

/// Takes the pages of these files out of this process. Those that are used again are mapped again, out of the system's cache.
///
/// A page that is read once stays in a process for ever, and the kernel maps 16 pages around each one that is touched: after a start that is
/// two thirds of the program, of which an idle process needs a third.
fn release(files: &[Range<usize>]) {
    let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for range in unchanged(&mappings).into_iter().filter(|range| files.contains(range)) {
        let start = std::ptr::with_exposed_provenance_mut(range.start);
        let Some(start) = std::ptr::NonNull::new(start) else { continue };
        #[expect(unsafe_code, reason = "the compiler cannot know that the content of the pages stays the same")]
        // SAFETY: these mappings of files are private and read-only, they are there since before `main`, and no page of them was written to,
        // such as by relocations. So each page has the content of the file, with which the kernel fills it again when it is touched.
        let _ = unsafe { madvise(start, range.len(), MmapAdvise::MADV_DONTNEED) };
    }
}

/// The mappings of files whose pages are as the file is, from the text of `/proc/self/smaps`.
fn unchanged(smaps: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut is_found = false;
    for line in smaps.lines() {
        if is_head(line) {
            let range = mapping(line);
            is_found = range.is_some();
            found.extend(range);
        } else if is_found && changed(line) {
            found.pop();
            is_found = false;
        }
    }
    found
}

/// Whether a line begins a mapping. The others are counts, whose names begin with a capital letter.
fn is_head(line: &str) -> bool {
    line.bytes().next().is_some_and(|first| first.is_ascii_hexdigit() && !first.is_ascii_uppercase())
}

/// The addresses of a private mapping of a file without the right to write, from its line in `/proc/self/maps`:
/// `55d0c000-55d0f000 r-xp 00002000 fe:00 1234      /usr/bin/atlasctl`.
fn mapping(line: &str) -> Option<Range<usize>> {
    let (start, rest) = line.split_once('-')?;
    let (end, rest) = rest.split_once(' ')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    let is_unwritable = rest.starts_with("r--p ") || rest.starts_with("r-xp ");
    (is_unwritable && rest.contains('/')).then_some(start..end)
}

/// Whether a line of a mapping says that pages of it are no longer those of its file.
fn changed(line: &str) -> bool {
    let count = line.strip_prefix("Anonymous:").or_else(|| line.strip_prefix("Swap:"));
    count.is_some_and(|count| count.trim() != "0 kB")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_choice_is_undone() {
        no_huge_pages();
        assert_eq!(prctl::get_thp_disable(), Ok(true));
        huge_pages_as_the_system_does();
        assert_eq!(prctl::get_thp_disable(), Ok(false));
    }

    #[test]
    fn only_what_is_as_in_the_file_can_be_read_from_it_again() {
        let smaps = "\
1000-3000 r--p 00000000 fe:00 9                          /opt/my bin/atlasctl
Rss:                   8 kB
Anonymous:             0 kB
Swap:                  0 kB
3000-9000 r-xp 00002000 fe:00 9                          /opt/my bin/atlasctl
Anonymous:             0 kB
9000-a000 r--p 00008000 fe:00 9                          /opt/my bin/atlasctl
Anonymous:             4 kB
Swap:                  0 kB
a000-b000 r--p 00009000 fe:00 9                          /opt/my bin/atlasctl
Anonymous:             0 kB
Swap:                  4 kB
b000-c000 rw-p 0000a000 fe:00 9                          /opt/my bin/atlasctl
Anonymous:             0 kB
c000-d000 r--s 0000a000 fe:00 9                          /opt/my bin/atlasctl
Anonymous:             0 kB
d000-e000 r-xp 00000000 fe:00 8                          /lib/libc.so.6
Anonymous:             0 kB
e000-f000 rw-p 00000000 00:00 0                          [heap]
Anonymous:             4 kB
ffff0000-ffff1000 r-xp 00000000 00:00 0                  [vdso]
VmFlags: rd ex mr mw me de sd";
        assert_eq!(unchanged(smaps), [0x1000..0x3000, 0x3000..0x9000, 0xd000..0xe000]);
    }

    #[test]
    fn a_program_that_gave_back_its_pages_still_runs() {
        const ALONE: &str = "ATLAS_ENV_TEST_ALONE";
        if std::env::var_os(ALONE).is_none() {
            // Other tests would map pages of this process meanwhile.
            let mut again = Command::new(std::env::current_exe().expect("this program"));
            again.args(["--exact", "memory::tests::a_program_that_gave_back_its_pages_still_runs", "--nocapture"]);
            let ended = again.env(ALONE, "1").status().expect("started");
            return assert!(ended.success(), "{ended}");
        }
        let mapped = || {
            let status = std::fs::read_to_string("/proc/self/status").ok()?;
            let files = status.lines().find_map(|line| line.strip_prefix("RssFile:"))?;
            files.trim().trim_end_matches(" kB").parse::<usize>().ok().filter(|&files| files > 0)
        };
        know_start_memory(Heap::SYSTEM);
        let Some(before) = mapped() else {
            return atlas_notice::skip("this kernel does not tell how many pages of files a process has");
        };
        free_start_memory();
        let after = mapped().expect("told before");
        assert!(after < before, "{after} KiB of files, {before} KiB before");
    }
}
