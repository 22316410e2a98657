//! What a relay says, byte for byte, a NUL between what it says to one command and to the next: the session ends, within
//! bounds, and in whatever pieces its replies come they mean the same.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use postrider::actors::{DeliveryId, Outcome};
use postrider::mail::smtp::fuzzing::Session;
use postrider::mail::{Draft, EmailAddress, Mailbox, Message, compose};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};

static SESSION: LazyLock<Session> = LazyLock::new(|| Session::new().expect("nothing can be missing"));

static MESSAGE: LazyLock<Message> = LazyLock::new(|| {
    let address = |text| EmailAddress::parse(text).expect("an address");
    compose(&Draft {
        delivery: DeliveryId::generate(),
        date: chrono::DateTime::UNIX_EPOCH,
        from: &Mailbox { name: None, address: address("noreply@sender.example") },
        to: &address("user@rcpt.example"),
        reply_to: None,
        subject: "Hello",
        text: "Hello.",
        html: "<p>Hello.</p>",
        unsubscribe: None,
    })
    .expect("a message")
});

/// The outcome, and what the relay had said last.
async fn meet(said: &[u8], piece: usize) -> (Outcome, Vec<u8>) {
    let (ours, theirs) = duplex(piece);
    let (mut reading, mut writing) = split(theirs);
    let speak = async {
        let mut last = Vec::new();
        let mut after_data = false;
        for answer in said.split(|byte| *byte == 0) {
            last = answer.to_vec();
            if writing.write_all(answer).await.is_err() {
                break;
            }
            // Not before there is a command.
            let mut heard = Vec::new();
            let end: &[u8] = if after_data { b"\r\n.\r\n" } else { b"\r\n" };
            while !heard.ends_with(end) {
                if !reading.read_buf(&mut heard).await.is_ok_and(|read| read > 0) {
                    return last;
                }
            }
            after_data = heard == b"DATA\r\n";
        }
        last
    };
    let (last, outcome) = tokio::join!(speak, SESSION.run(ours, &MESSAGE));
    (outcome, last)
}

/// Nothing follows the first line that can end a reply.
fn is_at_most_one_reply(said: &[u8]) -> bool {
    let mut lines = said.split_inclusive(|byte| *byte == b'\n');
    lines.find(|line| line.get(3) != Some(&b'-'));
    lines.next().is_none()
}

fuzz_target!(|said: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let (outcome, last) = runtime.block_on(meet(said, 256 * 1024));
    match outcome {
        Outcome::Succeeded => assert_eq!(last.first(), Some(&b'2'), "only a 2xx after the dot"),
        Outcome::Failed { .. } => {
            let of_the_message = last.first().is_some_and(|digit| *digit == b'5');
            let too_large = last.starts_with(b"235"); // for the SIZE that was offered
            assert!(of_the_message || too_large);
        }
        Outcome::Retry { not_before, .. } => assert_eq!(not_before, None),
        Outcome::Deferred { .. } => panic!("never of a relay"),
    }
    // What is said unasked is noticed where it has come before the next command, which is a matter of time.
    if !said.split(|byte| *byte == 0).all(is_at_most_one_reply) {
        return;
    }
    let (in_pieces, _) = runtime.block_on(meet(said, 1 + said.len() % 7));
    assert_eq!(in_pieces, outcome);
});
