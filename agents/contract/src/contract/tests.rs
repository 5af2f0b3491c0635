use atlas_types::{Architecture, Micros, Rate, RetryRule};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const BASE: &str = "agent:\n  name: a\n  version: 1.0.0\n";

fn with(lines: &str) -> String {
    format!("{BASE}{lines}")
}

fn accepted(text: &str) -> Contract {
    parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str, expected: &Expect) {
    let error = parse(text.as_bytes()).expect_err("the contract breaks a rule");
    let mut lines = format!("{error}\n");
    for violation in error.violations() {
        let hint = violation.suggestion.as_ref().map(|meant| format!(", meant {meant}")).unwrap_or_default();
        lines.push_str(&format!("  {} {}{hint}\n", violation.pointer, violation.rule));
    }
    expected.assert_eq(&lines);
}

#[test]
fn a_document_is_one_mapping() {
    refused(
        "",
        &expect![[r#"
        Contract must be a YAML mapping, got NoneType
    "#]],
    );
    refused(
        "[1]",
        &expect![[r#"
        Contract must be a YAML mapping, got list
    "#]],
    );
    refused(
        "2024-01-01",
        &expect![[r#"
        Contract must be a YAML mapping, got date
    "#]],
    );
    refused(
        "a: [",
        &expect![[r#"
        Invalid YAML: line 1, column 4: unclosed bracket '['
    "#]],
    );
    refused(
        "foo: 1",
        &expect![[r#"
        Contract validation failed: 'agent' is a required property
          / required
    "#]],
    );
    assert_eq!(accepted("name: a\nversion: 1.0.0").name.as_str(), "a");
}

#[test]
fn people_are_told_what_was_probably_meant() {
    let plain = |text: &str| {
        let error = parse_offered(text.as_bytes()).expect_err("refused");
        let lines = error.plain().iter().map(|violation| format!("{} {}\n", violation.pointer, violation.message));
        lines.collect::<String>()
    };
    let all = [
        plain("agent: {name: a, version: 1.0.0, provider: pyton}"),
        plain("agent: {name: a, version: 1.0.0, provider: {type: lml}, effects: onse}"),
        plain("agent: {name: a, version: 1.0.0, provider: xyzzy, model: {preference: cheap}}"),
        plain("agent: {name: a, verison: 1.0.0, provider: {type: exec, command: run.sh}}"),
        plain("agent: {name: a, version: '1', provider: 5, hardware: {gpus: 1}}"),
        plain("agent: {name: a, version: 1.0.0, description: 2024-01-01}"),
    ];
    expect![[r#"
        /agent/provider "pyton" is no provider; did you mean "python"?
        /agent/provider/type "lml" is no provider; did you mean "llm"?
        /agent/effects "onse" is not possible here; did you mean "once"?
        /agent/model/preference "cheap" is not possible here, only "fast", "balanced", "powerful"
        /agent/provider "xyzzy" is no provider, only "python", "node", "exec", "llm", "graph", "normal"
        /agent "version" is required; "verison" is not known here
        /agent/provider/command 'run.sh' is not of type 'array'
        /agent/version '1' does not match '^\\d+\\.\\d+\\.\\d+$'
        /agent/provider 5 has none of the possible forms
        /agent/hardware/gpus not allowed here; did you mean "gpu"?
        /agent/description the date 2024-01-01 (quote it to have text) is not of type 'string'
    "#]]
    .assert_eq(&all.concat());
}

#[test]
fn a_version_stays_as_it_is_written() {
    let contract = accepted("name: a\nversion: 01.2.3");
    assert_eq!(contract.version.to_string(), "1.2.3");
    assert_eq!(contract.to_json()["version"], "01.2.3");
}

#[test]
fn all_broken_rules_are_told_at_once() {
    refused(
        "agent:\n  name: ''\n  verison: 1.0.0\n  type: robot\n  hardware: {gpus: 1, gpu: maybe}\n  capabilities: x\n",
        &expect![[r#"
            Contract validation failed: 'version' is a required property; '' should be non-empty; 'robot' is not one of ['agent', 'orchestrator']; 'x' is not of type 'array'; 'maybe' is not of type 'boolean'; Additional properties are not allowed ('gpus' was unexpected)
              /agent required, meant verison
              /agent/name minLength
              /agent/type enum
              /agent/capabilities type
              /agent/hardware/gpu type
              /agent/hardware additionalProperties, meant gpu
        "#]],
    );
}

#[test]
fn one_of_two_shapes_is_one_violation() {
    refused(
        &with("  provider: {type: exec, command: run.sh}\n"),
        &expect![[r#"
        Contract validation failed: {'type': 'exec', 'command': 'run.sh'} is not valid under any of the given schemas
          /agent/provider oneOf
    "#]],
    );
    refused(
        &with("  requires: {knowledge: 5, agents: [x, {version: 1.0.0}]}\n"),
        &expect![[r#"
        Contract validation failed: {'version': '1.0.0'} is not valid under any of the given schemas; 5 is not valid under any of the given schemas
          /agent/requires/agents/1 oneOf
          /agent/requires/knowledge oneOf
    "#]],
    );
}

#[test]
fn names_that_would_leave_a_directory_are_refused() {
    for name in ["../b", "..", "a\\.."] {
        refused_at(&format!("name: '{name}'\nversion: 1.0.0"), "/agent/name");
    }
    for name in ["a b/c", "a\\b", "a..b"] {
        assert_eq!(accepted(&format!("name: '{name}'\nversion: 1.0.0")).name.as_str(), name);
    }
    refused_at("name: a\nversion: 99999999999999999999.0.0", "/agent/version");
    refused_at(&with("  hardware: {node_affinity: ../up}\n"), "/agent/hardware/node_affinity");
}

#[test]
fn all_violations_of_one_object_are_told() {
    // An invalid name together with another violation.
    refused(
        "agent: {name: \"a\\nb\", version: 1.0.0, capabilities: x}",
        &expect![[r#"
            Contract validation failed: 'x' is not of type 'array'; an agent name must not contain "\n"
              /agent/capabilities type
              /agent/name pattern
        "#]],
    );
    // Values that JSON cannot represent, together with a violation of the object that contains them.
    refused(
        "agent: {version: 1.0.0, requires: 2024-01-01, retry: 2024-01-01}",
        &expect![[r#"
        Contract validation failed: 'name' is a required property; the date 2024-01-01 (quote it to have text) is not of type 'object'; the date 2024-01-01 (quote it to have text) is not allowed here
          /agent required
          /agent/requires type
          /agent/retry type
    "#]],
    );
    refused(
        &with("  hardware: {gpu_vram_gb: -1, min_memory_gb: .nan, device_access: 2024-01-01, gpuu: 1}\n"),
        &expect![[r#"
            Contract validation failed: -1 is less than the minimum of 0; .nan is not of type 'integer'; the date 2024-01-01 (quote it to have text) is not of type 'array'; Additional properties are not allowed ('gpuu' was unexpected)
              /agent/hardware/gpu_vram_gb minimum
              /agent/hardware/min_memory_gb type
              /agent/hardware/device_access type
              /agent/hardware additionalProperties, meant gpu
        "#]],
    );
}

#[test]
fn negative_times_and_counts_are_refused_of_an_agent_that_is_offered() {
    let contract = accepted(&with(
        "  retry: {max_retries: -1, backoff_base: -0.5}\n  execution_timeout: -5\n  queue_timeout: -1\n  startup_timeout: -1\n",
    ));
    let error = contract.check_offered().expect_err("five numbers are negative");
    let pointers: Vec<&str> = error.violations().iter().map(|violation| violation.pointer.as_str()).collect();
    let retry = ["/agent/retry/max_retries", "/agent/retry/backoff_base"];
    let timeouts = ["/agent/execution_timeout", "/agent/queue_timeout", "/agent/startup_timeout"];
    assert_eq!(pointers, [&retry[..], &timeouts].concat());
    assert_eq!(error.violations()[0].message, "-1 is less than the minimum of 0");
    assert_eq!(accepted(&with("  execution_timeout: 0\n")).check_offered(), Ok(()));
}

#[test]
fn times_and_bounds_that_cannot_do_what_they_say_are_refused_of_an_agent_that_is_offered() {
    let refused = |members: &str| match parse_offered(with(members).as_bytes()) {
        Ok(_) => "accepted".to_owned(),
        Err(ContractError::Rules { violations, .. }) => {
            violations.iter().map(|violation| format!("{} {}", violation.pointer, violation.message)).collect()
        }
        Err(other) => other.to_string(),
    };
    expect!["/agent/execution_timeout 0.000000001 is less than the minimum of 0.001 seconds: no job could run"]
        .assert_eq(&refused("  execution_timeout: 1.0e-9\n"));
    expect!["/agent/startup_timeout 0.0005 is less than the minimum of 0.001 seconds: no job could run"]
        .assert_eq(&refused("  startup_timeout: 0.0005\n"));
    expect!["/agent/isolation it binds nobody here; write it under /agent/permissions: permissions.isolation"]
        .assert_eq(&refused("  isolation: container\n"));
    expect!["/agent/provider/network it binds nobody here; write it under /agent/permissions: permissions.network"]
        .assert_eq(&refused("  provider: {type: exec, command: [x], network: []}\n"));
    assert_eq!(refused("  permissions: {isolation: container, network: []}\n"), "accepted");
    assert_eq!(refused("  isolated: true\n"), "accepted");
}

#[test]
fn negative_numbers_are_reported_together_with_broken_rules() {
    let text = with("  execution_timeout: -5\n  queue_timeout: -1\n  max_attempts: 0\n  effects: maybe\n");
    let error = parse_offered(text.as_bytes()).expect_err("four members are wrong");
    let mut pointers: Vec<&str> = error.violations().iter().map(|violation| violation.pointer.as_str()).collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/agent/effects", "/agent/execution_timeout", "/agent/max_attempts", "/agent/queue_timeout"]);
    let timeout = parse_offered(with("  execution_timeout: -5\n").as_bytes()).expect_err("a negative timeout");
    assert_eq!(timeout.violations().len(), 1);
}

#[test]
fn document_bases_are_named_by_a_list() {
    let contract = accepted(&with("  requires: {documents: [handbook, team.wiki]}\n"));
    assert_eq!(contract.requires.documents, ["handbook", "team.wiki"]);
    assert_eq!(contract.to_json().pointer("/requires/documents"), Some(&serde_json::json!(["handbook", "team.wiki"])));
    assert_eq!(accepted(&with("  requires: {}\n")).to_json().pointer("/requires/documents"), None);
    for documents in ["handbook", "{a: b}", "[a, a]", "['../x']", "['']", "[5]"] {
        let error = parse(with(&format!("  requires: {{documents: {documents}}}\n")).as_bytes()).expect_err(documents);
        let pointer = &error.violations().first().expect("a violation").pointer;
        assert!(pointer.starts_with("/agent/requires/documents"), "{documents}: {pointer}");
    }
}

fn refused_at(text: &str, pointer: &str) {
    let error = parse(text.as_bytes()).expect_err("the contract breaks a rule");
    let pointers: Vec<&str> = error.violations().iter().map(|violation| violation.pointer.as_str()).collect();
    assert_eq!(pointers, [pointer], "{text}");
}

#[test]
fn a_date_is_no_text_and_no_time_is_infinite() {
    refused(
        &with("  description: 2024-01-01\n"),
        &expect![[r#"
        Contract validation failed: the date 2024-01-01 (quote it to have text) is not of type 'string'
          /agent/description type
    "#]],
    );
    refused(
        &with("  requires: {knowledge: 2024-01-01}\n  retry: 2024-01-01\n"),
        &expect![[r#"
        Contract validation failed: the date 2024-01-01 (quote it to have text) is not allowed here; the date 2024-01-01 (quote it to have text) is not allowed here
          /agent/requires/knowledge oneOf
          /agent/retry type
    "#]],
    );
    refused(
        &with("  execution_timeout: .inf\n"),
        &expect![[r#"
            Contract validation failed: .inf is not a number of seconds
              /agent/execution_timeout conversion
        "#]],
    );
    let schema =
        accepted(&with("  input: {schema: {type: object, properties: {d: {const: 2024-01-01}}}}\n")).input_schema;
    assert_eq!(schema.pointer("/properties/d/const"), Some(&Value::from("2024-01-01")));
}

#[test]
fn what_cannot_be_converted_is_told_at_once() {
    refused(
        &with(
            "  retry: {max_retries: many, backoff_base: []}\n  permissions: {isolation: vm, secrets: S}\n  execution_timeout: soon\n",
        ),
        &expect![[r#"
            Contract validation failed: 'many' is not a whole number; [] is not a number of seconds; Invalid isolation mode 'vm', must be one of: ['container', 'process']; 'S' is not a list of text; 'soon' is not a number of seconds
              /agent/retry/max_retries conversion
              /agent/retry/backoff_base conversion
              /agent/permissions/isolation value
              /agent/permissions/secrets conversion
              /agent/execution_timeout conversion
        "#]],
    );
    refused(
        &with("  permissions: read\n"),
        &expect![[r#"
        Contract validation failed: 'read' is not a mapping
          /agent/permissions conversion
    "#]],
    );
    let contract = accepted(&with("  retry: {max_retries: ' 3 ', backoff_base: '0.5'}\n  execution_timeout: '1e2'\n"));
    assert_eq!((contract.retry.max_retries, contract.retry.backoff_base), (3, 0.5));
    assert_eq!(contract.execution_timeout, 100.0);
}

#[test]
fn other_spellings_are_read() {
    let contract = accepted(&with("  requires: {secrets: [A]}\n  permissions: {file_system: [read, write]}\n"));
    assert_eq!(contract.permissions.secrets, ["A"]);
    assert_eq!(contract.permissions.filesystem, ["read", "write"]);
    assert_eq!(contract.warnings, []);
}

#[test]
fn an_agent_can_name_its_model_or_take_the_name_from_its_input() {
    let model = |name: &str| {
        let text = format!("agent: {{name: a, version: 1.0.0, provider: {{type: llm}}, model: {{name: {name}}}}}");
        parse(text.as_bytes()).map(|contract| (contract.run_spec().model, contract.to_json()["model"]["name"].clone()))
    };
    for name in ["small", "gpt-4o.mini_2", "\"{input.model}\""] {
        let plain = name.trim_matches('"');
        assert_eq!(model(name).expect("valid"), (Some(plain.to_owned()), plain.into()));
    }
    for name in ["\"\"", "a/b", "\"{input}\"", "\"{input.a.b}\"", "7"] {
        assert!(model(name).is_err(), "{name}");
    }
}

#[test]
fn an_agent_can_name_further_models() {
    let model = |others: &str| {
        let text = format!(
            "agent: {{name: a, version: 1.0.0, provider: {{type: graph}}, model: {{name: m, others: {others}}}}}"
        );
        parse(text.as_bytes())
            .map(|contract| (contract.run_spec().other_models, contract.to_json()["model"].to_string()))
    };
    let (names, written) = model("[small, fast, m, fast]").expect("valid");
    assert_eq!(names, ["fast", "small"]);
    assert!(written.contains(r#""others":["small","fast","m","fast"]"#), "{written}");
    for others in ["small", "[a/b]", "[\"\"]", "[5]", "[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p]", "[\"{input.model}\"]"] {
        assert!(model(others).is_err(), "{others}");
    }
}

#[test]
fn unknown_keys_are_warnings_with_the_nearest_known_one() {
    let contract = accepted(&with(
        "  capabilites: [x]\n  lifecycle: {}\n  model: {preferences: fast}\n  provider: {type: exec, comand: [x]}\n  \
         labels: {any: thing}\n  requires: {agents: [{name: x, versoin: '*'}]}\n  isolation: container\nextra: 1\n",
    ));
    let warnings: Vec<String> = contract.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    expect![[r#"
        /agent/capabilites: unknown key, ignored; did you mean "capabilities"?
        /agent/lifecycle: unknown key, ignored
        /agent/model/preferences: unknown key, ignored; did you mean "preference"?
        /agent/provider/comand: unknown key, ignored; did you mean "command"?
        /agent/requires/agents/0/versoin: unknown key, ignored; did you mean "version"?
        /agent/isolation: unknown key, ignored; write it under /agent/permissions: permissions.isolation
        /extra: unknown key, ignored
    "#]]
    .assert_eq(&warnings.concat());
}

#[test]
fn only_stated_limits_are_limits() {
    let of = |permissions: &str| {
        let StatedLimits { memory_mb, cpu_seconds } =
            accepted(&with(&format!("  permissions: {permissions}\n"))).stated_limits;
        (memory_mb, cpu_seconds)
    };
    assert_eq!(of("{secrets: [A]}"), (None, None));
    assert_eq!(of("{max_memory_mb: 64}"), (Some(64), None));
    assert_eq!(of("{max_cpu_seconds: '2'}"), (None, Some(2)));
    assert_eq!(of("{max_memory_mb: 0, max_cpu_seconds: 0}"), (None, None));
}

#[test]
fn a_demand_holds_only_what_is_stated() {
    let python = atlas_types::Demand { python: true, ..Default::default() };
    assert_eq!(accepted(BASE).run_spec().demand, python);
    let plain = atlas_types::Demand::default();
    let in_container = accepted(&with("  permissions: {isolation: container}\n")).run_spec().demand;
    assert_eq!(in_container.labels, [("container".to_owned(), "available".to_owned())].into());
    assert_eq!(atlas_types::Demand { labels: Default::default(), ..in_container }, plain);
    assert_eq!(accepted(&with("  provider: {type: exec, command: [a]}\n")).run_spec().demand, plain);
    let demand = |hardware: &str| accepted(&with(&format!("  hardware: {hardware}\n"))).run_spec().demand;
    let stated = demand(
        "{gpu: true, gpu_vram_gb: 16, min_memory_gb: 4, min_cpu_cores: 2, architecture: arm64, node_affinity: n1}",
    );
    assert_eq!((stated.cores, stated.memory_bytes), (2, 4 << 30));
    assert_eq!((stated.gpus, stated.vram_bytes), (1, 16 << 30));
    assert_eq!(stated.architecture, Some(Architecture::Arm64));
    assert_eq!(stated.node.map(|node| node.to_string()).as_deref(), Some("n1"));
    // GPU memory without a required GPU is ignored.
    assert_eq!(demand("{gpu_vram_gb: 16}").gpus, 0);
    let several = demand("{gpu_count: 2, gpu_vram_bytes: 1000, gpu_vram_gb: 1, node_labels: {zone: a}}");
    assert_eq!((several.gpus, several.vram_bytes), (2, 1000));
    assert_eq!(several.labels.get("zone").map(String::as_str), Some("a"));
    assert_eq!(demand("{min_memory_gb: 99999999999, min_cpu_cores: 99999999999}").cores, u32::MAX);
}

#[test]
fn extensions_change_how_jobs_run() {
    let contract = accepted(&with(
        "  effects: once\n  max_attempts: 1\n  concurrency: 2\n  queue_timeout: 1.5\n  startup_timeout: '2'\n  \
         retry: {max_retries: -1, backoff_base: -3}\n  execution_timeout: 0.25\n",
    ));
    let spec = contract.run_spec();
    assert_eq!((spec.effects, spec.max_attempts, spec.concurrency), (Effects::Once, 1, Some(2)));
    assert_eq!((spec.timeouts.queue, spec.timeouts.startup), (Some(Micros(1_500_000)), Micros::from_secs(2)));
    assert_eq!(spec.timeouts.execution, Micros(250_000));
    assert_eq!((spec.retry.max_retries, spec.retry.backoff_base), (0, Micros(0)));
    let many = accepted(&with("  retry: {max_retries: 5000000000, backoff_base: 0}\n")).run_spec();
    assert_eq!(many.retry.max_retries, RetryRule::RETRIES_MAX);
    // The record says what was under way.
    let durable = accepted(&with("  effects: once\n  durable: true\n")).run_spec();
    assert_eq!((durable.durable, durable.effects), (true, Effects::Idempotent));
    let defaults = accepted(BASE).run_spec();
    assert_eq!((defaults.effects, defaults.max_attempts, defaults.concurrency), (Effects::Idempotent, 3, None));
    assert_eq!((defaults.timeouts.queue, defaults.timeouts.execution), (None, Micros::from_secs(60)));
    refused(
        &with("  effects: maybe\n  max_attempts: 4\n  concurrency: 0\n  labels: {a: 1}\n"),
        &expect![[r#"
        Contract validation failed: 'maybe' is not one of ['pure', 'idempotent', 'reconcilable', 'once']; 4 is greater than the maximum of 3; 0 is less than the minimum of 1; 1 is not of type 'string'
          /agent/effects enum
          /agent/max_attempts maximum
          /agent/concurrency minimum
          /agent/labels/a type
    "#]],
    );
}

#[test]
fn limits_on_starts_and_keys_are_read_and_written() {
    let text = with(
        "  rate: {jobs: 120, seconds: 60}\n  per_key: {key: /customer, concurrency: 2, rate: {jobs: 1, seconds: 5, burst: 3}}\n",
    );
    let contract = accepted(&text);
    let spec = contract.run_spec();
    assert_eq!(spec.rate, Some(Rate { jobs: 120, per: Micros::from_secs(60), burst: 2 }));
    let per_key = spec.per_key.expect("it has limits for each value");
    assert_eq!((&*per_key.key, per_key.label(), per_key.concurrency), ("/customer", None, Some(2)));
    assert_eq!(per_key.rate, Some(Rate { jobs: 1, per: Micros::from_secs(5), burst: 3 }));
    let written = contract.to_json();
    assert_eq!(written["rate"], serde_json::json!({"jobs": 120, "seconds": 60}));
    assert_eq!(written["per_key"]["rate"]["burst"], 3);
    refused(
        &with("  rate: {jobs: 0, seconds: 86401, every: 1}\n  per_key: {key: customer, concurrency: 0}\n"),
        &expect![[r#"
            Contract validation failed: Additional properties are not allowed ('every' was unexpected); 0 is less than the minimum of 1; 86401 is greater than the maximum of 86400; 'customer' does not match '^(/|label:[A-Za-z0-9])'; 0 is less than the minimum of 1
              /agent/rate additionalProperties
              /agent/rate/jobs minimum
              /agent/rate/seconds maximum
              /agent/per_key/key pattern
              /agent/per_key/concurrency minimum
        "#]],
    );
}

#[test]
fn the_failures_that_open_the_circuit_are_read_and_written() {
    let contract = accepted(&with("  max_failures: 5\n"));
    assert_eq!(contract.run_spec().failures_max, Some(5));
    assert_eq!(contract.to_json()["max_failures"], 5);
    assert_eq!(accepted(BASE).run_spec().failures_max, None);
    refused(
        &with("  max_failures: 0\n"),
        &expect![[r#"
        Contract validation failed: 0 is less than the minimum of 1
          /agent/max_failures minimum
    "#]],
    );
}

#[test]
fn extensions_are_written_only_where_they_are_set() {
    let written = |text: &str| accepted(text).to_json();
    let plain = written(BASE);
    for name in ["effects", "max_attempts", "concurrency", "queue_timeout", "startup_timeout", "labels", "dependencies"]
    {
        assert!(plain.get(name).is_none(), "{name}");
    }
    let full = written(&with(
        "  effects: pure\n  labels: {a: b}\n  dependencies: {packages: [requests]}\n  provider: {type: exec, mode: warm}\n  \
         hardware: {gpu_count: 1}\n  requires: {agents: [x, {name: y, version: ^1.0.0}]}\n",
    ));
    assert_eq!(full.pointer("/effects"), Some(&Value::from("pure")));
    assert_eq!(full.pointer("/labels/a"), Some(&Value::from("b")));
    assert_eq!(full.pointer("/dependencies/packages/0"), Some(&Value::from("requests")));
    assert_eq!(full.pointer("/provider/mode"), Some(&Value::from("warm")));
    assert_eq!(full.pointer("/hardware/gpu_count"), Some(&Value::from(1)));
    assert_eq!(full.pointer("/requires/agents/0/version"), Some(&Value::from("*")));
    assert_eq!(full.pointer("/requires/agents/1/version"), Some(&Value::from("^1.0.0")));
}

#[test]
fn options_of_llm_agents_are_written_only_where_they_are_set() {
    let plain = accepted(&with("  provider: {type: llm}\n"));
    assert_eq!(plain.provider.llm, Llm::default());
    assert_eq!(plain.to_json()["provider"].as_object().map(serde_json::Map::len), Some(6));
    let full = "{type: llm, max_tokens: 100, temperature: 0.5, top_p: 1, top_k: 40, stop: [END], reasoning_effort: low, stream: yes, \
                enforce_schema: yes, repair_rounds: 2, parallel_tools: 4, loop_repeat_threshold: 3, partial_at_limit: no, images: pictures, messages: said, settings: chosen, probe: no, documents: no, direct: no, answers_helpers: yes, question_timeout_seconds: 90, outage_wait_seconds: 30, session: work, tool_permissions: [{tool: 'fs_*', action: ask}]}";
    let written = accepted(&with(&format!("  provider: {full}\n"))).to_json();
    expect![[r#"{"type":"llm","command":[],"system_prompt":"","focus":"","output_format":"json","max_iterations":5,"max_tokens":100,"temperature":0.5,"top_p":1.0,"top_k":40,"stop":["END"],"reasoning_effort":"low","stream":true,"enforce_schema":true,"repair_rounds":2,"parallel_tools":4,"loop_repeat_threshold":3,"partial_at_limit":false,"images":"pictures","messages":"said","settings":"chosen","probe":false,"documents":false,"direct":false,"answers_helpers":true,"question_timeout_seconds":90.0,"outage_wait_seconds":30.0,"session":"work","tool_permissions":[{"tool":"fs_*","action":"ask"}]}"#]]
        .assert_eq(&written["provider"].to_string());
    for wrong in [
        "temperature: 3",
        "repair_rounds: 11",
        "parallel_tools: 0",
        "stop: ['']",
        "reasoning_effort: most",
        "images: ''",
        "messages: 1",
        "settings: ''",
        "question_timeout_seconds: 0",
        "outage_wait_seconds: -1",
        "tool_permissions: [{tool: x, action: maybe}]",
        "tool_permissions: [{tool: ''}]",
    ] {
        let error = parse(with(&format!("  provider: {{type: llm, {wrong}}}\n")).as_bytes()).expect_err(wrong);
        assert_eq!(error.violations()[0].pointer, "/agent/provider", "{wrong}");
    }
}

#[test]
fn schemas_are_checked_when_asked() {
    let contract = accepted(&with("  input: {schema: {type: text}}\n  output: {schema: {$ref: 'http://x/y'}}\n"));
    let error = contract.check_schemas().map(|_| ()).expect_err("both schemas are wrong");
    let lines: Vec<String> =
        error.violations().iter().map(|v| format!("{} {}: {}\n", v.pointer, v.rule, v.message)).collect();
    expect![[r#"
        /agent/input/schema/type schema: "text" is not valid under any of the schemas listed in the 'anyOf' keyword
        /agent/output/schema/$ref schema: only references within the schema are supported
    "#]]
    .assert_eq(&lines.concat());
    let (input, _) = accepted(BASE).check_schemas().expect("no schema is a schema");
    assert!(input.is_valid(&Value::from(5)));
}

#[test]
fn ranges_of_required_agents_are_checked_when_asked() {
    let contract =
        accepted(&with("  requires: {agents: [a, {name: b, version: newest}, {name: c, version: ^1.0.0}]}\n"));
    let error = contract.check_requirements().expect_err("one range says nothing");
    let lines: Vec<String> = error.violations().iter().map(|v| format!("{}: {}\n", v.pointer, v.message)).collect();
    expect![[r#"
        /agent/requires/agents/1/version: "newest" is not a version requirement; use 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3, >1.2.3 or *
    "#]]
    .assert_eq(&lines.concat());
}

proptest! {
    #[test]
    fn any_bytes_give_a_contract_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn any_value_under_any_key_gives_a_contract_or_an_error(
        key in "name|version|type|input|model|requires|provider|hardware|retry|permissions|labels|execution_timeout|dependencies",
        inner in "schema|knowledge|agents|command|gpu|max_retries|isolation|secrets|packages|x",
        value in "null|yes|-1|1\\.5|'[ -&(-~]{0,6}'|\\[[a-c0-9, ]{0,6}\\]|2024-01-01|\\.nan|\\{a: \\[\\]\\}",
    ) {
        for text in [format!("  {key}: {value}\n"), format!("  {key}: {{{inner}: {value}}}\n")] {
            if let Ok(contract) = parse(with(&text).as_bytes()) {
                contract.run_spec();
                let written = contract.to_json();
                let again = format!("agent: {}", serde_json::json!({"name": written["name"], "version": written["version"]}));
                prop_assert!(parse(again.as_bytes()).is_ok());
            }
        }
    }
}

#[test]
fn a_memory_is_shared_by_those_whom_the_contract_names() {
    let of = |word: &str| {
        let contract = accepted(&with(&format!("  requires: {{memory: {word}}}\n")));
        (contract.requires.memory.map(SharedBy::as_str), contract.to_json()["requires"]["memory"].clone())
    };
    assert_eq!(of("false"), (None, Value::Bool(false)));
    for word in ["true", "namespace"] {
        assert_eq!(of(word), (Some("namespace"), Value::Bool(true)), "{word}");
    }
    for word in ["agent", "user", "conversation"] {
        assert_eq!(of(word), (Some(word), Value::from(word)));
    }
    for wrong in ["team", "user:ada", "1", "[user]"] {
        let text = with(&format!("  requires: {{memory: {wrong}}}\n"));
        assert!(parse(text.as_bytes()).is_err(), "{wrong}");
    }
}
