//! Which of the declared tools a model is offered.

use std::collections::{BTreeMap, BTreeSet};

/// The word for all tools.
const ALL: &str = "all";

/// The names that are offered, in the order in which they are declared.
///
/// `enabled` lists names and aliases, separated by commas, or is `all`; without it nothing is offered. An alias stands for the names in
/// its own list. Names of unknown tools are ignored, so that one list fits machines with different tools.
///
/// ```
/// use atlas_tools::offered;
///
/// let aliases = [("fs".to_owned(), "fs_ls,fs_cat".to_owned())].into();
/// assert_eq!(offered(&["fs_cat", "time", "fs_ls"], Some("fs, other"), &aliases), ["fs_cat", "fs_ls"]);
/// assert_eq!(offered(&["fs_cat"], None, &aliases), [""; 0]);
/// ```
pub fn offered<'n>(declared: &[&'n str], enabled: Option<&str>, aliases: &BTreeMap<String, String>) -> Vec<&'n str> {
    let names = |list: &str| list.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
    let Some(enabled) = enabled else { return Vec::new() };
    let listed = names(enabled);
    let all = listed.iter().any(|name| name == ALL);
    let wanted: BTreeSet<String> =
        listed.into_iter().flat_map(|name| aliases.get(&name).map_or_else(|| vec![name], |list| names(list))).collect();
    let mut seen = BTreeSet::new();
    declared.iter().copied().filter(|name| (all || wanted.contains(*name)) && seen.insert(*name)).collect()
}
