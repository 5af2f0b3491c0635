//! `atlasctl`: the client of Atlas, which embeds a controller and a worker for `atlasctl dev`.

use std::process::ExitCode;

fn main() -> ExitCode {
    atlas_cli::main(atlas_env::Heap { keep_nothing: atlas_heap::keep_nothing, give_back: atlas_heap::give_back })
}
