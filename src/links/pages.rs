//! Where the host's pages are that e-mails link to.

use std::fmt;

use url::{Host, Url};

use super::token::LinkToken;
use crate::identity::{NotificationId, RecoveryId};

/// The longest link, in octets, whatever token or id is in it: a header line of 998 octets (RFC 5322 2.1.1) holds it.
const MAX_URL_BYTES: usize = 900;

/// As long as any token, and as any id.
const TOKEN_SAMPLE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const ID_SAMPLE: &str = "00000000-0000-7000-8000-000000000000";

/// A page whose path a host may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// Verifies an address; `{token}` in its path.
    Verification,
    /// Recovers an account; `{token}` in its path.
    Recovery,
    /// Shows a notification; `{id}` in its path.
    Notification,
    /// Undoes a recovery; `{id}` in its path.
    Undo,
    /// Lists alerts; nothing in its path. There is none unless it is set.
    Alerts,
    /// Ends a subscription by one click; `{token}` in its path.
    Unsubscribe,
}

impl Page {
    const fn placeholder(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Verification | Self::Recovery | Self::Unsubscribe => Some(("{token}", TOKEN_SAMPLE)),
            Self::Notification | Self::Undo => Some(("{id}", ID_SAMPLE)),
            Self::Alerts => None,
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Verification => "verification",
            Self::Recovery => "recovery",
            Self::Notification => "notification",
            Self::Undo => "undo",
            Self::Alerts => "alerts",
            Self::Unsubscribe => "unsubscribe",
        })
    }
}

/// Pages that cannot be linked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PagesError {
    /// The base is not an absolute URL.
    #[error("the pages' base is not an absolute URL")]
    NotAbsolute,
    /// Neither https, nor http to the machine itself.
    #[error("the pages' base is not https (http is for localhost alone)")]
    Scheme,
    /// A user, a query or a fragment in the base.
    #[error("the pages' base has a user, a query or a fragment")]
    MoreThanAPath,
    /// A base with a comma or something else that would end a link in a header (RFC 2369 2).
    #[error("the pages' base holds a character that cannot stand in a link")]
    BaseCharacter,
    /// A path that does not begin with a slash.
    #[error("the path of the {0} page does not begin with /")]
    NoSlash(
        /// Which page.
        Page,
    ),
    /// A path without its placeholder, with two, or with another.
    #[error("the path of the {page} page needs {} once, and no other braces", placeholder.unwrap_or("no placeholder"))]
    Placeholder {
        /// Which page.
        page: Page,
        /// What has to be in it.
        placeholder: Option<&'static str>,
    },
    /// A path with a character that a URL does not hold unencoded, with a comma, or with a step such as `..`.
    #[error("the path of the {0} page holds something that cannot stand in a link")]
    PathCharacter(
        /// Which page.
        Page,
    ),
    /// A placeholder in the fragment, which a browser keeps to itself: a POST by a mail system would lack it.
    #[error("the path of the unsubscribe page has a fragment, which a one-click POST does not send")]
    Fragment,
    /// Over 900 octets with its token or id.
    #[error("a link to the {0} page would be over 900 octets")]
    TooLong(
        /// Which page.
        Page,
    ),
}

/// Where the host's pages are. Each path can be set; the defaults are
///
/// | page | path |
/// | --- | --- |
/// | verification | `/email/verify/{token}` |
/// | recovery | `/recover/{token}` |
/// | notification | `/notifications/{id}` |
/// | undo | `/recoveries/{id}/undo` |
/// | alerts | none |
/// | unsubscribe | `/unsubscribe/{token}` |
///
/// A token stands in the path, so that a page works without script, and mail systems that add to a link's query leave it
/// whole. It is then in the host's access log and in what a browser tells the next page: let these pages answer with
/// `Referrer-Policy: no-referrer`, keep their paths out of logs, and change something on POST alone, as scanners follow
/// every link. A host whose pages have script may prefer `/email/verify#token={token}`.
///
/// ```
/// use postrider::links::{Page, Pages};
///
/// let pages = Pages::new("https://id.example/account")?.with_path(Page::Alerts, "/inbox?tab=alerts")?;
/// assert_eq!(pages.home(), "https://id.example/account");
/// assert_eq!(pages.alerts().as_deref(), Some("https://id.example/account/inbox?tab=alerts"));
/// # Ok::<(), postrider::links::PagesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    home: String,
    verification: String,
    recovery: String,
    notification: String,
    undo: String,
    alerts: Option<String>,
    unsubscribe: String,
}

