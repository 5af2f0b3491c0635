//! Transcripts of atlasctl.
