//! engine
pub mod ids;
pub mod outcome;
pub use ids::*;
pub use outcome::*;
