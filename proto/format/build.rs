//! Compiles `atlas.state.v1` without `protoc`.

use std::error::Error;
use std::path::Path;

const FILES: [&str; 3] = ["atlas/state/v1/entry.proto", "atlas/state/v1/event.proto", "atlas/state/v1/snapshot.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("..");
    println!("cargo:rerun-if-changed={}", root.join("atlas/state").display());
    let files = protox::Compiler::new([root])?.include_imports(true).open_files(FILES)?.file_descriptor_set();
    prost_build::Config::new().compile_fds(files)?;
    Ok(())
}
