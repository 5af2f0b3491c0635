//! Packages: packing and unpacking.

use std::fs;
use std::io;
use std::path::Path;

use atlas_package::{FolderRegistry, Limits, Manifest, Mismatch, Package, REGISTRY_SEARCH_LIMIT};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::contract::only;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, members, text};

/// The time at which the packages of the rows are published.
const PUBLISHED_AT: &str = "2026-01-01T00:00:00+00:00";

/// Packs a folder.
pub(super) fn pack(row: &Row) -> Judged {
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    for (name, content) in row.input.get("files_base64").into_iter().flat_map(members) {
        let path = crate::agents::inside(folder.path(), name)?;
        let failed = |error: io::Error| Stop::system("write a file of the row", error);
        fs::create_dir_all(path.parent().unwrap_or(folder.path())).map_err(failed)?;
        fs::write(path, bytes(content)?).map_err(failed)?;
    }
    let answer = match atlas_package::pack(folder.path()) {
        Ok(package) => packed(&package, &row.expect)?,
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

/// The members of an archive and of its manifest that the row expects.
fn packed(package: &Package, expect: &Value) -> Result<Value, Stop> {
    let entries = listed(&package.bytes).map_err(|error| Stop::system("list the archive", error))?;
    let order: Vec<&String> = entries.iter().map(|(name, _)| name).collect();
    let mut sorted: Vec<Value> = entries.iter().map(|(name, size)| json!({"name": name, "size": size})).collect();
    sorted.sort_by(|left, right| left["name"].as_str().cmp(&right["name"].as_str()));
    let manifest = Manifest::of(package, PUBLISHED_AT);
    let mut metadata = manifest.to_json();
    let mut keys: Vec<String> = members(&metadata).map(|(name, _)| name.clone()).collect();
    keys.sort();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|name, _| expect["metadata"].get(name).is_some());
    }
    let matches = manifest.check(&package.bytes);
    let mut answer = json!({
        "ok": true,
        "entries": sorted,
        "entry_order": order,
        "metadata": metadata,
        "metadata_keys": keys,
        "sha256_is_of_the_archive": !matches!(matches, Err(Mismatch::Digest { .. })),
        "size_bytes_is_the_archive_length": !matches!(matches, Err(Mismatch::Size { .. })),
    });
    if let Some(answer) = answer.as_object_mut() {
        answer.retain(|name, _| expect.get(name).is_some());
    }
    Ok(answer)
}

/// The names and sizes in an archive, in their order.
fn listed(archive: &[u8]) -> io::Result<Vec<(String, u64)>> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let entry = |entry: io::Result<tar::Entry<'_, _>>| {
        let entry = entry?;
        Ok((entry.path()?.display().to_string(), entry.size()))
    };
    archive.entries()?.map(entry).collect()
}

/// Unpacks an archive.
pub(super) fn unpack(row: &Row) -> Judged {
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let target = folder.path().join("target");
    let unpacked = atlas_package::unpack(&bytes(&row.input["archive_base64"])?, &target, &Limits::default());
    let mut answer = match unpacked {
        Ok(contract) => json!({
            "ok": true,
            "name": contract.name.as_str(),
            "version": contract.version.to_string(),
            "files": files(&target)?,
        }),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    let others = fs::read_dir(folder.path()).map_err(|error| Stop::system("read a folder", error))?;
    answer["nothing_outside"] = json!(others.flatten().all(|entry| entry.path() == target));
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

/// The published packages of a row, whose archives are their names and versions as text. The folder is removed with the first value.
fn registry(row: &Row) -> Result<(TempDir, FolderRegistry), Stop> {
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let registry = FolderRegistry::new(folder.path());
    for package in items(&row.input, "published") {
        let mut manifest = json!({"sha256": "00", "published_at": PUBLISHED_AT, "size_bytes": 3});
        for (name, value) in members(package) {
            manifest[name] = value.clone();
        }
        let manifest = Manifest::parse(manifest.to_string().as_bytes());
        let manifest = manifest.map_err(|error| Stop::fail(format!("{package}: {error}")))?;
        let archive = manifest.to_string();
        registry.publish(&manifest, archive.as_bytes()).map_err(|error| Stop::fail(error.to_string()))?;
    }
    Ok((folder, registry))
}

/// The files of a registry, and the manifests that the row expects as `manifest_echo_1_0_0`.
pub(super) fn registry_layout(row: &Row) -> Judged {
    let (folder, registry) = registry(row)?;
    let mut answer = json!({"files": files(folder.path())?});
    for package in items(&row.input, "published") {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let member = format!("manifest_{name}_{}", version.replace('.', "_"));
        if row.expect.get(&member).is_some() {
            let manifest = registry.manifest(name, version).map_err(|error| Stop::fail(error.to_string()))?;
            answer[member] = manifest.map_or(Value::Null, |manifest| manifest.to_json());
        }
    }
    compare(&row.expect, &answer, &Captures::new())
}

pub(super) fn registry_search(row: &Row) -> Judged {
    let limit = row.input.get("limit").and_then(Value::as_i64);
    let limit = limit.map_or(REGISTRY_SEARCH_LIMIT, |limit| usize::try_from(limit).unwrap_or(0));
    let (_folder, registry) = registry(row)?;
    let found = registry.search(row.text("query"), limit).map_err(|error| Stop::fail(error.to_string()))?;
    let results: Vec<String> = found.iter().map(ToString::to_string).collect();
    compare(&row.expect, &json!({ "results": results }), &Captures::new())
}

pub(super) fn registry_versions(row: &Row) -> Judged {
    let (_folder, registry) = registry(row)?;
    let versions = registry.versions(row.text("name")).map_err(|error| Stop::fail(error.to_string()))?;
    compare(&row.expect, &json!({ "versions": versions }), &Captures::new())
}

pub(super) fn registry_download(row: &Row) -> Judged {
    let (_folder, registry) = registry(row)?;
    let archive = registry.archive(row.text("name"), row.text("version"));
    let archive = archive.map_err(|error| Stop::fail(error.to_string()))?;
    let mut answer = json!({"found": archive.is_some()});
    if row.expect.get("data").is_some() {
        answer["data"] = archive.map_or(Value::Null, |archive| String::from_utf8_lossy(&archive).into());
    }
    compare(&row.expect, &answer, &Captures::new())
}

/// The files in a folder by their relative paths, sorted.
pub(super) fn files(folder: &Path) -> Result<Value, Stop> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).map_err(|error| Stop::system("read a folder", error))?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap_or(&path).display().to_string());
            }
        }
    }
    found.sort();
    Ok(json!(found))
}

fn bytes(text: &Value) -> Result<Vec<u8>, Stop> {
    let text = text.as_str().unwrap_or_default();
    BASE64_STANDARD.decode(text).map_err(|error| Stop::system("read the bytes of the row", error))
}
