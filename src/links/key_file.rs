//! Keys from files and to files, and what can be wrong with them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

use super::key::LinkKey;
use super::keys::LinkKeys;
use crate::signing::write_private;

/// No key file is longer, in bytes.
const MAX_FILE_BYTES: u64 = 4096;

/// What is wrong with a key file, in a closed list: nothing of its content is ever repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkKeyProblem {
    /// The file could not be opened or read.
    #[error("cannot be read: {0}")]
    Unreadable(
        /// What the operating system said.
        io::ErrorKind,
    ),
    /// The file could not be created or written; one that exists is never overwritten.
    #[error("cannot be written: {0}")]
    Unwritable(
        /// What the operating system said.
        io::ErrorKind,
    ),
    /// Over 4 KiB.
    #[error("is over 4 KiB, longer than any key")]
    TooLarge,
    /// Not one line of text.
    #[error("is not one line of text")]
    NotOneLine,
    /// Neither hex digits nor base64.
    #[error("is neither hex digits nor base64")]
    NotHexNorBase64,
    /// A secret of under 32 or over 1024 bytes.
    #[error("does not hold 32 to 1024 bytes: expected 64 hex digits or more, or base64 of as much")]
    Length,
    /// There is no file to read.
    #[error("is missing: no key file was named")]
    NoFile,
}

/// A file that holds no key for links.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("link key {} {problem}", path.display())]
pub struct LinkKeyError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: LinkKeyProblem,
}

impl LinkKey {
    /// Reads one line of 64 hex digits or more, or of base64 (RFC 4648 4 or 5, with or without padding) of 32 bytes or
    /// more. What can be read as hex digits is read so.
    ///
    /// # Errors
    /// Whatever is not exactly that.
    pub fn from_text(text: &str) -> Result<Self, LinkKeyProblem> {
        let line =
            text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line)).trim_matches(' ');
        if line.is_empty() || line.chars().any(|character| character.is_control() || character == ' ') {
            return Err(LinkKeyProblem::NotOneLine);
        }
        let secret = from_hex(line).or_else(|| from_base64(line)).ok_or(LinkKeyProblem::NotHexNorBase64)?;
        Self::from_bytes(&secret).ok_or(LinkKeyProblem::Length)
    }

    /// Reads a file as [`LinkKey::from_text`] does. Blocks for the read. Warns of one that others may read.
    ///
    /// # Errors
    /// As there, or where the file cannot be read or is over 4 KiB. The error names the path.
    pub fn from_file(path: &Path) -> Result<Self, LinkKeyError> {
        let key = read(path).and_then(|text| Self::from_text(&text)).map_err(at(path))?;
        if readable_by_others(path) {
            tracing::warn!(file = %path.display(), "others than its owner may read this link key: chmod 600");
        }
        Ok(key)
    }

    /// The **secret** as one line of hex digits, for a file that its owner alone may read.
    pub fn to_text(&self) -> String {
        let mut line: String = self.secret().iter().map(|byte| format!("{byte:02x}")).collect();
        line.push('\n');
        line
    }

    /// Writes the **secret** to a new file that its owner alone may read and write (mode 0600). Blocks until it is on
    /// disk.
    ///
    /// # Errors
    /// Where the file exists already (it is left as it is) or cannot be written. The error names the path.
    pub fn write_file(&self, path: &Path) -> Result<(), LinkKeyError> {
        let unwritable = |error: io::Error| at(path)(LinkKeyProblem::Unwritable(error.kind()));
        write_private(path, self.to_text().as_bytes()).map_err(unwritable)
    }
}

impl LinkKeys {
    /// Reads files as [`LinkKey::from_file`] does, first the key that makes new tokens; [`LinkKeys`] says how to change it.
    ///
    /// # Errors
    /// The first file that holds no key, or no file at all.
    pub fn from_files(paths: &[PathBuf]) -> Result<Self, LinkKeyError> {
        let keys = paths.iter().map(|path| LinkKey::from_file(path)).collect::<Result<Vec<_>, _>>()?;
        Self::new(&keys).map_err(|_| at(Path::new(""))(LinkKeyProblem::NoFile))
    }
}

fn at(path: &Path) -> impl Fn(LinkKeyProblem) -> LinkKeyError {
    move |problem| LinkKeyError { path: path.to_owned(), problem }
}

fn read(path: &Path) -> Result<String, LinkKeyProblem> {
    let unreadable = |error: io::Error| LinkKeyProblem::Unreadable(error.kind());
    let mut content = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(LinkKeyProblem::TooLarge);
    }
    String::from_utf8(content).map_err(|_| LinkKeyProblem::NotHexNorBase64)
}

#[cfg(unix)]
fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn readable_by_others(_: &Path) -> bool {
    false
}

fn from_hex(line: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = line.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

fn from_base64(line: &str) -> Option<Vec<u8>> {
    let bare = line.trim_end_matches('=');
    BASE64_STANDARD_NO_PAD.decode(bare).or_else(|_| BASE64_URL_SAFE_NO_PAD.decode(bare)).ok()
}
