//! What an attempt's answer means for the delivery: one table for all HTTP channels.

use std::time::Duration;

use postrider_actors::{Outcome, Reason, ReplyCode};

use super::reply::Reply;

/// Judges an attempt. A channel with exceptions of its own looks at the reply first.
pub fn judge(attempt: &Result<Reply, Reason>) -> Outcome {
    match attempt {
        Ok(reply) => classify(reply.status, reply.retry_after),
        Err(reason) => judge_failure(*reason),
    }
}

/// Judges a final status: 2xx succeeds; 408, 429 and 5xx retry, no sooner than `retry_after` from now; all else,
/// redirects and 101 among it, fails.
pub const fn classify(status: ReplyCode, retry_after: Option<Duration>) -> Outcome {
    let reason = Reason::Code(status);
    match status.get() {
        200..=299 => Outcome::Succeeded,
        408 | 429 | 500..=599 => Outcome::Retry { reason, not_before: retry_after },
        _ => Outcome::Failed { reason },
    }
}

/// No answer: whatever may pass by itself retries, a destination that may not be contacted does not.
const fn judge_failure(reason: Reason) -> Outcome {
    match reason {
        Reason::Code(status) => classify(status, None),
        Reason::Dns | Reason::Connection | Reason::Timeout | Reason::Tls | Reason::Protocol => Outcome::retry(reason),
        _ => Outcome::failed(reason),
    }
}
