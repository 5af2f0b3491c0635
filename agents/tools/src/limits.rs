//! Limits of what is read.

/// Bytes of a source file.
pub const SOURCE_BYTES_MAX: usize = 512 * 1024;

/// Tools of one file.
pub const TOOLS_MAX: usize = 128;

/// Parameters of one tool.
pub const PARAMETERS_MAX: usize = 64;

/// Depth of a type: lists of lists, alternatives of alternatives.
pub const TYPE_DEPTH_MAX: usize = 16;

/// Values that one parameter can be limited to.
pub const CHOICES_MAX: usize = 256;

/// Pauses of a parser, each after about a hundred of its operations. A file of the largest size that a person wrote takes a small part of them;
/// a file that was made to be ambiguous could take minutes.
pub(crate) const PARSER_PAUSES_MAX: u32 = 200_000;
