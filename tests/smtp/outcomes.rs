//! tests/data/smtp_replies.csv against scripted relays: what each reply and each break comes to.

use std::collections::BTreeMap;
use std::time::Duration;

use hickory_resolver::proto::op::ResponseCode;
use postrider::mail::Message;
use postrider::mail::smtp::{ConnectionLimits, Relay, Smtp, SmtpConfig, StageTimeouts};
use postrider_actors::{Outcome, Reason};

use crate::mail::{code, message, message_to};
use crate::outbound::{Ca, Dns, Found, Row, Unanswering, rows, unescape, vacant};
use crate::script::{Act, Point, Script, Server, config, say};

/// Of a row whose relay says nothing: the time of the step that it says nothing at.
const SHORT: Duration = Duration::from_millis(300);

/// What an outcome is in the table's words: outcome and recorded error.
fn words(outcome: Outcome) -> (&'static str, String) {
    match outcome {
        Outcome::Succeeded => ("succeeded", String::new()),
        Outcome::Retry { reason, not_before: None } => ("retry", reason.to_string()),
        Outcome::Failed { reason } => ("failed", reason.to_string()),
        other => panic!("never of a relay: {other:?}"),
    }
}

/// Why a row is not run here; none is left out without a reason.
fn elsewhere(row: &Row) -> Option<&'static str> {
    match &*row["id"] {
        "S173" => Some("for relays that a third party names, of which there are none"),
        "S200" | "S201" => Some("fails by its age, in tests/queue/outcome_vectors.rs"),
        _ => None,
    }
}

#[tokio::test]
async fn every_row_of_smtp_replies_comes_to_what_it_says() {
    let rows = rows("smtp_replies.csv");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in &rows {
        if let Some(reason) = elsewhere(row) {
            *counts.entry(format!("not run: {reason}")).or_default() += 1;
            continue;
        }
        let (outcome, reason) = words(run(row).await);
        if (outcome, reason.as_str()) != (&row["outcome"], &row["recorded_error"]) {
            wrong.push(format!("{} at {}: {outcome} {reason}; {}", row["id"], row["stage"], row["why"]));
        }
        *counts.entry(outcome.to_owned()).or_default() += 1;
    }
    println!("smtp_replies.csv, {} rows:", rows.len());
    counts.iter().for_each(|(outcome, count)| println!("{count:>5}  {outcome}"));
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(counts.values().sum::<usize>(), rows.len(), "a row was not run");
}

async fn run(row: &Row) -> Outcome {
    let event = row["reply"].strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    match (&*row["stage"], event) {
        ("dns", Some("nxdomain")) => resolved(Found::Code(ResponseCode::NXDomain)).await,
        ("dns", Some("servfail")) => resolved(Found::Code(ResponseCode::ServFail)).await,
        ("connect", Some("refused")) => dialled("127.0.0.1", vacant().await).await,
        ("connect", Some("timeout")) => {
            let silent = Unanswering::start().await;
            dialled("127.0.0.1", silent.port()).await
        }
        // No route leads to the limited broadcast address over TCP.
        ("connect", Some("unreachable")) => dialled("255.255.255.255", 25).await,
        ("starttls", _) => start_tls(row, event).await,
        ("ehlo", None) if row["why"].contains("STARTTLS") => {
            let server = Server::like(Script::start_tls().on(Point::EhloInClear, said(row))).await;
            send_by(config(vec![server.relay_by("smtp://127.0.0.1")])).await
        }
        ("ehlo", None) if row["reply"].contains("TLS already up") => {
            let ca = Ca::new();
            let server =
                Server::certified(ca.certify(&["127.0.0.1"]), vec![Script::tls().on(Point::Ehlo, said(row))]).await;
            let to = if row["reply"].contains("not ASCII") { "jos\u{e9}@rcpt.example" } else { "user@rcpt.example" };
            let relays = vec![server.relay_by("smtps://127.0.0.1")];
            let settings = SmtpConfig { extra_roots: Some(ca.path().to_owned()), ..config(relays) };
            let outcome = send_this(settings, &message_to(to)).await;
            server.log().all_gone().await;
            assert_eq!(server.log().only().verbs(), ["EHLO"], "{}: nothing of the message is sent", row["id"]);
            outcome
        }
        (stage, event) => {
            let point = point(stage);
            let acts = event.map_or_else(|| said(row), happens);
            let server = Server::like(Script::clear().on(point, acts)).await;
            let mut settings = server.config();
            if point == Point::Auth {
                settings = config(vec![server.relay_by("smtp+plain://mailer:secret@127.0.0.1")]);
            }
            if point == Point::Quit {
                settings.connections = ConnectionLimits { messages: 1, ..ConnectionLimits::default() };
            }
            if event == Some("timeout") {
                settings.stage_timeouts = short();
            }
            if point == Point::DataEnd && event == Some("timeout") {
                settings.total_timeout = Duration::from_secs(1);
            }
            let outcome = send_by(settings).await;
            assert!(reached(&server, point), "{}: never came to {point:?}", row["id"]);
            assert!(server.log().messages().len() <= 1, "{}: sent more than once", row["id"]);
            outcome
        }
    }
}

