//! postrider
pub mod outbound;
