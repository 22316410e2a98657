//! One message over one connection: MAIL, RCPT, DATA, in this order and one reply at a time (RFC 5321 3.3).

use mail_send::smtp::message::Parameters;
use postrider_actors::{Reason, ReplyCode};
use smtp_proto::{EXT_8BIT_MIME, EXT_SIZE, EXT_SMTP_UTF8};
use tokio::time::{Instant, timeout_at};

use super::config::StageTimeouts;
use super::connection::{Connection, command, within};
use super::judge::{Stage, is_of_the_session, reason_of, reason_of_io, unexpected};
use super::wire::written;
use crate::mail::Message;

/// Why a message was not taken, and how far it had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    /// At [`Stage::Session`]: no relay of this kind can take it.
    pub(super) stage: Stage,
    pub(super) reason: Reason,
}

impl Connection {
    /// Sends a message, once: not at all where the relay does not ask for it by `begin_by`. From then on it has all the
    /// time up to the deadline, as an answer that comes too late is a message that goes out twice.
    pub(super) async fn transact(
        &mut self,
        message: &Message,
        begin_by: Instant,
        deadline: Instant,
        stages: &StageTimeouts,
    ) -> Result<(), Refused> {
        let at = |stage| move |reason| Refused { stage, reason };
        let parameters = self.parameters(message).map_err(at(Stage::Session))?;
        let mail = format!("MAIL FROM:<{}>{parameters}\r\n", written(message.from()));
        let rcpt = format!("RCPT TO:<{}>\r\n", written(message.to()));
        for line in [mail, rcpt] {
            within(begin_by, stages.reply, command(&mut self.client, &line)).await.map_err(at(Stage::Envelope))?;
        }
        within(begin_by, stages.reply, self.begin_data()).await.map_err(at(Stage::Envelope))?;
        let sent = timeout_at(deadline, self.send_data(message.bytes())).await;
        sent.unwrap_or(Err(Reason::Timeout)).map_err(at(Stage::Data))
    }

    /// The parameters of MAIL: each only where it is offered, and where the message needs it (RFC 1870 4, RFC 6152 3,
    /// RFC 6531 3.4).
    ///
    /// A message that the relay cannot take whatever happens is not begun: one larger than its SIZE (the 552 that it
    /// would answer, RFC 1870 6.1), and one that needs an extension it does not offer.
    fn parameters(&self, message: &Message) -> Result<Parameters<'static>, Reason> {
        let mut parameters = Parameters::new();
        let bytes = message.bytes();
        if self.offers.has_capability(EXT_SIZE) {
            let size = without_last_line_end(bytes).len() + 2;
            if self.offers.size != 0 && size > self.offers.size {
                return Err(ReplyCode::new(552).map_or(Reason::InvalidMessage, Reason::Code));
            }
            parameters.add((String::from("SIZE"), size.to_string()));
        }
        let ascii_envelope = [message.from(), message.to()].into_iter().all(|address| written(address).is_ascii());
        let needs_smtputf8 = message.needs_smtputf8() || !ascii_envelope;
        if !bytes.is_ascii() {
            if !self.offers.has_capability(EXT_8BIT_MIME) {
                return Err(if needs_smtputf8 { Reason::Smtputf8 } else { Reason::InvalidMessage });
            }
            parameters.add((String::from("BODY"), String::from("8BITMIME")));
        }
        if needs_smtputf8 {
            if !self.offers.has_capability(EXT_SMTP_UTF8) {
                return Err(Reason::Smtputf8);
            }
            parameters.add(String::from("SMTPUTF8"));
        }
        Ok(parameters)
    }

    /// 354 and nothing else lets the message go (RFC 5321 4.1.1.4).
    async fn begin_data(&mut self) -> Result<(), Reason> {
        let reply = self.client.cmd("DATA\r\n").await.map_err(|error| reason_of(&error))?;
        if reply.code == 354 { Ok(()) } else { Err(unexpected(reply.code)) }
    }

    /// Any 2xx after the final dot is an acceptance (RFC 5321 4.2.1).
    async fn send_data(&mut self, bytes: &[u8]) -> Result<(), Reason> {
        // The writer doubles dots, and ends the last line and the message.
        self.client.write_message(without_last_line_end(bytes)).await.map_err(|error| reason_of_io(&error))?;
        let reply = self.client.read().await.map_err(|error| reason_of(&error))?;
        if reply.is_positive_completion() { Ok(()) } else { Err(unexpected(reply.code)) }
    }

    /// Whether the connection can take another message after this end of a transaction: both sides know that it is
    /// over, the relay takes messages of us, and nothing is on its way.
    pub(super) fn can_go_on(&self, end: &Result<(), Refused>) -> bool {
        let is_over = match end {
            Ok(()) => true,
            Err(Refused { stage: Stage::Session, .. }) => true,
            Err(Refused { reason, .. }) => !is_of_the_session(*reason),
        };
        is_over && self.client.stream.is_quiet()
    }
}

fn without_last_line_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\r\n").unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use smtp_proto::EhloResponse;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::mail::smtp::connection::over;

    /// What goes out for these bytes, up to the relay's 250.
    async fn sent(bytes: &[u8]) -> String {
        let (ours, mut theirs) = duplex(64);
        let mut connection = Connection { client: over(ours), offers: EhloResponse::new(String::new()) };
        let relay = async {
            let mut heard = Vec::new();
            while !heard.ends_with(b"\r\n.\r\n") {
                theirs.read_buf(&mut heard).await.unwrap();
            }
            theirs.write_all(b"250 ok\r\n").await.unwrap();
            String::from_utf8(heard).unwrap()
        };
        let (end, heard) = tokio::join!(connection.send_data(bytes), relay);
        assert_eq!(end, Ok(()));
        heard
    }

    #[tokio::test]
    async fn smtp_message_34_each_line_that_begins_with_a_dot_gets_one_more() {
        for (bytes, wire) in [
            ("A: b\r\n\r\nx\r\n", "A: b\r\n\r\nx\r\n.\r\n"),
            ("A: b\r\n\r\nx", "A: b\r\n\r\nx\r\n.\r\n"),
            ("A: b\r\n\r\n.\r\n", "A: b\r\n\r\n..\r\n.\r\n"),
            ("A: b\r\n\r\n.a\r\n..\r\na.\r\n", "A: b\r\n\r\n..a\r\n...\r\na.\r\n.\r\n"),
            ("A: b\r\n\r\n\r\n", "A: b\r\n\r\n\r\n.\r\n"),
        ] {
            assert_eq!(sent(bytes.as_bytes()).await, wire, "{bytes:?}");
        }
        let body = ".\r\n".repeat(1000);
        assert_eq!(sent(format!("A: b\r\n\r\n{body}").as_bytes()).await.matches("..\r\n").count(), 1000);
    }
}
