//! `cargo xtask image`: builds the images with the machine's container engine, and writes what each program is made of.

#[cfg(test)]
mod compile;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::bill;
use crate::command::{root, run, target_dir};

/// The Dockerfile, relative to the workspace root.
const DOCKERFILE: &str = "deploy/images/Dockerfile";

/// The images by target of the Dockerfile, and the program in each.
const IMAGES: [(&str, &str); 5] = [
    ("controller", "atlas-controller"),
    ("worker", "atlas-worker"),
    ("worker-python", "atlas-worker"),
    ("operator", "atlas-operator"),
    ("atlasctl", "atlasctl"),
];

/// Options of `cargo xtask image`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names the images: REGISTRY/atlas-controller, and so on.
    #[arg(long, value_name = "REGISTRY", default_value = "atlas")]
    registry: String,
    /// The tag of the images.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    tag: String,
    /// Only these targets of the Dockerfile; all by default.
    #[arg(long = "only", value_name = "TARGET", value_parser = clap::builder::PossibleValuesParser::new(IMAGES.map(|(target, _)| target)))]
    only: Vec<String>,
    /// Platforms such as linux/amd64,linux/arm64; that of the engine by default. Several need buildx, and are pushed.
    #[arg(long, value_name = "PLATFORMS")]
    platform: Option<String>,
    /// The image under the controller, the operator and atlasctl, with the C library of Debian 12.
    #[arg(long, value_name = "IMAGE")]
    base: Option<String>,
    /// The image under the worker, with a shell for agents that are scripts.
    #[arg(long, value_name = "IMAGE")]
    worker_base: Option<String>,
    /// The image under the worker with Python.
    #[arg(long, value_name = "IMAGE")]
    python_base: Option<String>,
    /// Only writes the bills of materials.
    #[arg(long)]
    bills_only: bool,
}

pub(crate) fn run_all(options: &Options) -> Result<()> {
    let folder = target_dir().join("images");
    fs::create_dir_all(&folder).with_context(|| format!("could not make the folder {}", folder.display()))?;
    let metadata = bill::metadata()?;
    for (target, program) in IMAGES {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == target) {
            continue;
        }
        let file = folder.join(format!("{target}.cdx.json"));
        fs::write(&file, bill::of(&metadata, program)?)
            .with_context(|| format!("could not write {}", file.display()))?;
        eprintln!("xtask: {} lists what {program} is made of", file.display());
        if !options.bills_only {
            run(&mut build(options, target))?;
        }
    }
    Ok(())
}

/// The call of the engine's client.
fn build(options: &Options, target: &str) -> Command {
    let mut docker = Command::new("docker");
    let several = options.platform.as_ref().is_some_and(|platforms| platforms.contains(','));
    docker.args(if several { ["buildx", "build"].as_slice() } else { &["build"] });
    docker.args(["--file", DOCKERFILE, "--target", target, "--tag", &name(options, target)]);
    if let Some(platform) = &options.platform {
        docker.args(["--platform", platform]);
    }
    if several {
        docker.arg("--push");
    }
    let bases = [("BASE", &options.base), ("WORKER_BASE", &options.worker_base), ("PYTHON_BASE", &options.python_base)];
    for (name, base) in bases {
        if let Some(base) = base {
            docker.args(["--build-arg", &format!("{name}={base}")]);
        }
    }
    // Only BuildKit tells the Dockerfile for which processor it builds; engines before 23 use it if they are told to.
    docker.arg(".").env("DOCKER_BUILDKIT", "1").current_dir(root());
    docker
}

fn name(options: &Options, target: &str) -> String {
    let image = if target == "atlasctl" { target.to_owned() } else { format!("atlas-{target}") };
    format!("{}/{image}:{}", options.registry, options.tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_called_for_each_image() {
        let call = |platform: Option<&str>, base: Option<&str>, target: &str| {
            let options = Options {
                registry: "registry.example/team".to_owned(),
                tag: "1.0.0".to_owned(),
                only: Vec::new(),
                platform: platform.map(str::to_owned),
                base: base.map(str::to_owned),
                worker_base: base.map(|_| "debian:12".to_owned()),
                python_base: None,
                bills_only: false,
            };
            let docker = build(&options, target);
            docker.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            call(None, None, "atlasctl"),
            "build --file deploy/images/Dockerfile --target atlasctl --tag registry.example/team/atlasctl:1.0.0 ."
        );
        assert_eq!(
            call(Some("linux/amd64,linux/arm64"), Some("cc:12"), "worker"),
            "buildx build --file deploy/images/Dockerfile --target worker --tag registry.example/team/atlas-worker:1.0.0 --platform linux/amd64,linux/arm64 --push --build-arg BASE=cc:12 --build-arg WORKER_BASE=debian:12 ."
        );
    }

    #[test]
    fn every_target_is_in_the_dockerfile() {
        let file = include_str!("../../images/Dockerfile");
        for (target, program) in IMAGES {
            assert!(
                file.lines().any(|line| line.starts_with("FROM ") && line.ends_with(&format!(" AS {target}"))),
                "{target}"
            );
            assert!(file.contains(&format!("ENTRYPOINT [\"/usr/local/bin/{program}\"]")), "{program}");
        }
    }
}
