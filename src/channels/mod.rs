//! The channels that Postrider ships: one file each.

mod backchannel_logout;

pub use self::backchannel_logout::{BackchannelLogout, LogoutPayload};
