//! Bugs that other mail clients had, by the number of the case.

use std::time::Duration;

use postrider::mail::smtp::{ConnectionLimits, Relay, Smtp, SmtpConfig, SmtpSetupError};
use postrider::mail::{Draft, EmailAddress, Mailbox, compose};
use postrider_actors::{DeliveryId, Outcome, Reason};

use crate::mail::{code, message, message_to, message_with};
use crate::script::{Act, Point, Script, Server, config, say};
use crate::tls::Trusted;

const BREAKS: [&str; 7] = ["\r", "\n", "\r\n", "\0", "\u{85}", "\u{2028}", ">\r\nRCPT TO:<w@e.x"];

#[tokio::test]
async fn c13_a_line_break_in_the_client_name_or_a_relay_is_refused_at_setup() {
    let server = Server::like(Script::clear()).await;
    for text in BREAKS {
        for helo in [format!("client.example{text}.org"), format!("client.example.org{text}MAIL FROM:<x@y>")] {
            let refused = Smtp::new(SmtpConfig { helo, ..server.config() });
            assert!(matches!(refused, Err(SmtpSetupError::Helo)), "{text:?}");
        }
        for relay in [format!("smtp+plain://127.0.0.1{text}"), format!("smtp+plain://u{text}:p@127.0.0.1")] {
            assert!(Relay::parse(&relay).is_err(), "{relay:?}");
        }
    }
    assert!(server.log().connections().is_empty());
}

/// Whoever refuses first, the address, the composition or the session: no connection is made.
#[tokio::test]
async fn c13_a_line_break_in_an_address_reaches_no_relay() {
    let server = Server::like(Script::clear()).await;
    let smtp = Smtp::new(server.config()).unwrap();
    let usual = Mailbox { name: None, address: EmailAddress::parse("noreply@sender.example").unwrap() };
    for text in BREAKS {
        for hostile in [format!("v{text}x@e.example"), format!("v@e.ex{text}ample"), format!("v@e.example{text}")] {
            let Ok(address) = EmailAddress::parse(&hostile) else { continue };
            let from_it = Mailbox { name: None, address: address.clone() };
            for (from, to) in [(&usual, &address), (&from_it, &usual.address)] {
                let draft = Draft {
                    delivery: DeliveryId::generate(),
                    date: chrono::DateTime::UNIX_EPOCH,
                    from,
                    to,
                    reply_to: None,
                    subject: "Hello",
                    text: "Hello.",
                    html: "<p>Hello</p>",
                    unsubscribe: None,
                };
                let Ok(message) = compose(&draft) else { continue };
                assert_eq!(smtp.send(&message).await, Outcome::failed(Reason::InvalidAddress), "{hostile:?}");
            }
        }
    }
    assert!(server.log().connections().is_empty());
}

/// The message is with the relay, and the answer is not with us: one DATA, and the next attempt sends the same bytes.
#[tokio::test]
async fn c15_an_unknown_outcome_is_one_retry_with_the_same_message() {
    let message = message();
    for (end, reason) in [
        (vec![Act::Reset], Reason::Connection),
        (vec![Act::Close], Reason::Connection),
        (vec![Act::Stall], Reason::Timeout),
    ] {
        let first = Script::clear().on(Point::DataEnd, end);
        let server = Server::start(vec![first]).await;
        let other = Server::like(Script::clear()).await;
        let mut settings = config(vec![server.relay(), other.relay()]);
        settings.total_timeout = Duration::from_secs(2);
        let smtp = Smtp::new(settings).unwrap();
        assert_eq!(smtp.send(&message).await, Outcome::retry(reason));
        assert_eq!(server.log().only().messages.len(), 1, "once in one attempt");
        assert_eq!(other.log().connections().len(), 0, "nor through another relay");
        assert_eq!(smtp.send(&message).await, Outcome::Succeeded);
        assert_eq!(server.log().connections().len(), 1, "the relay that broke it off is tried last");
        let sent = server.log().only().messages.remove(0);
        assert!(sent == other.log().only().messages[0], "the same bytes");
        let text = String::from_utf8(sent).unwrap();
        assert_eq!(text.matches("Message-ID: <01900000-0000-7000-8000-000000000001@sender.example>").count(), 1);
    }
}

