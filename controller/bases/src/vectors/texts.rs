//! The texts of chunks, for the job that makes vectors of them or ranks them.

use std::collections::HashMap;

use atlas_desk::{Caller, Consistency, Error};

use super::shown;
use crate::Bases;
use crate::readers::Readable;

impl Bases {
    /// The texts of chunks by their keys, in order, from the first one as many as have so many bytes together; at least one. Fails if a chunk
    /// is no longer in the base, or in no document that the caller may read: nobody can tell which one it is.
    pub async fn chunk_texts(
        &self,
        caller: &Caller,
        name: &str,
        keys: Vec<String>,
        bytes_max: usize,
    ) -> Result<Vec<String>, Error> {
        let (object, spec) = self.find(caller, name, Consistency::Linearizable).await?;
        let loaded = self.loaded(&object, &spec).await?;
        let gone = Error::Malformed(format!("a chunk is no longer in the base \"{name}\"; it has changed"));
        let readable = Readable::new(&loaded.readers, caller);
        let found = self.off(move || {
            let may_read: Vec<bool> = loaded.rows.iter().map(|row| readable.may_read(row)).collect();
            let is_readable = |chunk: u32| {
                let place = loaded.row(chunk).map(|(place, _)| place);
                place.and_then(|place| may_read.get(place)).copied().unwrap_or(false)
            };
            let mut places: HashMap<&str, Option<u32>> = keys.iter().map(|key| (key.as_str(), None)).collect();
            for (chunk, key) in (0_u32..).zip(&loaded.keys) {
                if let Some(place) = places.get_mut(shown(key).as_str())
                    && place.is_none()
                    && is_readable(chunk)
                {
                    *place = Some(chunk);
                }
            }
            let (mut texts, mut bytes) = (Vec::<String>::new(), 0);
            for key in &keys {
                let chunk = places.get(key.as_str()).copied().flatten();
                let text = &loaded.index.chunk(chunk?)?.text;
                bytes += text.len();
                if bytes > bytes_max && !texts.is_empty() {
                    break;
                }
                texts.push(text.clone());
            }
            Some(texts)
        });
        found.await?.ok_or(gone)
    }
}
