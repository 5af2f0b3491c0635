//! What a policy leaves of the permissions of a contract (compatibility §25.3).

use atlas_contract::{Contract, Permissions};
use atlas_secrets::Rules;

use crate::Policy;

/// The limits to enforce on an agent; none means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub memory_mb: Option<u64>,
    pub cpu_seconds: Option<u64>,
}

impl Policy {
    /// The permissions of an agent. A contract without the block `permissions` gets those of the policy, but keeps the names of secrets
    /// that it has in `requires`.
    pub fn permissions_of(&self, contract: &Contract) -> Permissions {
        if contract.has_permissions {
            return self.capped(contract.permissions.clone());
        }
        let mut permissions = self.default_permissions.clone();
        if !contract.permissions.secrets.is_empty() {
            permissions.secrets.clone_from(&contract.permissions.secrets);
        }
        self.capped(permissions)
    }

    /// Permissions within the bounds of this policy, with its image if they name none.
    pub fn capped(&self, mut permissions: Permissions) -> Permissions {
        permissions.max_memory_mb = permissions.max_memory_mb.min(self.max_memory_mb);
        permissions.max_cpu_seconds = permissions.max_cpu_seconds.min(self.max_cpu_seconds);
        if permissions.container_image.is_empty() {
            permissions.container_image.clone_from(&self.container_image);
        }
        permissions
    }

    /// The limits of an agent with these permissions. In Atlas for Python an amount of 0 or less means no limit, so the smaller of two
    /// numbers is not always the stricter one: an agent that asks for no limit gets that of the policy.
    pub fn limits(&self, permissions: &Permissions) -> Limits {
        Limits {
            memory_mb: stricter(permissions.max_memory_mb, self.max_memory_mb),
            cpu_seconds: stricter(permissions.max_cpu_seconds, self.max_cpu_seconds),
        }
    }

    /// The secrets that agents may have.
    pub fn secret_rules(&self) -> Rules {
        self.allowed_secrets.clone().map_or(Rules::Any, Rules::Only)
    }
}

fn stricter(asked: i64, bound: i64) -> Option<u64> {
    [asked, bound].into_iter().filter_map(|amount| u64::try_from(amount).ok().filter(|amount| *amount > 0)).min()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    const POLICY: &str = "max_memory_mb: 256\ncontainer_image: ours\ndefault_permissions: {network: [], max_memory_mb: 999, secrets: [S]}";

    /// The permissions of a contract with these members, under [`POLICY`].
    fn check(members: &str, expected: &Expect) {
        let policy = Policy::parse(POLICY.as_bytes()).expect("a policy");
        let contract = format!("name: a\nversion: 1.0.0\n{members}");
        let contract = atlas_contract::parse(contract.as_bytes()).expect("a contract");
        expected.assert_eq(&policy.permissions_of(&contract).to_json().to_string());
    }

    #[test]
    fn contracts_are_capped() {
        check(
            "permissions: {max_memory_mb: 4096, max_cpu_seconds: 10}",
            &expect![[
                r#"{"filesystem":["read"],"network":["outbound"],"spawn":false,"max_memory_mb":256,"max_cpu_seconds":10,"secrets":[],"isolation":"process","container_image":"ours"}"#
            ]],
        );
        check(
            "permissions: {container_image: theirs, max_memory_mb: 1}",
            &expect![[
                r#"{"filesystem":["read"],"network":["outbound"],"spawn":false,"max_memory_mb":1,"max_cpu_seconds":60,"secrets":[],"isolation":"process","container_image":"theirs"}"#
            ]],
        );
    }

    #[test]
    fn a_contract_without_the_block_gets_the_defaults_of_the_policy() {
        check(
            "",
            &expect![[
                r#"{"filesystem":["read"],"network":[],"spawn":false,"max_memory_mb":256,"max_cpu_seconds":60,"secrets":["S"],"isolation":"process","container_image":"ours"}"#
            ]],
        );
        check(
            "permissions: null",
            &expect![[
                r#"{"filesystem":["read"],"network":[],"spawn":false,"max_memory_mb":256,"max_cpu_seconds":60,"secrets":["S"],"isolation":"process","container_image":"ours"}"#
            ]],
        );
        check(
            "requires: {secrets: [T]}",
            &expect![[
                r#"{"filesystem":["read"],"network":[],"spawn":false,"max_memory_mb":256,"max_cpu_seconds":60,"secrets":["T"],"isolation":"process","container_image":"ours"}"#
            ]],
        );
        check(
            "permissions: {}",
            &expect![[
                r#"{"filesystem":["read"],"network":["outbound"],"spawn":false,"max_memory_mb":256,"max_cpu_seconds":60,"secrets":[],"isolation":"process","container_image":"ours"}"#
            ]],
        );
    }

    #[test]
    fn asking_for_no_limit_does_not_lift_that_of_the_policy() {
        let policy = Policy { max_cpu_seconds: 0, ..Policy::default() };
        let limits = |memory, cpu| {
            policy.limits(&Permissions { max_memory_mb: memory, max_cpu_seconds: cpu, ..Permissions::default() })
        };
        assert_eq!(limits(0, 0), Limits { memory_mb: Some(1024), cpu_seconds: None });
        assert_eq!(limits(-1, 5), Limits { memory_mb: Some(1024), cpu_seconds: Some(5) });
        assert_eq!(limits(8, -5), Limits { memory_mb: Some(8), cpu_seconds: None });
    }

    #[test]
    fn secrets_are_restricted_only_by_a_list() {
        let rules = |text: &str| Policy::parse(text.as_bytes()).expect("a policy").secret_rules();
        assert_eq!(rules(""), Rules::Any);
        assert_eq!(rules("allowed_secrets: []"), Rules::Only([].into()));
        assert_eq!(rules("allowed_secrets: [A]"), Rules::Only(["A".to_owned()].into()));
    }

    proptest! {
        #[test]
        fn no_limit_exceeds_the_policy(asked: (i64, i64), bound: (i64, i64)) {
            let policy = Policy { max_memory_mb: bound.0, max_cpu_seconds: bound.1, ..Policy::default() };
            let permissions = Permissions { max_memory_mb: asked.0, max_cpu_seconds: asked.1, ..Permissions::default() };
            let capped = policy.capped(permissions.clone());
            prop_assert!(capped.max_memory_mb <= bound.0 && capped.max_cpu_seconds <= bound.1);
            let limits = policy.limits(&permissions);
            for (limit, bound) in [(limits.memory_mb, bound.0), (limits.cpu_seconds, bound.1)] {
                prop_assert!(bound <= 0 || limit.is_some_and(|limit| limit <= bound.unsigned_abs()));
            }
        }
    }
}
