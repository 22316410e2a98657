//! Giving back leases whose attempt never began.

use postrider_actors::{ChannelName, ClaimToken, DeliveryId};
use sqlx::PgConnection;
use uuid::Uuid;

/// Due at once, the attempt not counted; those that the token no longer holds are left alone.
pub(super) async fn give_back(
    connection: &mut PgConnection,
    channel: &ChannelName,
    leases: &[(DeliveryId, ClaimToken)],
) -> Result<(), sqlx::Error> {
    let mut leases = leases.to_vec();
    // Rows are locked in the order of their ids, whatever order they come back in.
    leases.sort_unstable_by_key(|(delivery, _)| *delivery);
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) =
        leases.iter().map(|(delivery, token)| (delivery.as_uuid(), token.as_uuid())).unzip();
    sqlx::query(
        "update postrider.deliveries d
            set claim_token = null, due_at = statement_timestamp(), ready_at = statement_timestamp(), attempt = d.attempt - 1
           from unnest($1::uuid[], $2::uuid[]) as l (id, token)
          where d.id = l.id and d.claim_token = l.token and d.channel = $3",
    )
    .bind(ids)
    .bind(tokens)
    .bind(channel.as_str())
    .execute(connection)
    .await?;
    Ok(())
}
