//! Limits of what is read.

/// Bytes of a source file.
pub const SOURCE_BYTES_MAX: usize = 128 * 1024;

/// Tools of one file.
pub const TOOLS_MAX: usize = 128;

/// Parameters of one tool.
pub const PARAMETERS_MAX: usize = 64;

/// Depth of a type: lists of lists, alternatives of alternatives.
pub const TYPE_DEPTH_MAX: usize = 16;

/// Values that one parameter can be limited to.
pub const CHOICES_MAX: usize = 256;

/// Pauses of a parser, each after about a hundred of its operations. The largest files that people write take a fifth of them; a file that
/// was made to be ambiguous could take minutes.
pub(crate) const PARSER_PAUSES_MAX: u32 = 20_000;

/// Bytes that a parser reads at once.
pub(crate) const PARSER_READ_BYTES: usize = 4096;

/// Reads of a parser. It reads a file about once; one that makes it look ahead to the end of the file again and again could take minutes.
pub(crate) const PARSER_READS_MAX: u32 = 2000;
