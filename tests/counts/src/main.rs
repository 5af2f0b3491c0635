//! What a job costs, counted: allocations, bytes of them, and entries of the log. Times depend on the machine and on what else runs there;
//! counts do not, so they are tests (`tests/budgets.rs`), and `cargo xtask bench` measures times.
//!
//! `atlas-counts NAME` prints one line. It is a program and no test, because a worker starts its own program again for each agent.

mod allocator;
mod client;
mod cluster;
mod count;

use std::process::ExitCode;

fn main() -> ExitCode {
    atlas_dev::run_if_asked();
    let name = std::env::args().nth(1).unwrap_or_default();
    match count::count(&name) {
        Ok(cost) => {
            let mut out = std::io::stdout();
            let written = std::io::Write::write_all(&mut out, format!("{cost}\n").as_bytes());
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            let _closed = std::io::Write::write_all(&mut std::io::stderr(), format!("{error:?}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}
