//! Faults between a program and the C library: slow syncs, failing syncs, another wall clock; switched while the program runs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The library, which is built where it is needed: whoever built this has a C compiler to link with.
const SOURCE: &str = include_str!("shim.c");

/// What a program is told through the file that it maps.
#[derive(Debug)]
pub struct Shim {
    library: PathBuf,
    orders: PathBuf,
    file: File,
}

/// Builds the library in `folder`; an error says what the machine lacks.
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
    /// The shim of one program, whose orders lie in `orders`.
    pub fn new(library: &Path, orders: PathBuf) -> Self {
        fs::write(&orders, [0; 24]).expect("written");
        let file = File::options().write(true).open(&orders).expect("opened");
        Self { library: library.to_owned(), orders, file }
    }

    /// Puts the shim under a program that is to be started.
    pub fn apply(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("ATLAS_TEST_SHIM", &self.orders);
    }

    /// Every sync takes so much longer.
    pub fn slow_syncs(&self, by: Duration) {
        self.order(0, i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
    }

    /// So many syncs fail from now on.
    pub fn fail_syncs(&self, count: u32) {
        self.order(1, i64::from(count));
    }

    /// The wall clock is so far off, in milliseconds.
    pub fn shift_clock(&self, milliseconds: i64) {
        self.order(2, milliseconds);
    }

    /// No fault, but the clock stays where it is: setting it right would be another step.
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