/// Every step that a relay may stall at; the connect is not short, but where it is what stalls.
fn short() -> StageTimeouts {
    StageTimeouts { connect: Duration::from_secs(3), tls: SHORT, reply: SHORT }
}

fn point(stage: &str) -> Point {
    match stage {
        "greeting" => Point::Greeting,
        "ehlo" => Point::Ehlo,
        "auth" => Point::Auth,
        "mail" => Point::Mail,
        "rcpt" => Point::Rcpt,
        "data" => Point::Data,
        "data_end" => Point::DataEnd,
        "quit" => Point::Quit,
        other => panic!("no point for the stage {other}"),
    }
}

/// The client got as far as the row says.
fn reached(server: &Server, point: Point) -> bool {
    let seen = server.log().only();
    let verb = match point {
        Point::Greeting => return true,
        Point::DataEnd => return seen.messages.len() == 1,
        Point::Quit => return seen.messages.len() == 1,
        Point::Ehlo => "EHLO",
        Point::Auth => "AUTH",
        Point::Mail => "MAIL",
        Point::Rcpt => "RCPT",
        _ => "DATA",
    };
    seen.verbs().iter().any(|said| said == verb)
}

fn happens(event: &str) -> Vec<Act> {
    match event {
        "timeout" => vec![Act::Stall],
        "close" => vec![Act::Close],
        "reset" => vec![Act::Reset],
        other => panic!("an event that no test makes: {other}"),
    }
}

/// The bytes of a row: what describes the rest of the script goes, and CRLF is added unless the row ends otherwise.
fn said(row: &Row) -> Vec<Act> {
    let mut text = row["reply"].as_str();
    for rest in ["; then ", "; whole ", "; TLS already up", " (two ", " (no ", " (message "] {
        text = text.split(rest).next().unwrap();
    }
    let mut text = unescape(text);
    if !text.ends_with('\n') && !row["reply"].ends_with("(no line end)") {
        text.push_str("\r\n");
    }
    vec![Act::Say(text.into_bytes())]
}

async fn resolved(found: Found) -> Outcome {
    let dns = Dns::saying(found).await;
    let relay = Relay::parse("smtp+plain://relay.example").unwrap();
    let settings =
        SmtpConfig { name_server: Some(dns.address()), allow_plain_to_any_host: true, ..config(vec![relay]) };
    send_by(settings).await
}

async fn dialled(host: &str, port: u16) -> Outcome {
    let relay = Relay::parse(&format!("smtp+plain://{host}:{port}")).unwrap();
    let stage_timeouts = StageTimeouts { connect: SHORT, ..StageTimeouts::default() };
    send_by(SmtpConfig { allow_plain_to_any_host: true, stage_timeouts, ..config(vec![relay]) }).await
}

