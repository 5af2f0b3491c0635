//! atlasctl.