/// Nor over a fresh connection, where it was a kept one that broke.
#[tokio::test]
async fn c15_a_kept_connection_that_breaks_after_the_354_is_not_replaced() {
    let asked = [say("354 go"), vec![Act::Hear, Act::Reset]].concat();
    for (point, acts) in [(Point::DataEnd, vec![Act::Reset]), (Point::Data, asked)] {
        let server = Server::start(vec![Script::clear().nth(point, 1, acts), Script::clear()]).await;
        let smtp = Smtp::new(server.config()).unwrap();
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
        assert_eq!(smtp.send(&message()).await, Outcome::retry(Reason::Connection), "{point:?}");
        assert_eq!(server.log().connections().len(), 1, "{point:?}");
    }
}

#[tokio::test]
async fn c16_a_relay_that_is_slow_after_the_dot_loses_the_connection() {
    let slow = Script::clear().on(Point::DataEnd, vec![Act::Stall]);
    let server = Server::start(vec![slow, Script::clear()]).await;
    let mut settings = server.config();
    settings.total_timeout = Duration::from_secs(2);
    let smtp = Smtp::new(settings).unwrap();
    assert_eq!(smtp.send(&message()).await, Outcome::retry(Reason::Timeout));
    server.log().until("the client is gone", |all| all[0].gone).await;
    assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    assert_eq!(server.log().connections().len(), 2, "a late 250 can be read by nobody");
}

/// What comes after a reply and before the next command is never that command's reply.
#[tokio::test]
async fn c16_a_late_reply_is_not_the_answer_to_the_next_command() {
    // The message is taken; then comes a 250 too many, which would make the refusal of the next MAIL a success.
    let twice = Script::clear().on(Point::DataEnd, say("250 ok\r\n250 late")).nth(Point::Mail, 1, say("550 no"));
    let server = Server::start(vec![twice, Script::clear()]).await;
    let smtp = Smtp::new(server.config()).unwrap();
    assert_eq!(smtp.send(&message()).await, Outcome::Succeeded, "an acceptance is an acceptance");
    assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    assert_eq!(server.log().connections().len(), 2);
    assert_eq!(server.log().connections()[0].messages.len(), 1);
}

#[tokio::test]
async fn c17_replies_of_many_lines_are_read_at_every_command() {
    let many = |code: u16| say(&format!("{code}-a\r\n{code}-b {code} c\r\n{code} d"));
    let script = Script::tls()
        .on(Point::Greeting, say("220-mx ESMTP\r\n220-no spam\r\n220 ok"))
        .on(Point::Auth, many(235))
        .on(Point::Mail, many(250))
        .on(Point::Rcpt, many(250))
        .on(Point::Data, many(354))
        .on(Point::DataEnd, many(250))
        .on(Point::Rset, many(250));
    let trusted = Trusted::start(vec![script]).await;
    let smtp = Smtp::new(trusted.config("smtps://mailer:secret@127.0.0.1")).unwrap();
    for _ in 0..2 {
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    }
    assert_eq!(trusted.server.log().only().messages.len(), 2);
}

#[tokio::test]
async fn c17_codes_that_differ_and_replies_without_end_are_no_replies() {
    let refused = Outcome::failed(code(550));
    let protocol = Outcome::retry(Reason::Protocol);
    let endless = |line: &str, times| vec![Act::Say(line.repeat(times).into_bytes()), Act::Stall];
    for (point, acts, expected) in [
        (Point::Greeting, say("220-mx\r\n521 5.7.1 blocked"), protocol),
        (Point::Rcpt, say("550-5.7.1 a\r\n550-5.7.1 b\r\n550 5.7.1 c"), refused),
        (Point::Rcpt, endless("550-again\r\n", 5000), protocol),
        (Point::Ehlo, endless("250-AUTH PLAIN\r\n", 5000), protocol),
        (Point::Rcpt, say(&format!("550 {}", "x".repeat(1_000_000))), protocol),
    ] {
        let server = Server::like(Script::clear().on(point, acts)).await;
        assert_eq!(Smtp::new(server.config()).unwrap().send(&message()).await, expected, "{point:?}");
        server.log().all_gone().await;
    }
}

