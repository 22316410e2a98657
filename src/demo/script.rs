//! The scenes in their order.

use std::io::Write;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use super::cast::{Place, Role, cast};
use super::domain::{Account, Run, Session};
use super::endings::{Done, end_sessions};
use super::facts::Facts;
use super::narrator::Narrator;
use super::pace::Pace;
use super::plan::Ending;
use super::stage::Stage;
use super::watch::Watch;
use super::{DemoError, DemoOptions, DemoReport, LogoutReport, MailReport, database, domain, mail, opening, plan};

/// Shows all of it.
pub(super) async fn perform(
    options: &PgConnectOptions,
    demo: &DemoOptions,
    output: &mut (dyn Write + Send),
) -> Result<DemoReport, DemoError> {
    let mut narrator = Narrator::new(output, demo.redraws_status);
    let (pace, run) = (Pace::of(demo.send_timeout), Run::new());
    let cast = cast(&pace, demo.misbehaving);
    introduce(&mut narrator, &pace)?;

    database::migrate(options).await?;
    let mut connection = database::connect(options).await?;
    let leftovers = database::clear_leftovers(&mut connection).await?;
    narrator.say("the database is migrated")?;
    if leftovers > 0 {
        narrator.say(format_args!("cancelled {leftovers} deliveries that an earlier demo left pending"))?;
    }
    let mut stage = Stage::set(options, &mut connection, &run, &cast, &pace).await?;
    let listening = cast.iter().filter(|role| role.place != Place::Private).count();
    narrator.say(format_args!(
        "{listening} HTTPS receivers listen; {} clients are registered; the actors run",
        cast.len()
    ))?;
    let shown = Acts { stage: &stage, cast: &cast, run: &run, pace: &pace, misbehaving: demo.misbehaving };
    let (logout, mail) = match shown.both(&mut connection, &mut narrator).await {
        Ok(reports) => reports,
        Err(error) => {
            stage.abandon().await;
            return Err(error);
        }
    };
    let attempts_aborted = stage.strike().await.aborted_attempts;
    narrator.say(format_args!("shut down in order; attempts aborted: {attempts_aborted}"))?;
    let _ = connection.close().await; // the server notices
    let report = DemoReport { logout, mail, attempts_aborted, took: narrator.elapsed() };
    conclude(&mut narrator, &report, demo)?;
    Ok(report)
}

fn introduce(narrator: &mut Narrator<'_>, pace: &Pace) -> Result<(), DemoError> {
    let seconds = |duration: std::time::Duration| duration.as_secs_f64();
    let (first, cap) = (seconds(pace.backoff.first), seconds(pace.backoff.cap));
    narrator
        .line("Postrider demo: sessions of an identity provider end, and the clients that have tokens are told;")?;
    narrator.line("then it writes e-mail, and a mailbox keeps what arrives.")?;
    narrator.line("For the demo alone, never in production:")?;
    narrator.line("  - ADDRESS CHECKS ARE LOOSENED: 127.0.0.1, where the receivers are, may be contacted;")?;
    narrator.line("  - signing keys, link keys and certificates are made now and thrown away;")?;
    narrator.line("  - the mail server is one of the demo's own: no e-mail leaves this machine;")?;
    narrator.line("  - receivers that hang, hang up or are busy mend after a time or two, so that the demo ends;")?;
    narrator.line(format_args!(
        "  - short times: lease {} s (60), backoff from {first} s (10) to {cap} s (3600); send timeout {} s.",
        seconds(pace.lease),
        seconds(pace.send_timeout),
    ))?;
    narrator.line("")
}

/// What the acts are shown with.
struct Acts<'a> {
    stage: &'a Stage,
    cast: &'a [Role],
    run: &'a Run,
    pace: &'a Pace,
    misbehaving: bool,
}

