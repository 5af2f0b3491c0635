//! The page size of this process's memory.

use nix::sys::prctl;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_undone() {
        no_huge_pages();
        assert_eq!(prctl::get_thp_disable(), Ok(true));
        huge_pages_as_the_system_does();
        assert_eq!(prctl::get_thp_disable(), Ok(false));
    }
}
