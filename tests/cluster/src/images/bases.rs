//! The images that the Dockerfile builds on, made of what is on this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use atlas_engine::{Engine, SHELL};

use super::{DOCKERFILE, write};
use crate::program::program;

/// The arguments of the Dockerfile that name them.
pub(super) const NAMES: [(&str, &str); 3] =
    [("BASE", "base:1"), ("WORKER_BASE", "base:1"), ("PYTHON_BASE", "python:1")];

/// The processor of this machine, as engines and as compilers name it.
pub(super) const PROCESSOR: (&str, &str) =
    if cfg!(target_arch = "aarch64") { ("arm64", "aarch64") } else { ("amd64", "x86_64") };

/// The public authorities in the compiler's image, as far as this test needs them.
pub(super) const AUTHORITIES: &str = "the authorities of the compiler's image\n";

/// Where Python and its library are, and the libraries of its modules.
const WHERE: &str = "import os, sys, sysconfig; print(os.path.realpath(sys.executable), sysconfig.get_path('stdlib'))";

pub(super) fn make(engine: &Engine) {
    let folder = |name: &str| engine.folder().join(name);
    copy_libraries(&program("atlas-controller"), &folder("base"));
    engine.make_image(&folder("base"), "base:1");

    let target = format!("target/{}-unknown-linux-gnu", PROCESSOR.1);
    let cargo = format!("#!/bin/sh\nset -e\nmkdir -p {target}\ncp -r bin {target}/dist\n");
    let compiler = folder("compiler");
    fs::create_dir(&compiler).expect("the folder is writable");
    write(&compiler.join("cargo"), &cargo, 0o755);
    write(&compiler.join("ca-certificates.crt"), AUTHORITIES, 0o644);
    let file = format!("FROM {SHELL}\nCOPY cargo /bin/\nCOPY ca-certificates.crt /etc/ssl/certs/\n");
    built(engine, &compiler, &file, compiler_name());

    let python = folder("python");
    copy_python(&python);
    copy_libraries(&program("atlas-worker"), &python);
    fs::create_dir_all(python.join("bin")).expect("the folder is writable");
    fs::create_dir_all(python.join("etc")).expect("the folder is writable");
    fs::copy(folder("shell/bin/busybox"), python.join("bin/sh")).expect("a copy");
    engine.make_image(&python, "python:0");
    let file = "FROM python:0\nENV PATH=/usr/local/bin:/bin\n";
    let empty = folder("empty");
    fs::create_dir(&empty).expect("the folder is writable");
    built(engine, &empty, file, "python:1");
}

/// Builds an image of a folder.
fn built(engine: &Engine, folder: &Path, file: &str, name: &str) {
    write(&folder.join("Dockerfile"), file, 0o644);
    engine.done(&["build", "--quiet", "--tag", name, &folder.display().to_string()]);
}

/// The name of the image with the compiler.
fn compiler_name() -> &'static str {
    let image = DOCKERFILE.lines().find_map(|line| {
        let (_, image) = line.strip_prefix("FROM ")?.strip_suffix(" AS build")?.rsplit_once(' ')?;
        Some(image)
    });
    image.expect("the Dockerfile has a stage that builds")
}

/// Copies this machine's Python to the place that it has in images, without packages.
fn copy_python(root: &Path) {
    let output = Command::new("python3").args(["-c", WHERE]).output().expect("the tests need Python");
    let found = String::from_utf8(output.stdout).expect("text");
    let (executable, library) = found.trim().rsplit_once(' ').expect("two paths");
    let local = root.join("usr/local");
    for place in ["bin", "lib"] {
        fs::create_dir_all(local.join(place)).expect("the folder is writable");
    }
    fs::copy(executable, local.join("bin/python3")).expect("a copy");
    let name = Path::new(library).file_name().expect("a folder");
    let copied = local.join("lib").join(name);
    let mut tar = Command::new("sh");
    let script = "mkdir \"$2\" && tar -C \"$1\" --exclude=./site-packages --exclude=./test --exclude=__pycache__ -cf - . | tar -C \"$2\" -xf -";
    let done = tar.args(["-c", script, "sh", library]).arg(&copied).status().expect("a shell");
    assert!(done.success(), "{library} is copied");
    copy_libraries(Path::new(executable), root);
    for module in fs::read_dir(copied.join("lib-dynload")).expect("modules in C").flatten() {
        copy_libraries(&module.path(), root);
    }
    symlink("python3", local.join("bin/python")).expect("a link");
}

/// Copies the libraries that a program of this machine needs, with the loader, to their places under a root.
fn copy_libraries(program: &Path, root: &Path) {
    let listed = Command::new("ldd").arg(program).output().expect("ldd comes with the C library");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from) {
        let place = root.join(library.strip_prefix("/").expect("it starts there"));
        fs::create_dir_all(place.parent().expect("a folder")).expect("the folder is writable");
        fs::copy(&library, place).expect("a copy");
    }
}
