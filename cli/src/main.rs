//! `atlasctl`: the client of Atlas, which embeds a controller and a worker for `atlasctl dev`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    atlas_cli::main()
}
