//! What `Smtp` hands to Postfix, and how it takes Postfix's answers.

use std::sync::Arc;

use postrider::mail::Message;
use postrider::mail::smtp::{Relay, Smtp, SmtpConfig};
use postrider_actors::{Outcome, Reason, ReplyCode};
use tokio::task::JoinSet;

use crate::postfix::{PASSWORD, Postfix, SMALL_BYTES, USER};
use crate::receivers::Ca;
use crate::sample::{Sample, address};
use crate::support::eventually;
use crate::world::SOON;

/// A relay and a client that trusts it.
pub struct Relaying {
    ca: Ca,
    pub postfix: Postfix,
}

impl Relaying {
    pub async fn new() -> Self {
        let ca = Ca::new();
        let postfix = Postfix::start(&ca).await;
        Self { ca, postfix }
    }

    /// By STARTTLS and a login.
    pub fn smtp(&self) -> Smtp {
        self.smtp_at(&relay("smtp", PASSWORD, self.postfix.ports.starttls))
    }

    fn smtp_at(&self, relay: &str) -> Smtp {
        smtp_trusting(&self.ca, relay)
    }
}

fn smtp_trusting(ca: &Ca, relay: &str) -> Smtp {
    let relays = vec![Relay::parse(relay).unwrap()];
    Smtp::new(SmtpConfig { extra_roots: Some(ca.path().to_owned()), ..SmtpConfig::new(relays, "client.test") }).unwrap()
}

fn relay(scheme: &str, password: &str, port: u16) -> String {
    let password: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("{scheme}://{USER}:{password}@127.0.0.1:{port}")
}

fn to(recipient: &str) -> Message {
    Sample { to: address(recipient), ..Sample::default() }.message()
}

fn retry(code: u16) -> Outcome {
    Outcome::retry(Reason::Code(ReplyCode::new(code).unwrap()))
}

fn failed(code: u16) -> Outcome {
    Outcome::failed(Reason::Code(ReplyCode::new(code).unwrap()))
}

#[tokio::test]
async fn postfix_takes_a_message_over_starttls_and_over_implicit_tls_with_a_login() {
    let relaying = Relaying::new().await;
    assert_eq!(relaying.smtp().send(&to("someone@mail.test")).await, Outcome::Succeeded);
    let implicit = relay("smtps", PASSWORD, relaying.postfix.ports.implicit);
    assert_eq!(relaying.smtp_at(&implicit).send(&to("someone@mail.test")).await, Outcome::Succeeded);
    relaying.postfix.messages("someone@mail.test", 2).await;
    let log = relaying.postfix.log();
    let logins = |mechanism| log.matches(&format!("sasl_method={mechanism}, sasl_username={USER}@relay.test")).count();
    assert_eq!((logins("PLAIN"), logins("LOGIN")), (1, 1), "one offers both, the other LOGIN alone");
}

#[tokio::test]
async fn a_password_that_postfix_refuses_is_retried_with_535() {
    let relaying = Relaying::new().await;
    for (scheme, port) in [("smtp", relaying.postfix.ports.starttls), ("smtps", relaying.postfix.ports.implicit)] {
        let smtp = relaying.smtp_at(&relay(scheme, "another", port));
        assert_eq!(smtp.send(&to("someone@mail.test")).await, retry(535), "{scheme}");
    }
}

