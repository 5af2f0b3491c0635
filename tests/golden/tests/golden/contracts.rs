//! The proto contracts: their style (STANDARD and COMMENT_* of `buf lint`, for machines without buf) and their fields, which a
//! release may extend but never change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};

use crate::files;

/// Field numbers of a file's parts in its descriptor, by which comments are found.
const MESSAGES: i32 = 4;
const ENUMS: i32 = 5;
const SERVICES: i32 = 6;
const METHODS: i32 = 2;

#[test]
fn contracts_keep_to_the_style() {
    let faults: Vec<String> = contracts().iter().flat_map(faults_of).collect();
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn fields_keep_their_numbers() {
    let now: BTreeSet<String> = contracts().iter().flat_map(lines_of).collect();
    let then = files::list("contracts.txt", &now);
    let lost: Vec<_> = then.difference(&now).collect();
    assert!(lost.is_empty(), "changed or dropped: {lost:#?}");
    let added: Vec<_> = now.difference(&then).collect();
    assert!(added.is_empty(), "new, UPDATE_GOLDEN=1 takes them up: {added:#?}");
}

/// Every contract under `proto/atlas`.
fn contracts() -> Vec<FileDescriptorProto> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let mut found = Vec::new();
    gather(&root.join("atlas"), &mut found);
    let mut compiler = protox::Compiler::new([root]).expect("a folder");
    compiler.include_source_info(true).open_files(found).expect("contracts that compile");
    compiler.file_descriptor_set().file
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

fn faults_of(file: &FileDescriptorProto) -> Vec<String> {
    let mut faults = Vec::new();
    let mut demand = |holds: bool, fault: String| {
        if !holds {
            faults.push(format!("{}: {fault}", file.name()));
        }
    };
    let folder = file.package().replace('.', "/");
    demand(Path::new(file.name()).parent() == Some(Path::new(&folder)), format!("lies not in {folder}"));
    for (at, message) in (0..).zip(&file.message_type) {
        demand(commented(file, &[MESSAGES, at]), format!("{} has no sentence", message.name()));
        for field in &message.field {
            demand(is_snake(field.name()), format!("{}.{} is not snake_case", message.name(), field.name()));
        }
    }
    for (at, listed) in (0..).zip(&file.enum_type) {
        demand(commented(file, &[ENUMS, at]), format!("{} has no sentence", listed.name()));
        let prefix = screaming(listed.name()) + "_";
        for value in &listed.value {
            demand(value.name().starts_with(&prefix), format!("{} does not start with {prefix}", value.name()));
        }
        let zero = listed.value.first().map(|value| value.name().to_owned());
        demand(zero == Some(prefix + "UNSPECIFIED"), format!("{} does not start unspecified", listed.name()));
    }
    for (at, service) in (0..).zip(&file.service) {
        demand(service.name().ends_with("Service"), format!("{} does not end in Service", service.name()));
        demand(commented(file, &[SERVICES, at]), format!("{} has no sentence", service.name()));
        for (number, method) in (0..).zip(&service.method) {
            let own = |kind: &str| format!(".{}.{}{kind}", file.package(), method.name());
            demand(commented(file, &[SERVICES, at, METHODS, number]), format!("{} has no sentence", method.name()));
            demand(method.input_type() == own("Request"), format!("{} takes {}", method.name(), method.input_type()));
            demand(
                method.output_type() == own("Response"),
                format!("{} gives {}", method.name(), method.output_type()),
            );
        }
    }
    faults
}

fn commented(file: &FileDescriptorProto, path: &[i32]) -> bool {
    let locations = file.source_code_info.iter().flat_map(|info| &info.location);
    locations.into_iter().any(|location| location.path == path && !location.leading_comments().trim().is_empty())
}

fn is_snake(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// `NodeHealth` as `NODE_HEALTH`.
fn screaming(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

/// One line for each field, value and method: all that another program may rely on.
fn lines_of(file: &FileDescriptorProto) -> Vec<String> {
    let package = file.package();
    let fields = |message: &DescriptorProto| -> Vec<String> {
        let line = |field: &prost_types::FieldDescriptorProto| {
            let kind = format!("{:?} {:?} {}", field.label(), field.r#type(), field.type_name());
            format!("{package}.{}.{} = {}: {}", message.name(), field.name(), field.number(), kind.trim_end())
        };
        message.field.iter().map(line).collect()
    };
    let values = |listed: &EnumDescriptorProto| -> Vec<String> {
        listed.value.iter().map(|value| format!("{package}.{} = {}", value.name(), value.number())).collect()
    };
    let methods = |service: &prost_types::ServiceDescriptorProto| -> Vec<String> {
        let streams = |streams: bool| if streams { "stream " } else { "" };
        let line = |method: &prost_types::MethodDescriptorProto| {
            let (asks, answers) = (streams(method.client_streaming()), streams(method.server_streaming()));
            format!("{package}.{}.{}: {asks}request, {answers}response", service.name(), method.name())
        };
        service.method.iter().map(line).collect()
    };
    let messages = file.message_type.iter().flat_map(fields);
    let enums = file.enum_type.iter().flat_map(values);
    messages.chain(enums).chain(file.service.iter().flat_map(methods)).collect()
}
