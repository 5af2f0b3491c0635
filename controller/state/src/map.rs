//! The persistent collections that the state is made of: ordered, and cloned in constant time.

pub(crate) type Map<K, V> = imbl::OrdMap<K, V>;
pub(crate) type Set<T> = imbl::OrdSet<T>;