impl Acts<'_> {
    async fn both(
        &self,
        connection: &mut PgConnection,
        narrator: &mut Narrator<'_>,
    ) -> Result<(LogoutReport, MailReport), DemoError> {
        let accounts = end_all(self, connection, narrator).await?;
        let logout = self.compare(connection, &accounts).await?;
        show(narrator, &logout)?;
        narrator.line("The second act: the provider writes e-mail, through channels of its own beside the first.")?;
        narrator.line("")?;
        let others = accounts.iter().filter(|account| account.ending != Ending::AccountDeleted).count();
        let recorder = self.stage.subsystem().recorder();
        let mail = mail::perform(self.stage.mail(), &recorder, connection, narrator, others, self.misbehaving).await?;
        show(narrator, &mail)?;
        Ok((logout, mail))
    }

    fn clients(&self) -> Vec<String> {
        self.cast.iter().map(|role| self.run.client_id(role)).collect()
    }

    /// What came of the first act.
    async fn compare(&self, connection: &mut PgConnection, accounts: &[Account]) -> Result<LogoutReport, DemoError> {
        let ledger = self.stage.ledger();
        let facts = Facts {
            cast: self.cast,
            sessions: sessions(accounts).collect(),
            deliveries: database::deliveries(connection, &self.clients()).await?,
            receipts: ledger.receipts(),
            connections: (0..self.cast.len()).map(|position| ledger.connections(position)).collect(),
            complaints: ledger.complaints(),
        };
        Ok(LogoutReport::new(&facts))
    }
}

/// A table, with an empty line before and after it.
fn show(narrator: &mut Narrator<'_>, table: &impl ToString) -> Result<(), DemoError> {
    narrator.line("")?;
    for line in table.to_string().lines() {
        narrator.line(line)?;
    }
    narrator.line("")
}

/// The first act: ends sessions and watches what comes of it.
async fn end_all(
    acts: &Acts<'_>,
    connection: &mut PgConnection,
    narrator: &mut Narrator<'_>,
) -> Result<Vec<Account>, DemoError> {
    let Acts { stage, cast, run, pace, .. } = *acts;
    let mut planned = plan::accounts(cast);
    planned.push(plan::opening(cast));
    let accounts = domain::make(connection, run, cast, planned).await?;
    let number = sessions(&accounts).count();
    let tokens: usize = sessions(&accounts).map(|session| session.roles.len()).sum();
    narrator.say(format_args!(
        "{} accounts have {number} sessions, from which clients got tokens {tokens} times",
        accounts.len()
    ))?;

    let recorder = stage.subsystem().recorder();
    let mut done = Done::default();
    if let Some((opening, others)) = accounts.split_last() {
        end_sessions(connection, &recorder, opening, &mut done).await?;
        opening::kill_the_sender(stage, narrator).await?;
        for account in others {
            end_sessions(connection, &recorder, account, &mut done).await?;
        }
    }
    let Done { commits, sessions, deliveries, .. } = done;
    narrator
        .say(format_args!("{sessions} sessions ended in {commits} transactions, which made {deliveries} deliveries"))?;
    narrator.say(format_args!(
        "{} more transactions rolled back: {} sessions go on, {} deliveries never were",
        done.rollbacks, done.sessions_rolled_back, done.deliveries_rolled_back
    ))?;
    let clients = acts.clients();
    let watch = Watch { stage, cast, clients: &clients, pace, recorded: deliveries };
    watch.until_all_ended(connection, narrator).await?;
    Ok(accounts)
}

fn sessions(accounts: &[Account]) -> impl Iterator<Item = &Session> {
    accounts.iter().flat_map(|account| &account.sessions)
}

fn conclude(narrator: &mut Narrator<'_>, report: &DemoReport, demo: &DemoOptions) -> Result<(), DemoError> {
    let (program, database_arguments) = (&demo.program, &demo.database_arguments);
    let took = report.took.as_secs_f64();
    narrator.line(match report.differs() {
        false => format!("All as expected, in {took:.1} s."),
        true => format!("NOT AS EXPECTED: see the lines that say DIFFERS. It took {took:.1} s."),
    })?;
    narrator.line("The deliveries are still in the database. Where to look next:")?;
    for command in ["list --json", "list --status failed", "list --channel email", "list --channel announcement"] {
        narrator.line(format!("  {program} deliveries {command} {database_arguments}").trim_end())?;
    }
    Ok(())
}
