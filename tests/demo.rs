//! The demo shows what it says, on an empty database and on one that it has used, and can be seen to fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use postrider::demo::{DemoError, DemoOptions, DemoReport, Kind, run};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;

/// How many messages of each kind arrive.
const ARRIVALS: [(Kind, usize); 11] = [
    (Kind::VerificationLink, 5),
    (Kind::RecoveryLink, 1),
    (Kind::AccountRecovered, 2),
    (Kind::AddressAdded, 4),
    (Kind::AddressReplaced, 1),
    (Kind::PasskeyAdded, 1),
    (Kind::NewSignIn, 2),
    (Kind::Alert, 1),
    (Kind::Announcement, 187),
    (Kind::NextAnnouncement, 186),
    (Kind::EssentialAnnouncement, 203),
];

fn arrived(report: &DemoReport) -> Vec<(Kind, usize)> {
    report.mail.lines.iter().map(|line| (line.kind, line.arrived)).collect()
}

/// What hangs, hangs for 2 s.
fn quick() -> DemoOptions {
    let database_arguments = "--data demo-data".into();
    DemoOptions { send_timeout: Duration::from_secs(2), database_arguments, ..DemoOptions::default() }
}

async fn show(database: &support::TestDatabase, options: &DemoOptions) -> (DemoReport, String) {
    let mut output = Vec::new();
    let shown = timeout(Duration::from_secs(60), run(database.options(), options, &mut output)).await;
    let output = String::from_utf8(output).unwrap();
    match shown {
        Ok(Ok(report)) => (report, output),
        other => panic!("{other:?} after:\n{output}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_is_as_expected_on_an_empty_database_and_again_on_the_used_one() {
    let database = support::empty_database().await;
    for again in [false, true] {
        let (report, output) = show(&database, &quick()).await;
        assert!(!report.differs(), "{output}");
        assert_eq!(report.logout.receivers.len(), 12);
        assert!(report.logout.receivers.iter().all(|receiver| receiver.deliveries > 0), "{output}");
        assert_eq!(arrived(&report), ARRIVALS, "{output}");
        assert_eq!(output.contains("cancelled 2 deliveries that an earlier demo left pending"), again, "{output}");
        for line in [
            "  - ADDRESS CHECKS ARE LOOSENED: 127.0.0.1, where the receivers are, may be contacted;",
            "rolled back: 6 sessions, 0 receipts, 0 deliveries                                            ok",
            "         | Message-ID: <",
            "         | List-Unsubscribe: <https://127.0.0.1:",
            "announcement                187      187  1 refused: 550, 16 opted out, 18 without address   ok",
            "next announcement           186      186  1 refused: 550, 17 opted out, 18 without address   ok",
            "essential announcement      203      203  1 refused: 550, 18 without address                 ok",
            "  postrider deliveries list --json --data demo-data",
            "  postrider deliveries list --channel email --data demo-data",
        ] {
            let is_there =
                |shown: &str| if line.starts_with("         | ") { shown.starts_with(line) } else { shown == line };
            assert!(output.lines().any(is_there), "{line:?} is not in:\n{output}");
        }
        assert!(output.lines().all(|line| line.chars().count() <= 100), "{output}");
        assert!(!output.contains('\x1b'), "{output}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_and_a_mailbox_that_do_otherwise_than_expected_are_reported() {
    let database = support::database().await;
    let (report, output) = show(&database, &DemoOptions { misbehaving: true, ..quick() }).await;
    assert!(report.differs());
    let differing = report.logout.receivers.iter().filter(|receiver| !receiver.differences.is_empty());
    assert_eq!(differing.map(|receiver| receiver.receiver).collect::<Vec<_>>(), ["prompt"], "{output}");
    let differing = report.mail.lines.iter().filter(|line| !line.differences.is_empty());
    assert_eq!(differing.map(|line| (line.kind, line.arrived)).collect::<Vec<_>>(), [(Kind::Alert, 0)], "{output}");
    let verdicts = output.lines().filter(|line| line.ends_with(" DIFFERS")).count();
    assert_eq!(verdicts, 2, "{output}");
    assert!(output.contains("NOT AS EXPECTED"), "{output}");
}

/// Nothing of a demo runs: neither a task of it nor a session of it in the database.
async fn nothing_is_left(database: &support::TestDatabase, tasks_before: usize) {
    support::eventually(Duration::from_secs(10), "every task has ended", async || {
        Handle::current().metrics().num_alive_tasks() <= tasks_before
    })
    .await;
    let mut connection = database.connect().await;
    support::eventually(Duration::from_secs(10), "every connection has ended", async || {
        let others: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity
              where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        others == 0
    })
    .await;
}

/// Keeps what is said, and tells when it holds a text.
struct Heard {
    said: Vec<u8>,
    text: &'static str,
    heard: Arc<Notify>,
}

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.said.extend_from_slice(bytes);
        if String::from_utf8_lossy(&self.said).contains(self.text) {
            self.heard.notify_one();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a demo until it says `text`.
async fn cancel_at(database: &support::TestDatabase, text: &'static str) {
    let tasks = Handle::current().metrics().num_alive_tasks();
    let (options, heard) = (quick(), Arc::new(Notify::new()));
    let mut output = Heard { said: Vec::new(), text, heard: Arc::clone(&heard) };
    tokio::select! {
        ended = run(database.options(), &options, &mut output) => panic!("{ended:?} before {text:?}"),
        () = heard.notified() => {}
    }
    nothing_is_left(database, tasks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_that_is_cancelled_leaves_nothing_running() {
    cancel_at(&support::database().await, "hanging reads the token").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_that_is_cancelled_in_its_second_act_leaves_nothing_running_and_the_next_cancels_its_mail() {
    let database = support::database().await;
    cancel_at(&database, "7 messages are committed and tried in vain").await;
    cancel_at(&database, "cancelled 9 deliveries that an earlier demo left pending").await;
}

/// Takes so many lines, then breaks as a pipe does whose reader is gone.
struct Broken {
    lines: usize,
}

impl Write for Broken {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        self.lines = self.lines.checked_sub(lines).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_that_fails_midway_leaves_nothing_running() {
    let database = support::database().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let failed = run(database.options(), &quick(), &mut Broken { lines: 17 }).await;
    assert!(matches!(failed, Err(DemoError::Output(_))), "{failed:?}");
    nothing_is_left(&database, tasks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_deliveries_of_others_is_refused() {
    let database = support::database().await;
    let mut connection = database.connect().await;
    sqlx::query(
        "insert into postrider.deliveries (id, event_id, channel, owner, destination, payload)
         values (gen_random_uuid(), gen_random_uuid(), 'backchannel_logout', 'client', 'https://client.example.com/', '{}')",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let refused = run(database.options(), &quick(), &mut Vec::new()).await;
    assert!(matches!(refused, Err(DemoError::NotItsOwn(1))), "{refused:?}");
}

/// An announcement goes to every active account.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_accounts_of_others_is_refused() {
    let database = support::database().await;
    let mut connection = database.connect().await;
    postrider::identity::create_account(&mut connection, "ada").await.unwrap();
    let refused = run(database.options(), &quick(), &mut Vec::new()).await;
    assert!(matches!(refused, Err(DemoError::NotItsOwnAccounts(1))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_demos_never_share_a_database() {
    let database = support::database().await;
    let (options, mut first, mut second) = (quick(), Vec::new(), Vec::new());
    let both = tokio::join!(
        run(database.options(), &options, &mut first),
        timeout(Duration::from_secs(30), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            run(database.options(), &options, &mut second).await
        }),
    );
    assert!(matches!(both.1, Ok(Err(DemoError::AnotherRuns))), "{:?}", both.1);
    assert!(!both.0.unwrap().differs());
}
