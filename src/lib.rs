//! postrider

pub mod signing;