#[tokio::test]
async fn c18_a_bare_code_is_a_reply_and_malformed_lines_end_the_session() {
    let usual = [
        (Point::Greeting, "220"),
        (Point::Ehlo, "250"),
        (Point::Auth, "235"),
        (Point::Rcpt, "250"),
        (Point::DataEnd, "250"),
    ];
    for (point, code) in usual {
        for (line, expected) in [
            (code.as_bytes().to_vec(), Outcome::Succeeded),
            ([code.as_bytes(), b" \xff\xfe"].concat(), Outcome::Succeeded),
            (b"25".to_vec(), Outcome::retry(Reason::Protocol)),
            (b"".to_vec(), Outcome::retry(Reason::Protocol)),
            (b"2500 x".to_vec(), Outcome::retry(Reason::Protocol)),
            (b"334".to_vec(), Outcome::retry(Reason::Protocol)),
        ] {
            let acts = vec![Act::Say([line.as_slice(), b"\r\n"].concat())];
            let mut script = Script::clear().on(point, acts.clone()).on(Point::AuthAnswer, acts);
            if point != Point::Ehlo {
                script = script.offering(&["AUTH PLAIN"]);
            }
            let server = Server::like(script).await;
            let login = if point == Point::Auth { "mailer:secret@" } else { "" };
            let settings = config(vec![server.relay_by(&format!("smtp+plain://{login}127.0.0.1"))]);
            let outcome = Smtp::new(settings).unwrap().send(&message()).await;
            assert_eq!(outcome, expected, "{} at {point:?}", String::from_utf8_lossy(&line));
        }
    }
}

#[tokio::test]
async fn c20_an_address_goes_out_as_it_is_and_smtputf8_only_where_it_is_needed() {
    let offers = &["SMTPUTF8", "8BITMIME"][..];
    for to in ["user@rcpt.example", "x@xn--bcher-kva.example", "\"a b\"@rcpt.example"] {
        for extensions in [&[][..], offers] {
            let server = Server::like(Script::clear().offering(extensions)).await;
            let outcome = Smtp::new(server.config()).unwrap().send(&message_to(to)).await;
            assert_eq!(outcome, Outcome::Succeeded, "{to}");
            let commands = server.log().only().commands();
            assert_eq!(commands[1], "MAIL FROM:<noreply@sender.example>", "{to}");
            assert_eq!(commands[2], format!("RCPT TO:<{to}>"));
        }
    }
    let to = "jos\u{e9}@rcpt.example";
    let message = message_to(to);
    let body = if message.bytes().is_ascii() { "" } else { " BODY=8BITMIME" };
    let server = Server::like(Script::clear().offering(offers)).await;
    assert_eq!(Smtp::new(server.config()).unwrap().send(&message).await, Outcome::Succeeded);
    let commands = server.log().only().commands();
    assert_eq!(commands[1], format!("MAIL FROM:<noreply@sender.example>{body} SMTPUTF8"));
    assert_eq!(commands[2], format!("RCPT TO:<{to}>"), "neither encoded nor punycoded");
    let server = Server::like(Script::clear().offering(&["8BITMIME"])).await;
    let smtp = Smtp::new(server.config()).unwrap();
    assert_eq!(smtp.send(&message).await, Outcome::failed(Reason::Smtputf8));
    assert_eq!(server.log().only().verbs(), ["EHLO"], "nothing is sent");
    assert_eq!(smtp.send(&message_to("user@rcpt.example")).await, Outcome::Succeeded);
    assert_eq!(
        server.log().only().verbs(),
        ["EHLO", "RSET", "MAIL", "RCPT", "DATA"],
        "the connection is as good as new"
    );
}

