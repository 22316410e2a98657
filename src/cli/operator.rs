//! Who does what is done by the command line, for the record.

use clap::Args;

use super::failure::{Exit, Failure};
use super::login::login_name;
use crate::queue::Operator;

/// Who does it.
#[derive(Debug, Args)]
pub(super) struct By {
    /// Who does it, for the record. Default: the login name.
    #[arg(long = "by", env = "POSTRIDER_OPERATOR", value_name = "NAME")]
    name: Option<String>,
}

impl By {
    pub(super) fn operator(&self) -> Result<Operator, Failure> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => login_name().ok_or_else(nobody)?,
        };
        Operator::new(name).ok_or_else(|| {
            Failure::new(Exit::Usage, "--by (POSTRIDER_OPERATOR) is no name")
                .advise("give 1 to 200 characters, none of them a control character")
        })
    }
}

/// There is nobody to record it by.
pub(super) fn nobody() -> Failure {
    Failure::new(Exit::Usage, "the login name is not known").advise("say who does it with --by or POSTRIDER_OPERATOR")
}
