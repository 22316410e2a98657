//! `postrider deliveries retry` and `cancel`.

use clap::Args;
use postrider_actors::DeliveryId;
use sqlx::PgConnection;

use super::failed;
use crate::cli::failure::{Exit, Failure, exit_of};
use crate::cli::login::login_name;
use crate::cli::tell::tell;
use crate::queue::{self, OperateError, Operator};

/// Who does it.
#[derive(Debug, Args)]
pub(in crate::cli) struct By {
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

pub(super) async fn retry(connection: &mut PgConnection, id: DeliveryId, by: &Operator) -> Result<String, Failure> {
    queue::retry(connection, id, by).await.map_err(|error| failure(&error))?;
    tell(format!("delivery {id} is due now, by {}; its receiver may see it twice, under the same id", by.name()));
    Ok(String::new())
}

pub(super) async fn cancel(connection: &mut PgConnection, id: DeliveryId, by: &Operator) -> Result<String, Failure> {
    let before = queue::get(connection, id).await.map_err(failed("reading the delivery"))?;
    queue::cancel(connection, id, by).await.map_err(|error| failure(&error))?;
    tell(format!("delivery {id} is cancelled, by {}", by.name()));
    if before.is_some_and(|row| row.leased_until.is_some()) {
        tell("an attempt was under way and may still reach the receiver");
    }
    Ok(String::new())
}

/// What was not done, and where to look.
pub(super) fn failure(error: &OperateError) -> Failure {
    let exit = match error {
        OperateError::NotFound(_) => Exit::NotFound,
        OperateError::NotAllowed { .. } => Exit::NotAllowed,
        OperateError::Database(error) => exit_of(error),
    };
    let failure = Failure::of(exit, error);
    match error {
        OperateError::NotFound(_) => failure
            .advise("see `postrider deliveries list`; finished deliveries go after the time that they are kept for"),
        OperateError::NotAllowed { id, .. } => failure.advise(format!("see `postrider deliveries show {id}`")),
        OperateError::Database(_) => failure,
    }
}