#[tokio::test]
async fn c21_all_bytes_are_of_seven_bits_and_no_line_is_too_long() {
    let long = format!("Gr\u{fc}\u{df}e {}", "x".repeat(5000));
    let server = Server::like(Script::clear().offering(&[])).await;
    let message = message_with("user@rcpt.example", &long);
    assert_eq!(Smtp::new(server.config()).unwrap().send(&message).await, Outcome::Succeeded);
    let seen = server.log().only();
    assert!(seen.clear.is_ascii());
    assert!(seen.clear.split(|byte| *byte == b'\n').all(|line| line.len() <= 999));
    assert_eq!(seen.commands()[1], "MAIL FROM:<noreply@sender.example>");
}

#[tokio::test]
async fn c23_bytes_in_clear_after_the_reply_to_starttls_end_the_session() {
    let injected = "220 go\r\n250-relay.example\r\n250-AUTH PLAIN\r\n250 x";
    let script = Script::start_tls().on(Point::StartTls, [say(injected), vec![Act::Handshake]].concat());
    let trusted = Trusted::start(vec![script]).await;
    let outcome = trusted.send("smtp://mailer:secret@127.0.0.1", &message()).await;
    assert_eq!(outcome, Outcome::retry(Reason::Protocol));
    trusted.server.log().all_gone().await;
    let seen = trusted.server.log().only();
    assert_eq!(seen.clear, b"EHLO client.example.org\r\nSTARTTLS\r\n", "nothing after it, in clear or as a handshake");
    assert_eq!(seen.tls, b"");
}

#[tokio::test]
async fn c23_a_relay_that_does_not_come_to_tls_gets_no_login() {
    for (script, expected) in [
        (Script::clear(), Some(Reason::Tls)),
        (Script::start_tls().on(Point::StartTls, say("454 4.7.0 TLS not available")), None),
        (Script::start_tls().on(Point::StartTls, [say("220 go"), vec![Act::Close]].concat()), Some(Reason::Connection)),
    ] {
        let expected = expected.unwrap_or(code(454));
        let trusted = Trusted::start(vec![script]).await;
        let outcome = trusted.send("smtp://mailer:secret@127.0.0.1", &message()).await;
        assert_eq!(outcome, Outcome::retry(expected));
        trusted.server.log().all_gone().await;
        let verbs = String::from_utf8_lossy(&trusted.server.log().only().clear).into_owned();
        assert!(!verbs.contains("AUTH") && !verbs.contains("MAIL"), "{verbs}");
    }
}

/// Only the list under TLS counts: a login that only the clear list offers is not made.
#[tokio::test]
async fn c23_only_the_second_list_of_capabilities_counts() {
    let trusted = Trusted::start(vec![Script::start_tls().offering(&["SIZE 100000"])]).await;
    let outcome = trusted.send("smtp://mailer:secret@127.0.0.1", &message()).await;
    assert_eq!(outcome, Outcome::retry(Reason::Protocol), "AUTH was offered in clear alone");
    assert_eq!(trusted.server.log().only().tls, b"EHLO client.example.org\r\n");
}

/// No setting lets a login out in clear to another machine, and one lets mail out.
#[test]
fn c23_a_login_in_clear_stays_on_this_machine() {
    let plain = |url: &str, allow_plain_to_any_host| {
        let settings = SmtpConfig { allow_plain_to_any_host, ..config(vec![Relay::parse(url).unwrap()]) };
        Smtp::new(SmtpConfig { connections: ConnectionLimits::default(), ..settings }).map(|_| ())
    };
    assert!(matches!(plain("smtp+plain://10.0.0.1", false), Err(SmtpSetupError::PlainToOtherHost { index: 0 })));
    assert!(plain("smtp+plain://10.0.0.1", true).is_ok());
    for allowed in [false, true] {
        let refused = plain("smtp+plain://mailer:secret@10.0.0.1", allowed);
        assert!(matches!(refused, Err(SmtpSetupError::LoginInClear { index: 0 })));
    }
    assert!(plain("smtp+plain://mailer:secret@localhost", false).is_ok());
}
