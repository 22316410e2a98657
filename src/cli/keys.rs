//! `postrider keys`.

use std::path::PathBuf;

use clap::Subcommand;

use super::failure::{Exit, Failure};
use super::tell::tell;
use crate::links::{LinkKey, LinkKeyProblem};
use crate::mail::DkimSigner;
use crate::signing::{KeyProblem, SigningAlgorithm, SigningKey, SigningKeys};

const ANOTHER_FILE: &str = "choose another file: one that exists is never overwritten";

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Make a private key in a new file that its owner alone may read. Prints its key id.
    Generate {
        /// What it signs with: ES256, RS256 or EdDSA.
        #[arg(long, env = "POSTRIDER_KEY_ALGORITHM", default_value_t)]
        algorithm: SigningAlgorithm,
        /// The file, which must not exist yet.
        file: PathBuf,
    },
    /// Make a key that the tokens of links in e-mails are derived from, in a new file that its owner alone may read.
    GenerateLinkKey {
        /// The file, which must not exist yet.
        file: PathBuf,
    },
    /// Print the name and the text of the DNS record (TXT) by which receivers verify what is signed with a DKIM key.
    DkimRecord {
        /// The domain of the address that e-mail is from.
        #[arg(long, value_name = "NAME")]
        domain: String,
        /// The name under which the key is published.
        #[arg(long, env = "POSTRIDER_DKIM_SELECTOR", value_name = "NAME")]
        selector: String,
        /// The file of the private key: RSA or Ed25519.
        file: PathBuf,
    },
    /// Print the public keys as a JSON Web Key Set.
    Jwks {
        /// Files of private keys.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

pub(super) fn run(command: &KeysCommand) -> Result<String, Failure> {
    match command {
        KeysCommand::Generate { algorithm, file } => {
            let key = SigningKey::generate(*algorithm).map_err(|error| Failure::of(Exit::Failed, &error))?;
            key.write_pem_file(file).map_err(|error| {
                let failure = Failure::of(Exit::Failed, &error);
                match error.problem {
                    KeyProblem::Unwritable(std::io::ErrorKind::AlreadyExists) => failure.advise(ANOTHER_FILE),
                    _ => failure,
                }
            })?;
            tell(format!("wrote a {algorithm} key to {}", file.display()));
            Ok(format!("{}\n", key.kid()))
        }
        KeysCommand::GenerateLinkKey { file } => {
            let key = LinkKey::generate().map_err(|error| Failure::of(Exit::Failed, &error))?;
            key.write_file(file).map_err(|error| {
                let failure = Failure::of(Exit::Failed, &error);
                match error.problem {
                    LinkKeyProblem::Unwritable(std::io::ErrorKind::AlreadyExists) => failure.advise(ANOTHER_FILE),
                    _ => failure,
                }
            })?;
            tell(format!("wrote a link key to {}", file.display()));
            Ok(String::new())
        }
        KeysCommand::DkimRecord { domain, selector, file } => {
            let key = SigningKey::from_pem_file(file).map_err(|error| Failure::of(Exit::Usage, &error))?;
            let signer = DkimSigner::new(domain, selector, key).map_err(|error| Failure::of(Exit::Usage, &error))?;
            let record = signer.record().map_err(|error| Failure::of(Exit::Failed, &error))?;
            Ok(format!("{}. TXT {}\n", signer.record_name(), quoted_strings(&record)))
        }
        KeysCommand::Jwks { files } => {
            let keys = SigningKeys::from_pem_files(files).map_err(|error| Failure::of(Exit::Usage, &error))?;
            Ok(format!("{:#}\n", keys.jwks()))
        }
    }
}

/// As zone files have it: strings of 255 octets at most (RFC 1035 3.3, 5.1). The record is ASCII without quotes.
fn quoted_strings(record: &str) -> String {
    let strings = record.as_bytes().chunks(255).map(|chunk| format!("\"{}\"", String::from_utf8_lossy(chunk)));
    strings.collect::<Vec<_>>().join(" ")
}
