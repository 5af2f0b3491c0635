//! Memory: the page size that the system gives this process.

use nix::sys::prctl;

/// Takes no huge pages from now on, in this process and, until they ask otherwise, in those that it starts.
///
/// The allocator asks for them, and an idle program of 30 MiB then holds 60. Call it first in `main`. A system that cannot do this gives
/// huge pages as before, which costs memory and nothing else, so there is no error.
pub fn no_huge_pages() {
    let _ = prctl::set_thp_disable(true);
}

/// Undoes [`no_huge_pages`] for what this process runs: an agent's memory is the agent's business.
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
