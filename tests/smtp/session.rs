//! What a session looks like on the wire, byte for byte: the session checks of RFC 5321 and the extensions, by number.

use std::time::Duration;

use postrider::mail::Message;
use postrider::mail::smtp::{Relay, Smtp, SmtpConfig, StageTimeouts};
use postrider_actors::{Outcome, Reason};

use crate::mail::{code, message, message_to, message_with};
use crate::outbound::{Ca, Dns, Found};
use crate::script::{Act, Point, Script, Seen, Server, config, say};
use crate::tls::Trusted;

/// A message over a connection that takes everything.
async fn one(message: &Message, script: Script) -> Seen {
    let server = Server::like(script).await;
    assert_eq!(Smtp::new(server.config()).unwrap().send(message).await, Outcome::Succeeded);
    server.log().all_gone().await;
    server.log().only()
}

#[tokio::test]
async fn smtp_message_25_the_client_names_itself_and_again_under_tls() {
    let trusted = Trusted::start(vec![Script::start_tls()]).await;
    assert_eq!(trusted.send("smtp://127.0.0.1", &message()).await, Outcome::Succeeded);
    let seen = trusted.server.log().only();
    assert_eq!(seen.clear, b"EHLO client.example.org\r\nSTARTTLS\r\n");
    assert!(seen.tls.starts_with(b"EHLO client.example.org\r\nMAIL FROM:<"));
    let literal = Server::like(Script::clear()).await;
    let settings = SmtpConfig { helo: "[192.0.2.1]".into(), ..literal.config() };
    assert_eq!(Smtp::new(settings).unwrap().send(&message()).await, Outcome::Succeeded);
    assert_eq!(literal.log().only().commands()[0], "EHLO [192.0.2.1]");
}

/// A relay that says in clear that it takes 10 octets and no mail of ours, and something else under TLS.
#[tokio::test]
async fn smtp_message_26_what_was_learnt_in_clear_is_forgotten() {
    let lies = say("250-relay.example\r\n250-STARTTLS\r\n250-SMTPUTF8\r\n250-8BITMIME\r\n250 SIZE 10");
    let script = Script::start_tls().on(Point::EhloInClear, lies).offering(&[]);
    let trusted = Trusted::start(vec![script.clone()]).await;
    assert_eq!(trusted.send("smtp://127.0.0.1", &message()).await, Outcome::Succeeded);
    let mail = &trusted.server.log().only().commands()[3];
    assert_eq!(mail, "MAIL FROM:<noreply@sender.example>", "no parameter that only the clear list had");
    let trusted = Trusted::start(vec![script]).await;
    let outcome = trusted.send("smtp://127.0.0.1", &message_to("jos\u{e9}@rcpt.example")).await;
    assert_eq!(outcome, Outcome::failed(Reason::Smtputf8));
}

#[tokio::test]
async fn smtp_message_27_without_tls_there_is_no_login_and_no_mail() {
    let broken = [say("220 go"), vec![Act::Hear, Act::Say(b"no TLS at all\r\n".to_vec()), Act::Stall]].concat();
    for script in [
        Script::clear(), // STARTTLS is not offered
        Script::start_tls().on(Point::StartTls, say("454 4.7.0 not now")),
        Script::start_tls().on(Point::StartTls, broken),
    ] {
        let trusted = Trusted::start(vec![script]).await;
        let outcome = trusted.send("smtp://mailer:secret@127.0.0.1", &message()).await;
        assert!(matches!(outcome, Outcome::Retry { .. }), "{outcome:?}");
        trusted.server.log().all_gone().await;
        let seen = trusted.server.log().only();
        let clear = String::from_utf8_lossy(&seen.clear).into_owned();
        assert!(!clear.contains("AUTH") && !clear.contains("MAIL"), "{clear}");
        assert_eq!(seen.tls, b"");
    }
}

