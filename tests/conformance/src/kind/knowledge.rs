//! Knowledge and shared memory: files of entries, search, access lists, and the text that all agents share.

use std::fs;

use atlas_knowledge::document::Document;
use atlas_knowledge::{
    Acl, Draft, Entry, EntryChange, Folder, KnowledgeAccess, LIST_LIMIT, Name, ProtectedDomains, Query, SEARCH_LIMIT,
};
use atlas_knowledge::{list as page, memory as shared, search as matching};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::contract::only;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, members, text, unknown};

/// The time of everything that is stored.
const NOW: &str = "2026-01-01T00:00:00+00:00";

fn judged(row: &Row, answer: &Value) -> Judged {
    compare(&row.expect, answer, &Captures::new())
}

fn system(error: impl std::error::Error) -> Stop {
    Stop::system("keep the entries of the row", error)
}

/// The knowledge of a row in a folder that is removed with it.
struct Knowledge {
    dir: TempDir,
    folder: Folder,
}

impl Knowledge {
    fn of(row: &Row) -> Result<Self, Stop> {
        let dir = tempfile::tempdir().map_err(system)?;
        let knowledge = Self { folder: Folder::new(dir.path()), dir };
        for entry in items(&row.input, "entries") {
            knowledge.store(draft(entry))?;
        }
        Ok(knowledge)
    }

    fn store(&self, draft: Draft) -> Result<Entry, Stop> {
        self.as_operator(&Acl::everything()).store(draft, NOW, 0x5eed).map_err(system)
    }

    fn as_operator<'a>(&'a self, acl: &'a Acl) -> KnowledgeAccess<'a> {
        KnowledgeAccess { folder: &self.folder, acl }
    }

    fn entries(&self) -> Result<Vec<Entry>, Stop> {
        self.folder.entries().map_err(system)
    }
}

fn draft(entry: &Value) -> Draft {
    let domain = entry.get("domain").and_then(Value::as_str).unwrap_or(atlas_knowledge::DEFAULT_DOMAIN);
    Draft {
        id: text(entry, "id").to_owned(),
        content: text(entry, "content").to_owned(),
        domain: domain.to_owned(),
        tags: texts(entry, "tags").unwrap_or_default(),
        metadata: object(entry, "metadata").unwrap_or_default(),
    }
}