#[tokio::test]
async fn without_the_tls_that_postfix_asks_for_the_message_is_retried_with_530() {
    let relaying = Relaying::new().await;
    let plain = format!("smtp+plain://127.0.0.1:{}", relaying.postfix.ports.starttls);
    assert_eq!(relaying.smtp_at(&plain).send(&to("someone@mail.test")).await, retry(530));
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_ends_the_attempt_before_the_login() {
    let relaying = Relaying::new().await;
    let url = relay("smtps", PASSWORD, relaying.postfix.ports.implicit);
    let smtp = smtp_trusting(&Ca::new(), &url);
    assert_eq!(smtp.send(&to("someone@mail.test")).await, Outcome::retry(Reason::Tls));
    assert!(!relaying.postfix.log().contains("sasl_username"));
}

#[tokio::test]
async fn recipients_that_postfix_refuses_fail_or_are_retried_by_the_reply_code() {
    let relaying = Relaying::new().await;
    let smtp = relaying.smtp();
    assert_eq!(smtp.send(&to("nobody@mail.test")).await, failed(550));
    assert_eq!(smtp.send(&to("later@mail.test")).await, retry(450));
    assert_eq!(smtp.send(&to("someone@elsewhere.example")).await, failed(550));
    assert_eq!(smtp.send(&to("someone@mail.test")).await, Outcome::Succeeded, "and hold up no other");
}

#[tokio::test]
async fn a_message_over_postfix_limit_fails_with_552_whether_size_is_announced_or_not() {
    let relaying = Relaying::new().await;
    let text = "All work and no play.\n".repeat(SMALL_BYTES / 20);
    let large = Sample { to: address("someone@mail.test"), text, ..Sample::default() }.message();
    for port in [relaying.postfix.ports.small, relaying.postfix.ports.bare] {
        let smtp = relaying.smtp_at(&relay("smtp", PASSWORD, port));
        assert_eq!(smtp.send(&large).await, failed(552));
        assert_eq!(smtp.send(&to("someone@mail.test")).await, Outcome::Succeeded, "a small one");
    }
}

#[tokio::test]
async fn a_local_part_that_is_not_ascii_is_delivered_by_smtputf8_and_fails_without_it() {
    let relaying = Relaying::new().await;
    let message = to("björn.ünal@mail.test");
    assert_eq!(relaying.smtp().send(&message).await, Outcome::Succeeded);
    let delivered = relaying.postfix.messages("björn.ünal@mail.test", 1).await;
    assert!(String::from_utf8_lossy(&delivered[0]).contains("björn.ünal@mail.test"));
    let bare = relaying.smtp_at(&relay("smtp", PASSWORD, relaying.postfix.ports.bare));
    assert_eq!(bare.send(&message).await, Outcome::failed(Reason::Smtputf8));
}

#[tokio::test]
async fn an_internationalized_domain_is_delivered_as_a_labels() {
    let relaying = Relaying::new().await;
    assert_eq!(relaying.smtp().send(&to("someone@bücher.test")).await, Outcome::Succeeded);
    relaying.postfix.messages("someone@xn--bcher-kva.test", 1).await;
}

#[tokio::test]
async fn fifty_messages_go_over_few_connections() {
    const AT_ONCE: usize = 5;
    const EACH: usize = 10;
    let relaying = Relaying::new().await;
    let smtp = Arc::new(relaying.smtp());
    let mut senders = JoinSet::new();
    for _ in 0..AT_ONCE {
        let smtp = Arc::clone(&smtp);
        senders.spawn(async move {
            for _ in 0..EACH {
                assert_eq!(smtp.send(&to("someone@mail.test")).await, Outcome::Succeeded);
            }
        });
    }
    senders.join_all().await;
    smtp.close().await;
    relaying.postfix.messages("someone@mail.test", AT_ONCE * EACH).await;
    let mut connections = Vec::new();
    eventually(SOON, "every connection has ended", async || {
        connections = relaying.postfix.messages_by_connection();
        connections.iter().sum::<usize>() == AT_ONCE * EACH
    })
    .await;
    assert!(connections.len() <= AT_ONCE, "{connections:?}");
}

#[tokio::test]
async fn after_a_restart_of_postfix_the_next_message_goes_out_in_its_first_attempt() {
    let mut relaying = Relaying::new().await;
    let smtp = relaying.smtp();
    assert_eq!(smtp.send(&to("someone@mail.test")).await, Outcome::Succeeded);
    relaying.postfix.restart().await;
    assert_eq!(smtp.send(&to("someone@mail.test")).await, Outcome::Succeeded);
    relaying.postfix.messages("someone@mail.test", 2).await;
}

/// Postfix says 421 on the idle connection and closes it; what is read there must not be taken for an answer to the next
/// command.
#[tokio::test]
async fn after_postfix_closed_an_idle_connection_the_next_message_goes_out_in_its_first_attempt() {
    let relaying = Relaying::new().await;
    let smtp = relaying.smtp_at(&relay("smtp", PASSWORD, relaying.postfix.ports.impatient));
    assert_eq!(smtp.send(&to("someone@mail.test")).await, Outcome::Succeeded);
    eventually(SOON, "the connection is closed", async || relaying.postfix.log().contains("timeout after")).await;
    assert_eq!(smtp.send(&to("someone@mail.test")).await, Outcome::Succeeded);
    relaying.postfix.messages("someone@mail.test", 2).await;
}
