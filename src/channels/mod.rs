//! The channels that Postrider ships.

mod announcement;
mod backchannel_logout;
mod email;
mod post;

use std::time::Duration;

use postrider_actors::ChannelPolicy;

pub use self::announcement::{Announcement, AnnouncementPayload};
pub use self::backchannel_logout::{BackchannelLogout, LogoutPayload};
pub use self::email::{Email, EmailMessage, EmailPayload};

/// The names and MAX_AGEs of all of them.
pub fn policies() -> [ChannelPolicy; 3] {
    [
        ChannelPolicy { name: BackchannelLogout::channel_name(), max_age: BackchannelLogout::MAX_AGE },
        ChannelPolicy { name: Email::channel_name(), max_age: Email::MAX_AGE },
        ChannelPolicy { name: Announcement::channel_name(), max_age: Announcement::MAX_AGE },
    ]
}

/// How long a payload of a newer release is left for a newer replica.
const LEFT_FOR_NEWER: Duration = Duration::from_secs(60);
