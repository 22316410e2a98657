//! postrider
