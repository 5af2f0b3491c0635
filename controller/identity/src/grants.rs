//! What a principal is granted: by its binding, and by the issuer that vouches for it.

use atlas_access::{Access, Attributes, Place, ROOT, built_in};
use atlas_objects::{BindingSpec, GrantSpec, IssuerSpec, RoleSpec};
use atlas_state::State;
use atlas_types::{Namespace, ObjectKey, ObjectKind, ObjectName, Principal};

/// What a principal is granted. Roles and namespaces that are not there grant nothing.
pub(crate) fn access(state: &State, principal: Principal) -> Access {
    let binding = key("binding", principal.as_str()).and_then(|key| BindingSpec::read(&state.object(&key)?.spec).ok());
    let rights = |role: &str| {
        let stored = || Some(RoleSpec::read(&state.object(&key("role", role)?)?.spec).ok()?.rights());
        built_in(role).or_else(stored).unwrap_or_default()
    };
    let grant = |GrantSpec { namespace, role }: GrantSpec| {
        let place = match namespace {
            None => Place::Cluster,
            Some(name) => Place::In(Namespace::new(&name).ok()?),
        };
        Some((place, rights(&role)))
    };
    let own = binding.unwrap_or_default();
    let issuer = issuer_of(state, &principal);
    let (by_issuer, known_by_issuer) = issuer.map(|issuer| (issuer.grants, issuer.attributes)).unwrap_or_default();
    let grants = own.grants.into_iter().chain(by_issuer).filter_map(grant).collect();
    Access::new(principal, grants).with_attributes(joined(own.attributes, known_by_issuer))
}

/// What either of two says.
fn joined(mut one: Attributes, other: Attributes) -> Attributes {
    for (name, values) in other {
        let known = one.entry(name).or_default();
        let new: Vec<String> = values.into_iter().filter(|value| !known.contains(value)).collect();
        known.extend(new);
    }
    one
}

/// Whether a principal has a role in a namespace. `root` has every role.
pub fn is_granted(state: &State, principal: &Principal, namespace: &Namespace, role: &str) -> bool {
    let binding = key("binding", principal.as_str()).and_then(|key| BindingSpec::read(&state.object(&key)?.spec).ok());
    let own = binding.map(|binding| binding.grants).unwrap_or_default();
    if principal.as_str() == ROOT {
        return true;
    }
    let holds = |grant: GrantSpec| grant.role == role && grant.namespace.is_none_or(|name| name == namespace.as_str());
    own.into_iter().chain(grants_of_issuer(state, principal)).any(holds)
}

/// What the issuer of a principal grants all of its principals.
fn grants_of_issuer(state: &State, principal: &Principal) -> Vec<GrantSpec> {
    issuer_of(state, principal).map(|spec| spec.grants).unwrap_or_default()
}

/// The issuer that vouches for a principal; none if it has its name by a token of this cluster.
fn issuer_of(state: &State, principal: &Principal) -> Option<IssuerSpec> {
    let (name, _) = principal.as_str().split_once(':')?;
    IssuerSpec::read(&state.object(&key("issuer", name)?)?.spec).ok()
}

/// The key of an object whose kind belongs to the cluster; none if the name is that of no object.
pub(crate) fn key(kind: &str, name: &str) -> Option<ObjectKey> {
    let (kind, name) = (ObjectKind::new(kind).ok()?, ObjectName::new(name).ok()?);
    Some(ObjectKey { namespace: Namespace::default_namespace(), kind, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_a_binding_and_of_an_issuer_count_together() {
        let attributes = |pairs: &[(&str, &[&str])]| -> Attributes {
            let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
            pairs.iter().map(|(name, values)| ((*name).to_owned(), texts(values))).collect()
        };
        let one = attributes(&[("team", &["people"])]);
        let other = attributes(&[("site", &["north"]), ("team", &["people", "law"])]);
        assert_eq!(joined(one, other), attributes(&[("site", &["north"]), ("team", &["people", "law"])]));
    }
}
