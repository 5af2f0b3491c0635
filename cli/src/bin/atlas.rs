//! `atlas`: the command line of the source system, for its users and their scripts.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    atlas_cli::source_main()
}
