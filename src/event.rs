//! Events: facts that the host records, and what channels see of them.

use std::any::Any;
use std::fmt;

use serde::Serialize;
use uuid::Uuid;

/// A fact that the host records. It is stored as JSON, and each registered channel turns it into deliveries.
///
/// ```
/// #[derive(serde::Serialize)]
/// struct PasswordChanged { account: uuid::Uuid }
///
/// impl postrider::Event for PasswordChanged {
///     const KIND: &'static str = "password_changed";
/// }
/// ```
pub trait Event: Serialize + Send + Sync + 'static {
    /// Its name in the table of events.
    const KIND: &'static str;
}

/// An event as a channel sees it while its deliveries are made.
pub struct Occurred<'a> {
    id: Uuid,
    kind: &'static str,
    fact: &'a (dyn Any + Send + Sync),
}

impl<'a> Occurred<'a> {
    pub(crate) fn new<E: Event>(id: Uuid, event: &'a E) -> Self {
        Self { id, kind: E::KIND, fact: event }
    }

    /// Its id in the table of events, a UUIDv7.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Its kind.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The event itself, where it is of this type.
    pub fn of<E: Event>(&self) -> Option<&'a E> {
        self.fact.downcast_ref()
    }
}

impl fmt::Debug for Occurred<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Occurred").field("id", &self.id).field("kind", &self.kind).finish_non_exhaustive()
    }
}
