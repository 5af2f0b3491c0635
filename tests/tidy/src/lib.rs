//! Rules that no lint checks: purity of the pure crates, banned and single dependencies, manifests, sources, documents, citations.
//!
//! Each rule is a test whose message says what to fix. Rules about code that the compiler can hold are lints instead.

#[cfg(test)]
mod arrows;
#[cfg(test)]
mod circles;
#[cfg(test)]
mod citations;
#[cfg(test)]
mod definitions;
#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod item_docs;
#[cfg(test)]
mod manifests;
#[cfg(test)]
mod map;
#[cfg(test)]
mod names;
#[cfg(test)]
mod numbered;
#[cfg(test)]
mod purity;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod words;