/// A relay by name: looked up, and its certificate must be of that name.
async fn by_name(certified: &[&str], scheme: &str, script: Script) -> (Outcome, Server) {
    let ca = Ca::new();
    let dns = Dns::saying(Found::at(&["127.0.0.1"])).await;
    let server = Server::certified(ca.certify(certified), vec![script]).await;
    let relay = server.relay_by(&format!("{scheme}://relay.example"));
    let settings =
        SmtpConfig { name_server: Some(dns.address()), extra_roots: Some(ca.path().to_owned()), ..config(vec![relay]) };
    (Smtp::new(settings).unwrap().send(&message()).await, server)
}

#[tokio::test]
async fn smtp_message_28_the_certificate_is_of_the_relays_name_which_is_the_sni() {
    for (scheme, script) in [("smtps", Script::tls()), ("smtp", Script::start_tls())] {
        let (outcome, server) = by_name(&["relay.example"], scheme, script.clone()).await;
        assert_eq!(outcome, Outcome::Succeeded);
        let seen = server.log().only();
        assert_eq!((seen.sni.as_deref(), seen.alpn), (Some("relay.example"), None));
        let (outcome, server) = by_name(&["other.example"], scheme, script.clone()).await;
        assert_eq!(outcome, Outcome::retry(Reason::Tls));
        assert_eq!(server.log().only().tls, b"");
        let trusted = Trusted::start(vec![script]).await;
        let untrusting = config(vec![trusted.server.relay_by(&format!("{scheme}://127.0.0.1"))]);
        let outcome = Smtp::new(untrusting).unwrap().send(&message()).await;
        assert_eq!(outcome, Outcome::retry(Reason::Tls), "a root that nobody trusts");
    }
}

#[tokio::test]
async fn smtp_message_29_a_login_goes_by_an_offered_mechanism_only() {
    // "\0mailer\0secret", "mailer", "secret"
    let plain = vec!["AUTH PLAIN AG1haWxlcgBzZWNyZXQ="];
    let login = vec!["AUTH LOGIN", "bWFpbGVy", "c2VjcmV0"];
    for (offer, expected) in [
        ("AUTH PLAIN LOGIN", Some(plain.clone())),
        ("AUTH LOGIN PLAIN", Some(plain)),
        ("AUTH LOGIN", Some(login)),
        ("AUTH CRAM-MD5 XOAUTH2", None),
        ("ENHANCEDSTATUSCODES", None),
    ] {
        let script = Script::tls()
            .offering(&[offer])
            .on(Point::Auth, say(if offer == "AUTH LOGIN" { "334 VXNlcm5hbWU6" } else { "235 welcome" }));
        let trusted = Trusted::start(vec![script]).await;
        let outcome = trusted.send("smtps://mailer:secret@127.0.0.1", &message()).await;
        trusted.server.log().all_gone().await;
        let commands = trusted.server.log().only().commands();
        match expected {
            Some(expected) => {
                assert_eq!(outcome, Outcome::Succeeded, "{offer}");
                assert_eq!(commands[1..=expected.len()], expected, "{offer}");
            }
            None => {
                assert_eq!(outcome, Outcome::retry(Reason::Protocol), "{offer}");
                assert_eq!(commands, ["EHLO client.example.org"], "{offer}");
            }
        }
    }
}

#[tokio::test]
async fn smtp_message_29_a_refused_mechanism_is_not_followed_by_another() {
    let script = Script::tls().offering(&["AUTH PLAIN LOGIN"]).on(Point::Auth, say("504 5.5.4 not this one"));
    let trusted = Trusted::start(vec![script]).await;
    let outcome = trusted.send("smtps://mailer:secret@127.0.0.1", &message()).await;
    assert_eq!(outcome, Outcome::retry(code(504)));
    assert_eq!(trusted.server.log().only().verbs(), ["EHLO", "AUTH"]);
}

