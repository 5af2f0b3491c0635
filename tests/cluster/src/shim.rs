//! Faults between a program and the C library: slow syncs, failing syncs and a shifted wall clock, switched while the
//! program runs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The source of the library. The tests build it, because a machine that can link Rust programs has a C compiler.
const SOURCE: &str = include_str!("shim.c");

/// Controls the faults of one program through a file that the program maps into memory.
#[derive(Debug)]
pub struct Shim {
    library: PathBuf,
    orders: PathBuf,
    file: File,
}

/// Builds the library in `folder`; an error names what the machine lacks.
pub fn build(folder: &Path) -> Result<PathBuf, String> {
    let source = folder.join("shim.c");
    let library = folder.join("shim.so");
    fs::write(&source, SOURCE).expect("written");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl").stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("no C compiler \"cc\": {error}"))?;
    if output.status.success() {
        return Ok(library);
    }
    Err(format!("\"cc\" refused: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

impl Shim {
    /// The shim of one program, with the control file `orders`.
    pub fn new(library: &Path, orders: PathBuf) -> Self {
        fs::write(&orders, [0; 24]).expect("written");
        let file = File::options().write(true).open(&orders).expect("opened");
        Self { library: library.to_owned(), orders, file }
    }

    /// Adds the shim to the command of a program.
    pub fn apply(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("ATLAS_TEST_SHIM", &self.orders);
    }

    /// Makes every sync take `by` longer.
    pub fn slow_syncs(&self, by: Duration) {
        self.order(0, i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
    }

    /// Makes the next `count` syncs fail.
    pub fn fail_syncs(&self, count: u32) {
        self.order(1, i64::from(count));
    }

    /// Shifts the wall clock by this many milliseconds.
    pub fn shift_clock(&self, milliseconds: i64) {
        self.order(2, milliseconds);
    }

    /// Ends all faults except the shift of the clock, because correcting it would be another step.
    pub fn heal(&self) {
        self.order(0, 0);
        self.order(1, 0);
    }

    fn order(&self, index: u64, value: i64) {
        self.file.write_all_at(&value.to_ne_bytes(), index * 8).expect("written");
    }
}

#[cfg(test)]
mod tests {
    use std::process::Output;

    use super::*;

    fn python(shim: &Shim, program: &str) -> Output {
        let mut command = Command::new("python3");
        command.args(["-c", program]);
        shim.apply(&mut command);
        command.output().expect("python3 starts")
    }

    #[test]
    fn syncs_fail_so_often_and_clocks_are_off_so_far() {
        let folder = tempfile::tempdir().expect("a folder");
        let library = build(folder.path()).expect("built");
        let shim = Shim::new(&library, folder.path().join("orders"));
        let syncs = "import os, tempfile\nfor _ in range(3):\n  with tempfile.TemporaryFile() as f:\n    try: os.fsync(f.fileno()); print('synced')\n    except OSError as error: print(error.errno)";
        shim.fail_syncs(2);
        assert_eq!(python(&shim, syncs).stdout, b"5\n5\nsynced\n");
        shim.shift_clock(-3_600_000);
        let now = "import time; print(int(time.time()))";
        let there: i64 = String::from_utf8_lossy(&python(&shim, now).stdout).trim().parse().expect("a number");
        let here = atlas_env::Env::system().clock.wall().0 / 1_000_000;
        assert!((3_590..3_700).contains(&(here - there)), "{here} {there}");
        shim.shift_clock(0);
        shim.slow_syncs(Duration::from_millis(100));
        let timed = "import os, tempfile, time\nwith tempfile.TemporaryFile() as f:\n  t = time.monotonic(); os.fsync(f.fileno()); print(time.monotonic() - t >= 0.1)";
        assert_eq!(python(&shim, timed).stdout, b"True\n");
    }
}