/// The texts of a list; none if there is no list.
fn texts(value: &Value, member: &str) -> Option<Vec<String>> {
    let list = value.get(member)?.as_array()?;
    Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn object(value: &Value, member: &str) -> Option<Map<String, Value>> {
    value.get(member)?.as_object().cloned()
}

fn count(row: &Row, member: &str, default: usize) -> usize {
    let number = row.input.get(member).and_then(Value::as_i64);
    number.map_or(default, |number| usize::try_from(number).unwrap_or(0))
}

fn ids<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Value {
    entries.into_iter().map(|entry| entry.id.as_str()).collect()
}

/// The ids in the order of the expected ones, if they are the same.
fn ids_in_any_order(entries: &[Entry], expect: &Value) -> Value {
    let mut found: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    let place = |id: &str| items(expect, "ids_any_order").position(|expected| expected == id);
    found.sort_by_key(|id| place(id).unwrap_or(usize::MAX));
    json!(found)
}

pub(super) fn parse(row: &Row) -> Judged {
    let Document { front_matter, body } = Document::read(row.text("text"));
    judged(row, &json!({"frontmatter": front_matter, "body": body}))
}

/// The files of the entries, and the parts of one of them.
pub(super) fn layout(row: &Row) -> Judged {
    let knowledge = Knowledge::of(row)?;
    let files = super::package::files(knowledge.dir.path())?;
    let mut answer = json!({ "files": files });
    for (name, part) in members(&row.expect) {
        let Some((id, what)) = name.split_once('_').filter(|(id, _)| Name::new(id).is_ok() && *id != "files") else {
            continue;
        };
        let path = items(&json!({ "files": files }), "files").find_map(|file| {
            let file = file.as_str()?;
            file.ends_with(&format!("/{id}.md")).then(|| knowledge.dir.path().join(file))
        });
        let file = path.map(fs::read_to_string).transpose().map_err(system)?.unwrap_or_default();
        let mut front_matter = Document::read(&file).front_matter;
        answer[name] = match what {
            "frontmatter_keys_in_order" => front_matter.keys().cloned().collect(),
            "frontmatter" => {
                front_matter.retain(|key, _| part.get(key).is_some());
                front_matter.into()
            }
            "body" => file.splitn(3, "---").nth(2).unwrap_or_default().into(),
            _ => return Err(Stop::skip(format!("layouts of which \"{name}\" is expected"))),
        };
    }
    judged(row, &answer)
}

pub(super) fn search(row: &Row) -> Judged {
    let (tags, acl) = (texts(&row.input, "tags").unwrap_or_default(), Acl::everything());
    let domain = row.input.get("domain").and_then(Value::as_str);
    let query = Query { text: row.text("query"), domain, tags: &tags, acl: &acl };
    let found = matching(Knowledge::of(row)?.entries()?, &query, count(row, "limit", SEARCH_LIMIT));
    let answer = match row.expect.get("ids_any_order") {
        Some(_) => json!({"ids_any_order": ids_in_any_order(&found, &row.expect)}),
        // A row with a limit may only count, because Atlas for Python gives results in the order of the folder.
        None if row.expect.get("count").is_some() => json!({"count": found.len()}),
        None => json!({"ids": ids(&found)}),
    };
    judged(row, &answer)
}

pub(super) fn list(row: &Row) -> Judged {
    let domain = row.input.get("domain").and_then(Value::as_str);
    let (limit, offset) = (count(row, "limit", LIST_LIMIT), count(row, "offset", 0));
    let found = page(Knowledge::of(row)?.entries()?, domain, &Acl::everything(), limit, offset);
    judged(row, &json!({"ids": ids(&found)}))
}

/// The members of an entry that the row expects; if there is none, null or what the row expects in its place.
fn shown(entry: Option<&Entry>, expect: &Value) -> Value {
    let Some(entry) = entry else {
        return if expect.get("found").is_some() { json!({"found": false}) } else { Value::Null };
    };
    let mut all = json!({
        "found": true,
        "id": entry.id.as_str(),
        "content": entry.content,
        "domain": entry.domain.as_str(),
        "tags": entry.tags,
        "metadata": entry.metadata,
    });
    if let Some(all) = all.as_object_mut() {
        all.retain(|name, _| expect.get(name).is_some());
    }
    all
}

pub(super) fn get(row: &Row) -> Judged {
    let found = Knowledge::of(row)?.folder.get(row.text("id")).map_err(system)?;
    judged(row, &shown(found.as_ref(), &row.expect))
}

pub(super) fn update(row: &Row) -> Judged {
    let content = row.input.get("content").and_then(Value::as_str).map(str::to_owned);
    let change = EntryChange { content, tags: texts(&row.input, "tags"), metadata: object(&row.input, "metadata") };
    let knowledge = Knowledge::of(row)?;
    let acl = Acl::everything();
    let found = knowledge.as_operator(&acl).update(row.text("id"), change, NOW).map_err(system)?;
    judged(row, &shown(found.as_ref(), &row.expect))
}

pub(super) fn delete(row: &Row) -> Judged {
    let deleted = Knowledge::of(row)?.folder.remove(row.text("id")).map_err(system)?;
    judged(row, &json!({ "deleted": deleted }))
}

/// Whether an entry of this id or of this domain can be stored.
pub(super) fn stored(row: &Row) -> Judged {
    let mut given = row.input.clone();
    given["content"] = json!("c");
    let acl = Acl::everything();
    let accepted = Knowledge::of(row)?.as_operator(&acl).store(draft(&given), NOW, 0x5eed).is_ok();
    judged(row, &only(&row.expect, json!({ "accepted": accepted })))
}

pub(super) fn generated(row: &Row) -> Judged {
    let entry = Knowledge::of(row)?.store(draft(&row.input))?;
    let pattern = text(&row.expect, "id_pattern");
    let matches = regex::Regex::new(pattern).map_err(|error| Stop::system("read the pattern of the row", error))?;
    judged(
        row,
        &json!({
            "id_pattern": pattern,
            "matches": matches.is_match(entry.id.as_str()),
            "created_equals_updated": entry.created_at == entry.updated_at,
        }),
    )
}

/// An access list as in the rows. Lists that are missing have the values of a contract.
fn acl_of(row: &Row) -> Acl {
    let acl = &row.input["acl"];
    Acl {
        read_domains: texts(acl, "read_domains").unwrap_or_else(|| vec!["*".to_owned()]),
        write_domains: texts(acl, "write_domains").unwrap_or_default(),
        protected: ProtectedDomains(texts(acl, "protected_domains").into_iter().flatten().collect()),
    }
}

pub(super) fn acl(row: &Row) -> Judged {
    let (acl, domain) = (acl_of(row), row.text("domain"));
    judged(row, &json!({"read": acl.reads(domain), "write": acl.writes(domain)}))
}

/// What an agent reads.
pub(super) fn context_read(row: &Row) -> Judged {
    let (knowledge, acl) = (Knowledge::of(row)?, acl_of(row));
    let access = KnowledgeAccess { folder: &knowledge.folder, acl: &acl };
    let found = access.search(row.text("query"), None, &[], count(row, "limit", SEARCH_LIMIT)).map_err(system)?;
    let got = access.get(row.text("get")).map_err(system)?;
    judged(row, &json!({"ids_any_order": ids_in_any_order(&found, &row.expect), "get_found": got.is_some()}))
}

/// What an agent stores.
pub(super) fn context_store(row: &Row) -> Judged {
    let (knowledge, acl) = (Knowledge::of(row)?, acl_of(row));
    let draft = Draft { domain: row.text("domain").to_owned(), ..Draft::new("c") };
    let answer = match (KnowledgeAccess { folder: &knowledge.folder, acl: &acl }).store(draft, NOW, 0x5eed) {
        Ok(_) => json!({"allowed": true}),
        Err(error) => json!({"allowed": false, "error": error.to_string()}),
    };
    judged(row, &only(&row.expect, answer))
}

/// Reads, writes and appends to a memory, one after the other.
pub(super) fn memory(row: &Row) -> Judged {
    let dir = tempfile::tempdir().map_err(system)?;
    let file = shared::File::new(dir.path().join("folder/memory.txt"));
    let failed = |error: shared::MemoryError| Stop::system("use the memory of the row", error);
    if let Some(initial) = row.input["initial"].as_str() {
        file.write(initial).map_err(failed)?;
    }
    for step in items(&row.input, "ops") {
        match operation(step) {
            Some(("read", _)) => file.read().map(drop).map_err(failed)?,
            Some(("write", content)) => file.write(content).map_err(failed)?,
            Some(("append", entry)) => file.append(entry).map_err(failed)?,
            _ => return Err(Stop::skip(format!("the operation {step}"))),
        }
    }
    if let Some(member) = unknown(&row.expect, &["content"]) {
        return Err(Stop::skip(format!("memories of which \"{member}\" is expected")));
    }
    judged(row, &json!({"content": file.read().map_err(failed)?}))
}

/// The name of an operation and its text: `["append", "x"]`, `{"op": "append", "entry": "x"}` or `{"append": "x"}`.
fn operation(step: &Value) -> Option<(&str, &str)> {
    match step {
        Value::String(name) => Some((name, "")),
        Value::Array(parts) => {
            Some((parts.first()?.as_str()?, parts.get(1).and_then(Value::as_str).unwrap_or_default()))
        }
        Value::Object(parts) => match parts.get("op").and_then(Value::as_str) {
            Some(name) => {
                Some((name, parts.iter().find_map(|(key, value)| value.as_str().filter(|_| key != "op")).unwrap_or("")))
            }
            None => parts.iter().next().map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default())),
        },
        _ => None,
    }
}
