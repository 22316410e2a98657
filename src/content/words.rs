//! What people wrote: alerts and announcements.

use serde::{Deserialize, Serialize};

use super::facts::{Facts, Stated, sample_page};

/// Something that the account's owner should look at.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// The account's handle.
    pub handle: String,
    /// What it is about, in a line.
    pub title: String,
    /// The text: plain, in paragraphs.
    pub text: String,
    /// The notification's page.
    pub page: String,
    /// The Alerts tab, while one is served.
    pub alerts: Option<String>,
}

/// An administrator's announcement.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The account's handle.
    pub handle: String,
    /// The subject.
    pub subject: String,
    /// The text: plain, in paragraphs. Its line breaks are kept, and simple https links in it can be followed.
    pub text: String,
    /// The notification's page.
    pub page: String,
    /// Where the recipient can opt out (RFC 8058); none for an essential one.
    pub unsubscribe: Option<String>,
}

impl Stated for Alert {
    fn facts(&self) -> Facts {
        let Self { handle, title, text, page, alerts } = self;
        let facts = Facts::default().word("handle", handle).word("title", title).text("text", text);
        facts.link("page", page).optional_link("alerts", alerts.as_deref())
    }

    fn samples() -> Vec<Self> {
        let text = "Ten attempts to sign in to your account failed within an hour. None succeeded, and your passkeys \
                    were not used.\n\nYou need do nothing if it was you. If it was not, look at the devices that may \
                    sign in, and remove those that you do not know.";
        let served = Self {
            handle: "ada".into(),
            title: "Attempts to sign in failed".into(),
            text: text.into(),
            page: sample_page(),
            alerts: Some("https://id.example.com/alerts".into()),
        };
        let not_served = Self { alerts: None, ..served.clone() };
        vec![served, not_served]
    }
}

impl Stated for Announcement {
    fn facts(&self) -> Facts {
        let Self { handle, subject, text, page, unsubscribe } = self;
        let facts = Facts::default().word("handle", handle).word("subject", subject).text("text", text);
        facts.link("page", page).optional_link("unsubscribe", unsubscribe.as_deref())
    }

    fn samples() -> Vec<Self> {
        let text = "On Saturday, 12 December, from 06:00 to 07:00 UTC, we move to new machines. For up to ten minutes \
                    in that hour nobody can sign in; whoever is signed in stays so.\n\nWhat you may notice:\n- \
                    signing in takes longer,\n- a page asks you to try again.\n\nHow far we are is told at \
                    https://status.example.com/move. Prices & terms stay <exactly> as they are.";
        let optional = Self {
            handle: "ada".into(),
            subject: "We move to new machines on 12 December".into(),
            text: text.into(),
            page: sample_page(),
            unsubscribe: Some("https://id.example.com/unsubscribe/Zp4cR7bKq1".into()),
        };
        let essential = Self { unsubscribe: None, ..optional.clone() };
        vec![optional, essential]
    }
}
