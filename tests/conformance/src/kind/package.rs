//! Packages: packing and unpacking.

use std::fs;
use std::path::Path;

use atlas_package::Limits;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::contract::only;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, members, unknown};

/// Packs a folder.
pub(super) fn pack(row: &Row) -> Judged {
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    for (name, content) in row.input.get("files_base64").into_iter().flat_map(members) {
        let path = crate::agents::inside(folder.path(), name)?;
        let failed = |error: std::io::Error| Stop::system("write a file of the row", error);
        fs::create_dir_all(path.parent().unwrap_or(folder.path())).map_err(failed)?;
        fs::write(path, bytes(content)?).map_err(failed)?;
    }
    // Atlas has no answer of a registry to compare, only whether the folder can be packed.
    if let Some(member) = unknown(&row.expect, &["ok", "error"]) {
        return Err(Stop::skip(format!("packages of which \"{member}\" is expected")));
    }
    let answer = match atlas_package::pack(folder.path()) {
        Ok(_) => json!({"ok": true}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
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
