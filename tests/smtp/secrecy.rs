//! Nothing of a login, an address, a message or a relay's words is logged, shown or recorded.

use postrider::mail::smtp::{Relay, RelayError, Smtp, SmtpConfig, SmtpSetupError};
use postrider_actors::Outcome;

use crate::mail::{message, message_to};
use crate::outbound::Captured;
use crate::script::{Act, Point, Script, config, say};
use crate::tls::Trusted;

const LOGIN: &str = "mailerSECRET:passSECRET";

/// The login as it goes over the wire, the addresses, and a word of the relay's.
fn hidden() -> Vec<String> {
    let base64 = |text: &str| {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(text)
    };
    let mut words: Vec<String> =
        ["SECRET", "rcpt.example", "sender.example", "MARKER", "Hello"].map(String::from).to_vec();
    words.extend([base64("\0mailerSECRET\0passSECRET"), base64("mailerSECRET"), base64("passSECRET")]);
    words
}

#[tokio::test]
async fn smtp_message_42_only_codes_and_kinds_are_logged_and_recorded() {
    let captured = Captured::default();
    let _guard = captured.everything_of_ours();
    let refusal = |code: u16| say(&format!("{code}-MARKER <user@rcpt.example> mailerSECRET\r\n{code} MARKER \x1b[31m"));
    let mut reasons = Vec::new();
    for (point, acts) in [
        (Point::Greeting, refusal(554)),
        (Point::Greeting, say("MARKER")),
        (Point::Ehlo, refusal(550)),
        (Point::Auth, refusal(535)),
        (Point::Auth, say("334 MARKER")),
        (Point::Mail, refusal(530)),
        (Point::Rcpt, refusal(550)),
        (Point::Data, refusal(451)),
        (Point::DataEnd, refusal(554)),
        (Point::DataEnd, vec![Act::Reset]),
        (Point::Rset, refusal(500)),
    ] {
        let trusted = Trusted::start(vec![Script::tls().on(point, acts)]).await;
        let smtp = Smtp::new(trusted.config(&format!("smtps://{LOGIN}@127.0.0.1"))).unwrap();
        for _ in 0..2 {
            match smtp.send(&message()).await {
                Outcome::Succeeded => {}
                Outcome::Retry { reason, .. } | Outcome::Failed { reason } => {
                    reasons.push(format!("{reason} {reason:?}"))
                }
                Outcome::Deferred { .. } => panic!("never of a relay"),
            }
        }
        reasons.push(format!("{smtp:?}"));
    }
    let untrusted = Trusted::start(vec![Script::tls()]).await;
    let relay = untrusted.server.relay_by(&format!("smtps://{LOGIN}@127.0.0.1"));
    reasons.push(format!("{:?}", Smtp::new(config(vec![relay])).unwrap().send(&message_to("a@rcpt.example")).await));
    let logged = captured.text();
    assert!(logged.contains("a mail relay cannot be used"), "the capture works: {logged}");
    for word in hidden() {
        assert!(!logged.contains(&word), "{word} in {logged}");
        assert!(!reasons.concat().contains(&word), "{word} in {reasons:?}");
    }
}

#[test]
fn no_setting_and_no_error_shows_a_login() {
    let relay = Relay::parse(&format!("smtps://{LOGIN}@relay.example")).unwrap();
    let settings = SmtpConfig { allow_plain_to_any_host: true, ..config(vec![relay.clone()]) };
    let in_clear = Relay::parse(&format!("smtp+plain://{LOGIN}@relay.example")).unwrap();
    let refused = Smtp::new(config(vec![in_clear])).unwrap_err();
    assert!(matches!(refused, SmtpSetupError::LoginInClear { .. }));
    let malformed: Vec<RelayError> =
        ["x", "smtps://u@h", "smtps://@", "smtps://relay.example:x", "smtps://relay.example/x"]
            .map(|text| text.replace("//", &format!("//{LOGIN}@")))
            .iter()
            .filter_map(|text| Relay::parse(text).err())
            .collect();
    assert!(malformed.len() >= 4, "{malformed:?}");
    let shown = format!("{relay} {relay:?} {settings:?} {refused} {refused:?} {malformed:?} {}", malformed[0]);
    assert!(!shown.contains("SECRET"), "{shown}");
}
