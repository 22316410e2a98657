//! postrider

#[cfg(feature = "cli")]
pub mod private_postgres;
