//! `check(script, expected)`: statements of the [language](super::language) separated by `;`, the effects of each on lines of their
//! own.

use std::time::Duration;

use atlas_types::{Gpu, Inventory};
use expect_test::Expect;

use super::language::{input, number, show};
use crate::{Input, Options, Slots};

/// A node of 64 bytes with two GPUs of 24.
pub(super) fn inventory() -> Inventory {
    let gpu = |index| Gpu {
        index,
        uuid: String::new(),
        vendor: String::new(),
        model: String::new(),
        memory_bytes: 24,
        mig_profile: None,
        healthy: true,
    };
    Inventory { memory_bytes: 64, gpus: vec![gpu(0), gpu(1)], ..Inventory::default() }
}

pub(super) fn check(script: &str, expected: &Expect) {
    check_from(Slots::new(Options { inventory: inventory(), ..Options::default() }), script, expected);
}

/// The same with a machine of the test's own.
pub(super) fn check_from(mut slots: Slots, script: &str, expected: &Expect) {
    let mut now = Duration::ZERO;
    let mut shown = String::new();
    for statement in script.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        let effects = if let Some(seconds) = statement.strip_prefix('+') {
            now += Duration::from_secs(number(Some(seconds)));
            slots.step(Input::Tick, now)
        } else if let Some(seconds) = statement.strip_prefix("busy ") {
            now += Duration::from_secs(number(Some(seconds)));
            Vec::new()
        } else {
            slots.step(input(statement), now)
        };
        shown.push_str(&format!("{statement}\n"));
        for effect in &effects {
            shown.push_str(&format!("    {}\n", show(effect)));
        }
    }
    expected.assert_eq(&shown);
}
