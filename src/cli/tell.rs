//! What is said to people.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to stderr. Where nobody reads it any more there is nobody to tell.
pub(super) fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
