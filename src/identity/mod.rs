//! The reference domain: accounts, addresses, sessions and OIDC clients, inboxes and announcements of an identity
//! provider, in the schema `postrider_identity`, so that the channels work end to end.
//!
//! Each act takes a connection inside the caller's transaction and locks the account first, so that the acts of one
//! account follow one another. Times are the database's.

mod clients;
mod directory;
mod events;
mod ids;
mod notice;
mod preferences;
mod sessions;

pub use self::clients::{NewClient, RegistrationError, register_client};
pub use self::directory::ReferenceDirectory;
pub use self::events::{AnnouncementSent, Notified, RecoveryRequested, VerificationRequested};
pub use self::ids::{AccountId, AddressId, AnnouncementId, NotificationId, RecoveryId, SessionId};
pub use self::preferences::{set_announcements, wants_announcements};
pub use self::sessions::{
    RevokeError, Revoked, RevokedBy, SessionRevoked, Sessions, create_account, create_session, delete_account,
    issue_code, redeem_code, revoke_sessions,
};
