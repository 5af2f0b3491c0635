//! `docs/reference/proto.md`, from the comments of the contracts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, ServiceDescriptorProto,
};

/// Field numbers of a descriptor's parts, by which comments are found.
const MESSAGES: i32 = 4;
const ENUMS: i32 = 5;
const SERVICES: i32 = 6;
/// Methods of a service, fields of a message, values of an enum.
const PARTS: i32 = 2;

const INTRODUCTION: &str = "\
# Wire contracts

Generated from the contracts in `proto/atlas` by `cargo xtask fix`. `atlas.worker.v1` and `atlas.peer.v1` are used between \
programs, `atlas.orchestrator.v1` is for orchestrators outside of the cluster, `atlas.error.v1` is sent in the details of a gRPC status, `atlas.state.v1` is the format of stored data.
";

#[test]
fn generated_proto_reference_is_fresh() {
    expect_file!["../../../docs/reference/proto.md"].assert_eq(&page());
}

fn page() -> String {
    let mut packages: BTreeMap<String, String> = BTreeMap::new();
    for file in contracts() {
        let section = packages.entry(file.package().to_owned()).or_default();
        let comments = comments(&file);
        let said = |path: &[i32]| comments.get(path).cloned().unwrap_or_default();
        for (at, found) in (0..).zip(&file.service) {
            service(section, found, &[SERVICES, at], &said);
        }
        for (at, found) in (0..).zip(&file.message_type) {
            message(section, found, &[MESSAGES, at], &said);
        }
        for (at, found) in (0..).zip(&file.enum_type) {
            listed(section, found, &[ENUMS, at], &said);
        }
    }
    let sections = packages.into_iter().map(|(package, section)| format!("\n## {package}\n{section}"));
    INTRODUCTION.to_owned() + &sections.collect::<String>()
}

/// Every contract, by path.
fn contracts() -> Vec<FileDescriptorProto> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    gather(&root.join("atlas"), &mut found);
    found.sort();
    let mut compiler = protox::Compiler::new([root]).expect("a folder");
    compiler.include_source_info(true).open_files(found).expect("contracts that compile");
    let mut files = compiler.file_descriptor_set().file;
    files.sort_by(|a, b| a.name().cmp(b.name()));
    files
}

fn gather(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            gather(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            found.push(path);
        }
    }
}

/// The comment before each part of a file, on one line.
fn comments(file: &FileDescriptorProto) -> BTreeMap<Vec<i32>, String> {
    let locations = file.source_code_info.iter().flat_map(|info| &info.location);
    let comment = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    locations.map(|location| (location.path.clone(), comment(location.leading_comments()))).collect()
}

type Said<'a> = &'a dyn Fn(&[i32]) -> String;

fn service(page: &mut String, service: &ServiceDescriptorProto, path: &[i32], said: Said<'_>) {
    head(page, service.name(), &said(path), "| call | asks | answers | meaning |\n|---|---|---|---|");
    for (at, method) in (0..).zip(&service.method) {
        let stream = |streams: bool, name: &str| format!("{}`{}`", if streams { "stream of " } else { "" }, last(name));
        let asks = stream(method.client_streaming(), method.input_type());
        let answers = stream(method.server_streaming(), method.output_type());
        let meaning = said(&[path, &[PARTS, at]].concat());
        writeln!(page, "| `{}` | {asks} | {answers} | {meaning} |", method.name()).expect("a string takes everything");
    }
}

fn message(page: &mut String, message: &DescriptorProto, path: &[i32], said: Said<'_>) {
    if message.field.is_empty() {
        return head(page, message.name(), &said(path), "");
    }
    head(page, message.name(), &said(path), "| field | number | type | meaning |\n|---|---|---|---|");
    for (at, field) in (0..).zip(&message.field) {
        let (name, number, kind) = (field.name(), field.number(), kind(field));
        let meaning = said(&[path, &[PARTS, at]].concat());
        writeln!(page, "| `{name}` | {number} | {kind} | {meaning} |").expect("a string takes everything");
    }
}

fn listed(page: &mut String, listed: &EnumDescriptorProto, path: &[i32], said: Said<'_>) {
    head(page, listed.name(), &said(path), "| value | number | meaning |\n|---|---|---|");
    for (at, value) in (0..).zip(&listed.value) {
        let meaning = said(&[path, &[PARTS, at]].concat());
        writeln!(page, "| `{}` | {} | {meaning} |", value.name(), value.number()).expect("a string takes everything");
    }
}

fn head(page: &mut String, name: &str, sentence: &str, table: &str) {
    let table = if table.is_empty() { String::new() } else { format!("\n{table}\n") };
    write!(page, "\n### {name}\n\n{sentence}\n{table}").expect("a string takes everything");
}

fn kind(field: &FieldDescriptorProto) -> String {
    let name = match field.r#type() {
        Type::Message | Type::Enum => last(field.type_name()).to_owned(),
        plain => format!("{plain:?}").to_lowercase(),
    };
    let label = match field.label() {
        Label::Repeated => "list of ",
        _ if field.proto3_optional() => "optional ",
        _ if field.oneof_index.is_some() => "one of: ",
        _ => "",
    };
    format!("{label}`{name}`")
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
