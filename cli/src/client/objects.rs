//! All objects of a kind, page by page.

use serde_json::Value;

use super::Client;
use crate::failure::Failure;

/// The objects of one page of a list.
const PAGE: &str = "1000";

/// All objects of a kind in a namespace.
pub(crate) async fn all_objects(client: &Client, kind: &str) -> Result<Vec<Value>, Failure> {
    let (mut objects, mut after): (Vec<Value>, Option<String>) = (Vec::new(), None);
    loop {
        let mut query = vec![("limit", PAGE)];
        query.extend(after.as_deref().map(|after| ("after", after)));
        let mut page = client.get(&["api", "objects", kind], &query).await?;
        if let Value::Array(found) = page["objects"].take() {
            objects.extend(found);
        }
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() {
            return Ok(objects);
        }
    }
}
