//! What a receiver answers, byte for byte: it ends, within bounds, and in whatever pieces it comes it means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postrider::actors::{Outcome, Reason, ReplyCode};
use postrider::outbound::{MAX_BODY_BYTES, MAX_RETRY_AFTER, fuzzing, judge};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, duplex, sink, split};
use tokio::time::{Duration, Instant};

/// The outcome, the status, and the length of the body.
type Met = (Outcome, Result<ReplyCode, Reason>, usize);

async fn meet(answer: &[u8], piece: usize) -> Met {
    let (ours, theirs) = duplex(piece);
    let (mut reading, mut writing) = split(theirs);
    let deadline = Instant::now() + Duration::from_secs(10);
    let speak = async {
        // Not before the request is there: bytes on an idle connection are another matter.
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") && reading.read_buf(&mut request).await.is_ok_and(|read| read > 0) {}
        // An answer that is not read to its end breaks the writing: that is as it should be.
        let _ = writing.write_all(answer).await;
        let _ = writing.shutdown().await;
        let _ = copy(&mut reading, &mut sink()).await;
    };
    let hear = async {
        let reply = fuzzing::exchange(ours, deadline).await;
        let outcome = judge(&reply);
        match reply {
            Ok(reply) => {
                assert!(reply.retry_after.is_none_or(|wait| wait <= MAX_RETRY_AFTER));
                let (status, body) = (reply.status, reply.body(MAX_BODY_BYTES).await);
                assert!(body.bytes().len() <= MAX_BODY_BYTES);
                (outcome, Ok(status), body.bytes().len())
            }
            Err(reason) => (outcome, Err(reason), 0),
        }
    };
    tokio::join!(speak, hear).1
}

fuzz_target!(|answer: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let (outcome, status, _) = runtime.block_on(meet(answer, 64 * 1024));
    if answer.starts_with(b"HTTP/1.1 204 No Content\r\n\r\n") {
        assert!(status.is_ok(), "a plain success is heard");
    }
    match &status {
        Ok(status) => assert_eq!(matches!(outcome, Outcome::Succeeded), (200..300).contains(&status.get())),
        Err(_) => assert!(!matches!(outcome, Outcome::Succeeded)),
    }
    let (_, in_pieces, _) = runtime.block_on(meet(answer, 1 + answer.len() % 7));
    assert_eq!(in_pieces.ok(), status.ok());
});
