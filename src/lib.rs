//! Postrider is an outbound delivery subsystem that a service embeds. The service writes a change and every message that
//! the change causes in one PostgreSQL transaction; supervised actors deliver the messages afterwards: at least once, in
//! order per key, without ever slowing the request.
//!
//! An identity provider that signs somebody out, so that every application hears of it:
//!
//! ```no_run
//! use std::sync::Arc;
//! use postrider::channels::BackchannelLogout;
//! use postrider::identity::{revoke_sessions, ReferenceDirectory, RevokedBy, SessionId, Sessions};
//! use postrider::outbound::{HttpsClient, HttpsConfig};
//! use postrider::signing::SigningKeys;
//! use postrider::{Channels, Subsystem, SubsystemConfig};
//!
//! # async fn host(pool: sqlx::PgPool, session: SessionId) -> Result<(), Box<dyn std::error::Error>> {
//! // Once, at start: the channels, and the actors over a small pool of their own.
//! let keys = SigningKeys::from_pem_files(&["/etc/idp/signing-2026.pem".into()])?;
//! let client = HttpsClient::new(HttpsConfig::default())?;
//! let logout =
//!     BackchannelLogout::new(Arc::new(ReferenceDirectory), client, "https://idp.example".into(), keys);
//! let channels = Channels::new(vec![Arc::new(logout)])?;
//! let options = pool.connect_options().as_ref().clone();
//! let subsystem = Subsystem::spawn(options, channels, SubsystemConfig::default()).await?;
//!
//! // In a request: the change and what it causes, in one transaction.
//! let mut transaction = pool.begin().await?;
//! let which = Sessions::One(session);
//! let revoked = revoke_sessions(&mut transaction, &subsystem.recorder(), which, RevokedBy::SignOut).await?;
//! transaction.commit().await?;
//! revoked.committed(); // wakes the actors; forgotten, they look within a second
//!
//! // At the end: what is under way is finished and recorded.
//! subsystem.shut_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! A host with messages of its own implements [`Event`] for its facts and [`Channel`] for a way to deliver them, and
//! calls [`Recorder::record`] in its transaction. [`actors`] is the supervised engine, without SQL and HTTP.
//!
//! What is promised, and which test proves it, stands in `docs/guarantees.md`; how it works in `docs/architecture.md`.

pub mod channel;
pub mod channels;
pub mod delivery;
pub mod directory;
pub mod event;
pub mod identity;
mod metrics;
pub mod outbound;
#[cfg(feature = "cli")]
pub mod private_postgres;
pub mod queue;
pub mod recorder;
pub mod signing;
pub mod subsystem;
mod wake;

pub use channel::{Channel, Channels};
pub use delivery::{InvalidDelivery, NewDelivery};
pub use event::{Event, Occurred};
pub use queue::{check_schema, migrate};
pub use recorder::{RecordError, Recorded, Recorder};
pub use subsystem::{Health, SetupError, Subsystem, SubsystemConfig};

pub use postrider_actors as actors;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
