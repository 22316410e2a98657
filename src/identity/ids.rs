//! Newtypes for what the domain's rows are known by.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, sqlx::Type)]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            pub(crate) fn generate() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// An account.
    AccountId
);
id!(
    /// A session.
    SessionId
);
id!(
    /// An e-mail address of an account. One that replaces another has an id of its own.
    AddressId
);
id!(
    /// A recovery: an account's way back in, by a link to its primary address.
    RecoveryId
);
id!(
    /// A notification in an account's inbox.
    NotificationId
);
id!(
    /// An administrator's announcement.
    AnnouncementId
);
