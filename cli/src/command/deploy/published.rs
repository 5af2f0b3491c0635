//! Versions are immutable: what is deployed under a version stays, unless somebody says `--replace`.

use atlas_api::types::Agent;
use atlas_package::Package;
use atlas_types::Digest;

use crate::answers;
use crate::client::Client;
use crate::exit::Exit;
use crate::failure::Failure;

/// Refuses packages whose versions are deployed with other files. A package may replace the one beside it, which the same run uploaded.
pub(crate) async fn immutable(
    client: &Client,
    packages: &mut dyn Iterator<Item = (&Package, Option<Digest>)>,
) -> Result<(), Failure> {
    for (package, ours) in packages {
        let (name, version) = (package.contract.name.as_str(), package.contract.version.to_string());
        let known: Agent = match client.get(&["api", "agents", name, "versions", &version], &[]).await {
            Ok(known) => answers::read(&known)?,
            Err(failure) if failure.exit == Exit::NotFound => continue,
            Err(failure) => return Err(failure),
        };
        let is_ours = ours.is_some_and(|ours| ours.to_string() == known.digest);
        if known.digest != package.digest.to_string() && !is_ours {
            return Err(taken(package, &known.digest));
        }
    }
    Ok(())
}

/// The refusal of a package whose version has another one.
pub(crate) fn taken(package: &Package, digest: &str) -> Failure {
    let (name, version) = (&package.contract.name, package.contract.version);
    let message = format!(
        "the version {version} of \"{name}\" is deployed with the package {digest}, this package is {}",
        package.digest
    );
    Failure::new("E1127", Exit::Conflict, message).with_next("raise its version, or replace the package: --replace")
}
