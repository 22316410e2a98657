//! What the mailbox answers, command by command.
#![allow(clippy::unwrap_used)]

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::Mailbox;

/// The codes of the greeting and of the replies to these commands, without EHLO.
async fn codes(mailbox: &Mailbox, commands: &[&str]) -> Vec<String> {
    let mut stream = BufReader::new(TcpStream::connect(mailbox.address()).await.unwrap());
    let mut codes = Vec::new();
    for command in std::iter::once(&"").chain(commands) {
        if !command.is_empty() {
            stream.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
        }
        let mut reply = String::new();
        stream.read_line(&mut reply).await.unwrap();
        codes.push(reply.chars().take(3).collect());
    }
    codes
}

const FROM: &str = "MAIL FROM:<a@example.com>";
const TO: &str = "RCPT TO:<b@example.com>";

#[tokio::test]
async fn nothing_is_taken_before_the_right_login() {
    let mailbox = Mailbox::start(None).await.unwrap();
    mailbox.require_login("postrider", "demo");
    let (wrong, right) = ("AUTH PLAIN AHBvc3RyaWRlcgBkZW1P", "AUTH PLAIN AHBvc3RyaWRlcgBkZW1v");
    let commands = [FROM, "AUTH PLAIN", FROM, wrong, FROM, right, FROM, TO, "DATA", "Subject: a\r\n\r\nb\r\n."];
    let expected = ["220", "530", "535", "530", "535", "530", "235", "250", "250", "354", "250"];
    assert_eq!(codes(&mailbox, &commands).await, expected);
    mailbox.changed().await;
    assert_eq!(mailbox.received_by("b@example.com").len(), 1);
}

#[tokio::test]
async fn what_is_refused_once_is_taken_the_next_time_and_what_is_refused_never() {
    let mailbox = Mailbox::start(None).await.unwrap();
    mailbox.refuse_once("b@example.com", 450);
    mailbox.refuse("c@example.com", 550);
    let other = "RCPT TO:<c@example.com>";
    let expected = ["220", "250", "450", "550", "250", "550"];
    assert_eq!(codes(&mailbox, &[FROM, TO, other, TO, other]).await, expected);
}