impl Pages {
    /// Pages below `base`, at the default paths.
    ///
    /// # Errors
    /// A base that is no https URL (or http to localhost or a loopback address) without user, query and fragment.
    pub fn new(base: &str) -> Result<Self, PagesError> {
        let url = Url::parse(base).map_err(|_| PagesError::NotAbsolute)?;
        let loopback = match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(PagesError::NotAbsolute),
        };
        if url.scheme() != "https" && !(url.scheme() == "http" && loopback) {
            return Err(PagesError::Scheme);
        }
        let more = !url.username().is_empty() || url.password().is_some();
        if more || url.query().is_some() || url.fragment().is_some() {
            return Err(PagesError::MoreThanAPath);
        }
        let home = url.as_str();
        if !home.bytes().all(may_stand_in_a_link) {
            return Err(PagesError::BaseCharacter);
        }
        let below = |path: &str| format!("{}{path}", home.trim_end_matches('/'));
        let pages = Self {
            verification: below("/email/verify/{token}"),
            recovery: below("/recover/{token}"),
            notification: below("/notifications/{id}"),
            undo: below("/recoveries/{id}/undo"),
            alerts: None,
            unsubscribe: below("/unsubscribe/{token}"),
            home: home.to_owned(),
        };
        for (page, template) in [
            (Page::Verification, &pages.verification),
            (Page::Recovery, &pages.recovery),
            (Page::Notification, &pages.notification),
            (Page::Undo, &pages.undo),
            (Page::Unsubscribe, &pages.unsubscribe),
        ] {
            check(page, template)?;
        }
        Ok(pages)
    }

    /// Puts a page at another path below the base: it begins with `/` and holds the page's placeholder once.
    ///
    /// # Errors
    /// A path that no link can be made of.
    pub fn with_path(mut self, page: Page, path: &str) -> Result<Self, PagesError> {
        if !path.starts_with('/') {
            return Err(PagesError::NoSlash(page));
        }
        let template = format!("{}{path}", self.home.trim_end_matches('/'));
        check(page, &template)?;
        match page {
            Page::Verification => self.verification = template,
            Page::Recovery => self.recovery = template,
            Page::Notification => self.notification = template,
            Page::Undo => self.undo = template,
            Page::Alerts => self.alerts = Some(template),
            Page::Unsubscribe => self.unsubscribe = template,
        }
        Ok(self)
    }

    /// The host's own page.
    pub fn home(&self) -> String {
        self.home.clone()
    }

    /// Verifies an address.
    pub fn verification(&self, token: &LinkToken) -> String {
        self.verification.replace("{token}", token.as_str())
    }

    /// Recovers an account.
    pub fn recovery(&self, token: &LinkToken) -> String {
        self.recovery.replace("{token}", token.as_str())
    }

    /// Shows a notification.
    pub fn notification(&self, notification: NotificationId) -> String {
        self.notification.replace("{id}", &notification.to_string())
    }

    /// Undoes a recovery.
    pub fn undo(&self, recovery: RecoveryId) -> String {
        self.undo.replace("{id}", &recovery.to_string())
    }

    /// Lists alerts; `None` where no such page is served.
    pub fn alerts(&self) -> Option<String> {
        self.alerts.clone()
    }

    /// Ends a subscription by one click (RFC 8058): a token of
    /// [`LinkKeys::unsubscribe_token`](super::LinkKeys::unsubscribe_token).
    pub fn unsubscribe(&self, token: &str) -> String {
        self.unsubscribe.replace("{token}", token)
    }
}

/// Whether the template makes a link that is a URL as it stands, with any token or id in it.
fn check(page: Page, template: &str) -> Result<(), PagesError> {
    let (link, placeholder) = match page.placeholder() {
        Some((placeholder, sample)) => (template.replacen(placeholder, sample, 1), Some(placeholder)),
        None => (template.to_owned(), None),
    };
    if link.contains(['{', '}']) || (placeholder.is_some() && link == template) {
        return Err(PagesError::Placeholder { page, placeholder });
    }
    if page == Page::Unsubscribe && link.contains('#') {
        return Err(PagesError::Fragment);
    }
    let as_it_stands = Url::parse(&link).is_ok_and(|url| url.as_str() == link);
    if !as_it_stands || !link.bytes().all(may_stand_in_a_link) {
        return Err(PagesError::PathCharacter(page));
    }
    if link.len() > MAX_URL_BYTES { Err(PagesError::TooLong(page)) } else { Ok(()) }
}

/// The characters of a URI (RFC 3986 2), without the comma, which parts links in List-Unsubscribe (RFC 2369 2).
fn may_stand_in_a_link(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+;=%".contains(&byte)
}
