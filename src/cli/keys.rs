//! `postrider keys`.

use std::path::PathBuf;

use clap::Subcommand;

use super::failure::{Exit, Failure};
use super::tell::tell;
use crate::links::{LinkKey, LinkKeyProblem};
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
        KeysCommand::Jwks { files } => {
            let keys = SigningKeys::from_pem_files(files).map_err(|error| Failure::of(Exit::Usage, &error))?;
            Ok(format!("{:#}\n", keys.jwks()))
        }
    }
}