/// The replies to STARTTLS, and what goes wrong after a 220.
async fn start_tls(row: &Row, event: Option<&str>) -> Outcome {
    let ca = Ca::new();
    let other = Ca::new();
    let good = ca.certify(&["127.0.0.1"]);
    let go = || say("220 go");
    let shakes = || [go(), vec![Act::Handshake]].concat();
    let alert = b"\x15\x03\x03\x00\x02\x02\x28".to_vec();
    let (identity, acts) = match row["reply"].split_once("; ") {
        Some((_, "handshake fails")) => (good, [go(), vec![Act::Hear, Act::Say(alert), Act::Stall]].concat()),
        Some((_, "certificate expired")) => {
            let expired = ca.certify_with(&["127.0.0.1"], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
            (expired, shakes())
        }
        Some((_, "certificate for another name")) => (ca.certify(&["other.example"]), shakes()),
        Some((_, "self-signed certificate")) => (other.certify(&["127.0.0.1"]), shakes()),
        Some((_, other)) => panic!("no script for {other}"),
        None if event.is_some() => (good, [go(), vec![Act::Stall]].concat()),
        None => (good, said(row)),
    };
    let server = Server::certified(identity, vec![Script::start_tls().on(Point::StartTls, acts)]).await;
    let mut settings = config(vec![server.relay_by("smtp://127.0.0.1")]);
    settings.extra_roots = Some(ca.path().to_owned());
    if event.is_some() {
        settings.stage_timeouts = short();
    }
    let outcome = send_by(settings).await;
    let verbs = server.log().only().clear;
    assert!(verbs.starts_with(b"EHLO client.example.org\r\nSTARTTLS\r\n"), "{}", row["id"]);
    assert_eq!(server.log().only().tls, b"", "{}: nothing goes through a session that failed", row["id"]);
    outcome
}

async fn send_by(settings: SmtpConfig) -> Outcome {
    send_this(settings, &message()).await
}

async fn send_this(settings: SmtpConfig, message: &Message) -> Outcome {
    Smtp::new(settings).unwrap().send(message).await
}

#[tokio::test]
async fn c25_the_class_of_a_code_and_its_place_decide() {
    let failed = |number| Outcome::failed(code(number));
    let retried = |number| Outcome::retry(code(number));
    let protocol = Outcome::retry(Reason::Protocol);
    let table = [
        (Point::Rcpt, "550 5.1.1 nobody", failed(550)),
        (Point::Rcpt, "450 4.2.0 greylisted", retried(450)),
        (Point::DataEnd, "554 5.7.1 spam", failed(554)),
        (Point::Mail, "454 throttled", retried(454)),
        (Point::Rcpt, "552 full", failed(552)),
        (Point::Rcpt, "452 full", retried(452)),
        (Point::Mail, "299 odd", Outcome::Succeeded),
        (Point::DataEnd, "299 odd", Outcome::Succeeded),
        (Point::Data, "250 odd", protocol),
        (Point::Mail, "399 odd", protocol),
        (Point::Mail, "600 odd", protocol),
        (Point::Mail, "000 odd", protocol),
        (Point::DataEnd, "600 odd", protocol),
    ];
    for (point, reply, expected) in table {
        let server = Server::like(Script::clear().on(point, say(reply))).await;
        assert_eq!(send_by(server.config()).await, expected, "{reply} at {point:?}");
        assert!(reached(&server, point), "{reply}");
    }
}

/// A refused recipient is that recipient's own affair: the next message goes over the same connection.
#[tokio::test]
async fn c25_one_refused_recipient_never_fails_the_others() {
    let server = Server::like(Script::clear().nth(Point::Rcpt, 1, say("550 5.1.1 nobody"))).await;
    let smtp = Smtp::new(server.config()).unwrap();
    let mut outcomes = Vec::new();
    for to in ["a@rcpt.example", "b@rcpt.example", "c@rcpt.example"] {
        outcomes.push(words(smtp.send(&message_to(to)).await).0);
    }
    assert_eq!(outcomes, ["succeeded", "failed", "succeeded"]);
    assert_eq!(server.log().only().messages.len(), 2);
}