#[tokio::test]
async fn smtp_message_30_31_commands_come_in_order_one_by_one_and_are_short() {
    let seen = one(&message(), Script::clear().offering(&[])).await;
    let expected =
        ["EHLO client.example.org", "MAIL FROM:<noreply@sender.example>", "RCPT TO:<user@rcpt.example>", "DATA"];
    assert_eq!(seen.commands(), expected);
    let longest = format!("{}@{}.example", "a".repeat(64), ["b".repeat(60).as_str(); 2].join("."));
    let user = "u".repeat(200);
    let trusted = Trusted::start(vec![Script::tls()]).await;
    let relay = format!("smtps://{user}:{}@127.0.0.1", "p".repeat(160));
    assert_eq!(trusted.send(&relay, &message_to(&longest)).await, Outcome::Succeeded);
    let commands = trusted.server.log().only().commands();
    assert!(commands.iter().all(|line| line.len() + 2 <= 512), "{:?}", commands.iter().map(String::len));
    assert!(commands.iter().any(|line| line.len() > 490), "the longest login is close to the limit");
}

#[tokio::test]
async fn smtp_message_33_the_body_waits_for_354() {
    for reply in ["250 ok", "355 go", "550 no", "451 later", "354-go\r\n250 ok"] {
        let server = Server::like(Script::clear().on(Point::Data, [say(reply), vec![Act::Stall]].concat())).await;
        let settings = server.config();
        let smtp = Smtp::new(settings).unwrap();
        let outcome = smtp.send(&message()).await;
        assert_ne!(outcome, Outcome::Succeeded);
        drop(smtp);
        server.log().all_gone().await;
        assert!(server.log().only().clear.ends_with(b"DATA\r\n"), "{reply}: something went out");
    }
}

/// The wire form of a message: each dot that begins a line doubled, then the end.
fn stuffed(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let lines: Vec<String> = text
        .strip_suffix("\r\n")
        .unwrap_or(&text)
        .split("\r\n")
        .map(|line| if line.starts_with('.') { format!(".{line}") } else { line.to_owned() })
        .collect();
    format!("{}\r\n.\r\n", lines.join("\r\n")).into_bytes()
}

#[tokio::test]
async fn smtp_message_34_dots_are_doubled_and_the_end_comes_once() {
    let message = message_with("user@rcpt.example", ".\r\n..\r\n.a\r\n\r\n.\r\nMAIL FROM:<x@y.example>\r\n.");
    let server = Server::like(Script::clear()).await;
    assert_eq!(Smtp::new(server.config()).unwrap().send(&message).await, Outcome::Succeeded);
    let sent = server.log().only().messages.remove(0);
    assert_eq!(sent, stuffed(message.bytes()));
    assert_eq!(sent.windows(5).filter(|window| window == b"\r\n.\r\n").count(), 1);
    assert_eq!(server.log().only().verbs(), ["EHLO", "MAIL", "RCPT", "DATA"]);
}

