//! What every scene of the act works with.

use std::time::{Duration, Instant};

use sqlx::{PgConnection, Postgres, Transaction};

use super::super::DemoError;
use super::super::mailbox::Received;
use super::super::narrator::Narrator;
use super::deliveries::{Announced, Pending, pending};
use super::expected::{Expected, Kind};
use super::people::Person;
use super::stage::MailStage;
use crate::identity::Acted;
use crate::recorder::Recorder;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long nothing may happen before the demo goes on without what it waits for; the table then differs.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) struct Scene<'a, 'n> {
    pub(super) stage: &'a MailStage,
    pub(super) recorder: &'a Recorder,
    pub(super) connection: &'a mut PgConnection,
    pub(super) narrator: &'a mut Narrator<'n>,
    pub(super) people: &'a [Person],
    pub(super) expected: Expected,
    pub(super) announced: Announced,
    /// What was seen otherwise than expected.
    pub(super) noted: Vec<(Kind, String)>,
}

impl<'a> Scene<'a, '_> {
    /// Somebody of the act.
    #[allow(clippy::expect_used)] // the names of the act are constants, and its tests play every scene
    pub(super) fn person(&self, name: &str) -> &'a Person {
        self.people.iter().find(|person| person.name == name).expect("a person of the act")
    }

    /// Waits until nothing is pending any more, and then says `line`.
    pub(super) async fn settled(&mut self, line: &str) -> Result<(), DemoError> {
        match self.until("every message has come to its end", |pending| pending.all == 0).await? {
            0 => self.narrator.say(line),
            _ => Ok(()),
        }
    }

    /// Waits until each pending message was tried in vain, and says how many there are.
    pub(super) async fn tried(&mut self) -> Result<usize, DemoError> {
        self.until("each was tried", |pending| pending.all > 0 && pending.tried == pending.all).await
    }

    async fn until(&mut self, what: &str, is_met: impl Fn(Pending) -> bool) -> Result<usize, DemoError> {
        let (mut before, mut since) = (None, Instant::now());
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let found = pending(self.connection).await?;
            if before != Some(found) {
                (before, since) = (Some(found), Instant::now());
            }
            if is_met(found) {
                return Ok(found.all);
            }
            if since.elapsed() > PATIENCE {
                self.narrator.say(format_args!("waited long enough, and it is not so that {what}"))?;
                return Ok(found.all);
            }
            let arrived = self.stage.mailbox.received().len();
            self.narrator.status(format_args!("e-mail: {arrived} arrived, {} pending", found.all))?;
        }
    }

    /// Waits for a letter to `address` that holds a link to a page, and returns letter and token. None comes: says so.
    pub(super) async fn link(&mut self, address: &str, page: &str) -> Result<Option<(Received, String)>, DemoError> {
        let mailbox = &self.stage.mailbox;
        let arrives = async {
            loop {
                let letters = mailbox.received_by(address);
                let found = letters.into_iter().find_map(|letter| token(&letter, page).map(|token| (letter, token)));
                match found {
                    Some(found) => return found,
                    None => mailbox.changed().await,
                }
            }
        };
        match tokio::time::timeout(PATIENCE, arrives).await {
            Ok(found) => Ok(Some(found)),
            Err(_) => {
                self.narrator.say(format_args!("waited long enough: no such link came to {address}")).map(|()| None)
            }
        }
    }
}

/// Commits what was done, and says so to the actors.
pub(super) async fn commit<T>(transaction: Transaction<'_, Postgres>, acted: Acted<T>) -> Result<T, DemoError> {
    transaction.commit().await?;
    Ok(acted.committed())
}

/// What follows `page` in a link of the letter's plain text.
fn token(letter: &Received, page: &str) -> Option<String> {
    let text = letter.plain_text()?;
    let (_, after) = text.split_once(page)?;
    after.split_whitespace().next().map(str::to_owned)
}
