//! `atlasctl`: the client of Atlas, which embeds a controller and a worker for `atlasctl dev`.

use std::process::ExitCode;

fn main() -> ExitCode {
    atlas_cli::main(atlas_heap::give_back)
}
