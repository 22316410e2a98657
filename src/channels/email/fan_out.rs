//! The deliveries that events cause.

use sqlx::PgConnection;

use super::notices::content_of;
use super::payload::{EmailMessage, EmailPayload};
use crate::delivery::{InvalidDelivery, NewDelivery};
use crate::directory::Directory;
use crate::event::Occurred;
use crate::identity::{AccountId, AddressId, Notified, RecoveryRequested, VerificationRequested};
use crate::links::Pages;
use crate::recorder::RecordError;

pub(super) async fn deliveries(
    directory: &dyn Directory,
    pages: &Pages,
    connection: &mut PgConnection,
    event: &Occurred<'_>,
) -> Result<Vec<NewDelivery>, RecordError> {
    if let Some(VerificationRequested { account, address }) = event.of().copied() {
        let message = EmailMessage::VerificationLink { address };
        return Ok(vec![delivery(account, address, message)?.about(address.to_string())?]);
    }
    if let Some(RecoveryRequested { account, recovery, address }) = event.of().copied() {
        let message = EmailMessage::RecoveryLink { recovery, address };
        return Ok(vec![delivery(account, address, message)?.about(recovery.to_string())?]);
    }
    match event.of::<Notified>() {
        Some(notified) => notices(directory, pages, connection, notified).await,
        None => Ok(Vec::new()),
    }
}

/// One for each address that the notification names.
async fn notices(
    directory: &dyn Directory,
    pages: &Pages,
    connection: &mut PgConnection,
    notified: &Notified,
) -> Result<Vec<NewDelivery>, RecordError> {
    let notification = notified.notification;
    let Some(mail) = directory.notification(connection, notification).await? else { return Ok(Vec::new()) };
    let content = content_of(&mail, notification, pages);
    let mut deliveries = Vec::with_capacity(mail.addressees.len());
    for to in mail.addressees {
        let notice = Box::new(content.clone());
        let message = EmailMessage::Notification { notification, address: to.address, notice };
        deliveries.push(delivery(mail.account, to.address_id, message)?.about(notification.to_string())?);
    }
    Ok(deliveries)
}

/// The destination names the account and the address's id, never the address.
fn delivery(account: AccountId, address: AddressId, message: EmailMessage) -> Result<NewDelivery, InvalidDelivery> {
    let payload = EmailPayload { account, message };
    NewDelivery::new(account.to_string(), format!("account {account} address {address}"), &payload)
}
