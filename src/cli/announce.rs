//! `postrider announce`.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use sqlx::{Connection, PgConnection};

use super::arguments::Global;
use super::connection::{ask_for, failed};
use super::failure::{Exit, Failure, exit_of};
use super::operator::By;
use super::tell::tell;
use crate::channel::{Channel, Channels};
use crate::channels::Announcement;
use crate::identity::{
    ActError, AnnouncementDraft, Reach, ReferenceDirectory, draft_announcement, preview_announcement, send_announcement,
};
use crate::recorder::Recorder;

/// More than a million accounts take.
const PATIENCE: Duration = Duration::from_secs(3600);
/// More than an announcement may have.
const LARGEST_FILE: u64 = 1024 * 1024;
const BAR: u64 = 30;

#[derive(Debug, Args)]
pub(super) struct AnnounceArguments {
    /// The subject, in one line.
    #[arg(long, value_name = "TEXT")]
    subject: String,
    /// A file with the text: plain, UTF-8. - is stdin.
    #[arg(long, value_name = "FILE")]
    text_file: PathBuf,
    /// Goes also to those who opted out, and offers no way out: for what people must know, and for nothing else.
    #[arg(long)]
    essential: bool,
    /// Say whom it would reach; write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    by: By,
}

pub(super) async fn run(global: &Global, arguments: &AnnounceArguments) -> Result<String, Failure> {
    let by = arguments.by.operator()?;
    let text = read(&arguments.text_file)?;
    let AnnounceArguments { subject, essential, dry_run, .. } = arguments;
    let draft = AnnouncementDraft { subject, text: text.trim_end(), essential: *essential, created_by: by.name() };
    ask_for(PATIENCE, global, "nothing was announced; try again", async |connection| {
        let mut transaction = connection.begin().await.map_err(failed("announcing"))?;
        let announcement = draft_announcement(&mut transaction, &draft).await.map_err(refused)?;
        let reach = preview_announcement(&mut transaction, announcement).await.map_err(refused)?;
        if *dry_run {
            transaction.rollback().await.map_err(failed("rolling back"))?;
            return Ok(format!("would reach {}\n", words(&reach)));
        }
        let mut progress = Progress::new(reach.mailed());
        let sent = send(&mut transaction, announcement, &mut progress).await;
        progress.end();
        let reach = sent?;
        transaction.commit().await.map_err(failed("committing"))?;
        tell("committed: whoever delivers from this database sends it now, within 3 days");
        Ok(format!("{announcement} reaches {}\n", words(&reach)))
    })
    .await
}

async fn send(
    transaction: &mut PgConnection,
    announcement: crate::identity::AnnouncementId,
    progress: &mut Progress,
) -> Result<Reach, Failure> {
    let channel: Arc<dyn Channel> = Arc::new(Announcement::recording(Arc::new(ReferenceDirectory)));
    let channels = Channels::new(vec![channel]).map_err(|error| Failure::of(Exit::Failed, &error))?;
    let recorder = Recorder::new(channels);
    let mut drawn = |written| progress.draw(written);
    let sent = send_announcement(transaction, &recorder, announcement, &mut drawn).await.map_err(refused)?;
    Ok(sent.value)
}

fn words(reach: &Reach) -> String {
    let Reach { recipients, without_address, opted_out } = reach;
    let mailed = reach.mailed();
    format!(
        "{recipients} inboxes, {mailed} of them by e-mail; {opted_out} opted out, {without_address} have no address"
    )
}

fn refused(error: ActError) -> Failure {
    match &error {
        ActError::Database(source) => Failure::new(exit_of(source), "announcing failed").because(source),
        ActError::Unfit => Failure::of(Exit::Usage, &error).advise("look at --subject and at the file of --text-file"),
        _ => Failure::of(Exit::Failed, &error),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let failed =
        |error: io::Error| Failure::new(Exit::Usage, format!("--text-file {shown} cannot be read")).because(&error);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(LARGEST_FILE).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        fs::File::open(path).and_then(|file| file.take(LARGEST_FILE).read_to_end(&mut bytes)).map_err(failed)?;
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(Exit::Usage, format!("--text-file {shown} is not UTF-8: see byte {}", at + 1))
    })
}

/// A bar on a terminal; elsewhere a line for each tenth.
struct Progress {
    total: u64,
    drawn: u64,
    terminal: bool,
}

impl Progress {
    fn new(total: u64) -> Self {
        let progress = Self { total, drawn: 0, terminal: io::stderr().is_terminal() };
        if progress.terminal {
            let _ = write!(io::stderr(), "writing to the inboxes");
        }
        progress
    }

    fn draw(&mut self, written: u64) {
        let total = self.total.max(written).max(1);
        if self.terminal {
            let full = (written * BAR / total) as usize;
            let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR as usize - full));
            // ECMA-48: to the first column, erase the line.
            let _ = write!(io::stderr(), "\r\x1b[2K[{bar}] {written} of {total} e-mails recorded");
        } else if written * 10 / total > self.drawn {
            self.drawn = written * 10 / total;
            tell(format!("{written} of {total} e-mails recorded"));
        }
    }

    fn end(&self) {
        if self.terminal {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}
