//! A notification as the content of an e-mail: what the inbox says, with the links to its page.

use crate::content::{
    AccountRecovered, AccountSecured, AddressAdded, AddressRemoved, AddressReplaced, Alert, Content, NewSignIn,
    PasskeyAdded, PasskeyRemoved,
};
use crate::directory::{Notice, NotificationMail};
use crate::identity::NotificationId;
use crate::links::Pages;

pub(super) fn content_of(mail: &NotificationMail, notification: NotificationId, pages: &Pages) -> Content {
    let NotificationMail { handle, at, notice, .. } = mail;
    let (handle, at, page) = (handle.clone(), *at, pages.notification(notification));
    match notice.clone() {
        Notice::AccountSecured { done } => AccountSecured { handle, at, done, page }.into(),
        Notice::AccountRecovered { undoable } => {
            AccountRecovered { handle, at, page, undo: undoable.map(|recovery| pages.undo(recovery)) }.into()
        }
        Notice::AddressReplaced => AddressReplaced { handle, at, page }.into(),
        Notice::AddressRemoved => AddressRemoved { handle, at, page }.into(),
        Notice::AddressAdded => AddressAdded { handle, at, page }.into(),
        Notice::PasskeyAdded { name } => PasskeyAdded { handle, at, passkey: name, page }.into(),
        Notice::PasskeyRemoved { name } => PasskeyRemoved { handle, at, passkey: name, page }.into(),
        Notice::NewSignIn { device } => NewSignIn { handle, at, device, page }.into(),
        Notice::Alert { title, text } => Alert { handle, title, text, page, alerts: pages.alerts() }.into(),
    }
}
