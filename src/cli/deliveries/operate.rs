//! `postrider deliveries retry` and `cancel`.

use postrider_actors::DeliveryId;
use sqlx::PgConnection;

use super::failed;
use crate::cli::failure::{Exit, Failure, exit_of};
use crate::cli::tell::tell;
use crate::queue::{self, OperateError, Operator};

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
