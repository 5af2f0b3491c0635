//! Chunks that can be searched, and the search.

use crate::fusion::Scored;
use crate::postings::Postings;
use crate::{Chunk, Fusion, VectorError, Vectors};

/// A search.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    pub text: &'a str,
    /// The embedding of the text, by the model that made those of the chunks.
    pub vector: Option<&'a [f32]>,
    /// Most hits.
    pub top: usize,
    /// Whether a chunk may be found; all may without it. What may not is no candidate: the answer is the one of an index that has only
    /// the others.
    pub is_readable: Option<&'a dyn Fn(u32) -> bool>,
    pub fusion: Fusion,
}

impl<'a> Query<'a> {
    /// A search by words alone, in all chunks.
    pub fn new(text: &'a str, top: usize) -> Self {
        Self { text, vector: None, top, is_readable: None, fusion: Fusion::default() }
    }
}

/// A place in one of the two orders.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rank {
    /// Counted from 1.
    pub place: u32,
    /// BM25 for words, the cosine for vectors.
    pub score: f64,
}

/// A chunk that fits a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The number of the chunk in its index.
    pub chunk: u32,
    /// What orders hits: by words alone the score of the words, otherwise that of the [`Fusion`].
    pub score: f64,
    /// Its place among the chunks that the words propose.
    pub by_words: Option<Rank>,
    /// Its place among the chunks that the vector proposes.
    pub by_vector: Option<Rank>,
}

/// Chunks that can be searched by words, and by vectors if they have them. A chunk has the number of its place, from 0.
#[derive(Debug, Clone, Default)]
pub struct Index {
    chunks: Vec<Chunk>,
    postings: Postings,
    vectors: Option<Vectors>,
}

impl Index {
    /// An index of chunks by their words. Chunks after the first `u32::MAX` are left out.
    pub fn new(mut chunks: Vec<Chunk>) -> Self {
        chunks.truncate(u32::MAX as usize);
        let postings = Postings::new(chunks.iter().map(|chunk| chunk.text.as_str()));
        Self { chunks, postings, vectors: None }
    }

    /// An index of chunks by their words and their vectors, of which each chunk has one.
    pub fn with_vectors(chunks: Vec<Chunk>, vectors: Vectors) -> Result<Self, VectorError> {
        if vectors.len() != chunks.len() {
            return Err(VectorError::Count { rows: vectors.len(), chunks: chunks.len() });
        }
        Ok(Self { vectors: Some(vectors), ..Self::new(chunks) })
    }

    /// How many chunks it has.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether it has no chunks.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Its chunks, in their order.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The chunk of a hit.
    pub fn chunk(&self, number: u32) -> Option<&Chunk> {
        self.chunks.get(number as usize)
    }

    /// How many numbers its vectors have; `None` if it has no vectors.
    pub fn dimension(&self) -> Option<usize> {
        self.vectors.as_ref().map(Vectors::dimension)
    }

    /// The best chunks for a question by its words, the best first, at most `top`. Chunks that share no word with it are no hits; among
    /// equals, the one that was added first is first.
    pub fn search_words(&self, text: &str, top: usize) -> Vec<&Chunk> {
        let hits = self.find(&Query::new(text, top), None, &|_| true);
        hits.iter().filter_map(|hit| self.chunk(hit.chunk)).collect()
    }

    /// The best chunks for a question, the best first. By words, chunks that share none with it are no hits; by vectors, those whose
    /// cosine is not positive. Fails if the question has a vector that does not fit those of the chunks.
    pub fn search(&self, question: &Query<'_>) -> Result<Vec<Hit>, VectorError> {
        let Some(may_read) = question.is_readable else { return self.among(question, &|_| true) };
        // Asked once for each chunk, whatever it answers.
        let readable: Vec<bool> = (0_u32..).take(self.chunks.len()).map(may_read).collect();
        self.among(question, &|chunk| readable.get(chunk as usize).copied().unwrap_or(false))
    }

    fn among(&self, question: &Query<'_>, is_readable: &impl Fn(u32) -> bool) -> Result<Vec<Hit>, VectorError> {
        let Some(vector) = question.vector else { return Ok(self.find(question, None, is_readable)) };
        let cosines = self.vectors.as_ref().ok_or(VectorError::NoVectors)?.cosines(vector, is_readable)?;
        Ok(self.find(question, Some(&cosines), is_readable))
    }

    fn find(&self, question: &Query<'_>, cosines: Option<&[f64]>, is_readable: &impl Fn(u32) -> bool) -> Vec<Hit> {
        let words = self.postings.scores(question.text, is_readable);
        Scored { words: &words, cosines, is_readable }.best(question.fusion, question.top)
    }
}

#[cfg(test)]
mod tests;
