//! The reference domain: accounts, addresses, sessions and OIDC clients, inboxes and announcements of an identity
//! provider, in the schema `postrider_identity`, so that the channels work end to end.
//!
//! Each act takes a connection inside the caller's transaction and locks the account first, so that the acts of one
//! account follow one another. Times are the database's.

mod accounts;
mod acts;
mod address_ends;
mod addresses;
mod announcements;
mod clients;
mod directory;
mod events;
mod ids;
mod inbox;
mod notice;
mod notify;
mod preferences;
mod purge;
mod recovery;
mod secure;
mod sessions;
mod verification;

pub use self::accounts::{AccountState, create_account, set_state};
pub use self::acts::{ActError, Acted, Missing};
pub use self::address_ends::{remove_address, replace_address};
pub use self::addresses::{Address, add_address, addresses, make_primary, primary};
pub use self::announcements::{AnnouncementDraft, Reach, draft_announcement, preview_announcement, send_announcement};
pub use self::clients::{NewClient, RegistrationError, register_client};
pub use self::directory::ReferenceDirectory;
pub use self::events::{AnnouncementSent, Notified, RecoveryRequested, VerificationRequested};
pub use self::ids::{AccountId, AddressId, AnnouncementId, NotificationId, RecoveryId, SessionId};
pub use self::inbox::{InboxEntry, InboxText, inbox, mark_read};
pub use self::notify::notify;
pub use self::preferences::{set_announcements, wants_announcements};
pub use self::purge::delete_account;
pub use self::recovery::{Recovered, cancel_recovery, request_recovery, undo_recovery, use_recovery};
pub use self::secure::secure_account;
pub use self::sessions::{
    RevokeError, Revoked, RevokedBy, SessionRevoked, Sessions, create_session, issue_code, redeem_code, revoke_sessions,
};
pub use self::verification::{Verified, request_verification, verify_address};