#[tokio::test]
async fn smtp_message_35_no_lone_cr_or_lf_is_ever_sent() {
    let message = message_with("user@rcpt.example", "a\n.\nb\r.\rc\r\n.\nd\r\n.\re");
    let server = Server::like(Script::clear()).await;
    let outcome = Smtp::new(server.config()).unwrap().send(&message).await;
    let sent = server.log().connections().into_iter().flat_map(|seen| seen.clear).collect::<Vec<u8>>();
    let text = String::from_utf8(sent).unwrap();
    assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{text:?}");
    assert!(server.log().messages().len() <= 1);
    assert!([Outcome::Succeeded, Outcome::failed(Reason::InvalidMessage)].contains(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn smtp_message_38_a_connection_that_has_done_its_share_is_ended_by_quit() {
    for quit in [say("221 bye"), say("500 no"), vec![Act::Stall], vec![Act::Reset]] {
        let server = Server::like(Script::clear().on(Point::Quit, quit)).await;
        let mut settings = server.config();
        settings.connections.messages = 1;
        let smtp = Smtp::new(settings).unwrap();
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
        server.log().until("QUIT", |all| all[0].clear.ends_with(b"QUIT\r\n")).await;
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
        assert_eq!(server.log().connections().len(), 2);
    }
}

#[tokio::test]
async fn smtp_message_38_idle_connections_are_ended_by_quit_at_the_close() {
    let server = Server::like(Script::clear()).await;
    let smtp = Smtp::new(server.config()).unwrap();
    assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
    smtp.close().await;
    server.log().all_gone().await;
    assert!(server.log().only().clear.ends_with(b"QUIT\r\n"));
}

#[tokio::test]
async fn smtp_message_39_each_step_has_its_time_and_all_have_one_together() {
    let short = Duration::from_millis(500);
    let server = Server::like(Script::clear().on(Point::DataEnd, vec![Act::Stall])).await;
    let settings = SmtpConfig { total_timeout: short, ..server.config() };
    assert_eq!(Smtp::new(settings).unwrap().send(&message()).await, Outcome::retry(Reason::Timeout));
    server.log().all_gone().await;
    let defaults = SmtpConfig::new(vec![Relay::parse("smtps://relay.example").unwrap()], "client.example.org");
    assert!(defaults.total_timeout < Duration::from_secs(10), "below the engine's own");
}

/// An answer that comes too late is a message that goes out twice: no step's time cuts this wait short.
#[tokio::test]
async fn smtp_message_39_the_answer_to_the_final_dot_has_all_the_time_that_is_left() {
    let step = Duration::from_millis(500);
    let slow = [vec![Act::Pause(step * 2)], say("250 queued")].concat();
    let server = Server::like(Script::clear().on(Point::DataEnd, slow)).await;
    let stage_timeouts = StageTimeouts { connect: step, tls: step, reply: step };
    let settings = SmtpConfig { stage_timeouts, ..server.config() };
    assert_eq!(Smtp::new(settings).unwrap().send(&message()).await, Outcome::Succeeded);
}

/// Asked for with too little time left for the answer, the message is not sent: a later attempt has more.
#[tokio::test]
async fn smtp_message_39_a_message_goes_out_only_with_a_quarter_of_the_time_left() {
    let total = Duration::from_secs(2);
    let late = [vec![Act::Pause(total * 8 / 10)], say("354 go")].concat();
    let server = Server::like(Script::clear().on(Point::Data, late)).await;
    let settings = SmtpConfig { total_timeout: total, ..server.config() };
    assert_eq!(Smtp::new(settings).unwrap().send(&message()).await, Outcome::retry(Reason::Timeout));
    server.log().all_gone().await;
    assert!(server.log().only().clear.ends_with(b"DATA\r\n"), "something went out");
}

#[tokio::test]
async fn smtp_message_40_a_parameter_is_used_only_where_it_is_offered() {
    let message = message();
    let size = message.bytes().len();
    let with_size = format!("MAIL FROM:<noreply@sender.example> SIZE={size}");
    for (extensions, expected) in [
        (&[][..], "MAIL FROM:<noreply@sender.example>"),
        (&["8BITMIME", "SMTPUTF8", "PIPELINING"], "MAIL FROM:<noreply@sender.example>"),
        (&["SIZE"], &with_size),
        (&["SIZE 0"], &with_size),
        (&["size 1000000"], &with_size),
    ] {
        let seen = one(&message, Script::clear().offering(extensions)).await;
        assert_eq!(seen.commands()[1], expected, "{extensions:?}");
        assert_eq!(seen.messages[0].len(), size + 3, "SIZE is what is sent, without the dot");
    }
}

#[tokio::test]
async fn smtp_message_41_after_a_broken_protocol_the_connection_is_dropped() {
    for (point, reply) in [
        (Point::Mail, "250-ok\r\n550 no"),
        (Point::Rcpt, "hello"),
        (Point::Data, "250 ok"),
        (Point::DataEnd, "354 more"),
    ] {
        let server = Server::start(vec![Script::clear().on(point, say(reply)), Script::clear()]).await;
        let smtp = Smtp::new(server.config()).unwrap();
        assert_eq!(smtp.send(&message()).await, Outcome::retry(Reason::Protocol), "{point:?}");
        server.log().until("the client is gone", |all| all[0].gone).await;
        assert_eq!(smtp.send(&message()).await, Outcome::Succeeded);
        assert_eq!(server.log().connections().len(), 2, "{point:?}");
    }
}
