//! Reading answers of the interface into its types. JSON output prints the server's answer unchanged.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;

/// Reads an answer. A missing member gets its default, because the server may be too old to know it; one that this program does not know is
/// ignored, because the server may be newer.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Failure> {
    T::deserialize(value).map_err(Failure::answer)
}

#[cfg(test)]
mod tests {
    use atlas_api::types::{Agent, ClusterView, Explanation, Job, JobChange, JobTree, Line, Node, Trigger};
    use serde_json::json;

    use super::*;

    fn both<T: DeserializeOwned + Default + PartialEq + std::fmt::Debug>() {
        assert_eq!(read::<T>(&json!({})).expect("of an older server"), T::default());
        let newer = json!({ "of_a_newer_server": { "a": [1] } });
        assert_eq!(read::<T>(&newer).expect("of a newer server"), T::default());
    }

    #[test]
    fn answers_of_older_and_newer_servers_are_read() {
        both::<Agent>();
        both::<ClusterView>();
        both::<Explanation>();
        both::<Job>();
        both::<JobChange>();
        both::<JobTree>();
        both::<Line>();
        both::<Node>();
        both::<Trigger>();
    }
}
