//! What arrives in a mailbox is what was composed, read by Python's e-mail package.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use postrider::mail::{DkimSigner, Message};
use postrider::signing::{SigningAlgorithm, SigningKey};
use postrider_actors::Outcome;
use serde_json::json;

use crate::peer::Peer;
use crate::reader::Reader;
use crate::relay::Relaying;
use crate::sample::{DELIVERY, LINK, Sample, address, mailbox};

/// What a relay puts on top (RFC 5321 4.4), and what Postfix's virtual(8) adds there.
const TRACE: [&str; 4] = ["return-path", "x-original-to", "delivered-to", "received"];
const COMPOSED: [&str; 11] = [
    "auto-submitted",
    "content-type",
    "date",
    "from",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "message-id",
    "mime-version",
    "reply-to",
    "subject",
    "to",
];

const SUBJECT: &str = "メールアドレスの確認をお願いします。このメールに心当たりがない場合は、破棄してください 📮 ご不明な点はお問い合わせください";

/// Everything that mail is known to lose on its way.
fn difficult() -> Sample {
    let lines = [
        ".",
        "..",
        ".hidden",
        "",
        "From here on it is not quoted",
        "ends with spaces  ",
        "tab\tand = and =3D and =?utf-8?q?no?=",
        "Grüße, 世界 👩‍👩‍👧‍👦 e\u{301}",
    ];
    let text = format!("{}\n{}\n.\n", lines.join("\n"), "0123456789".repeat(500));
    let html = format!("<p>.</p>\n.\n<p title=\"{}\">{}</p>\n", "0123456789".repeat(500), "é📯".repeat(1_000));
    Sample {
        from: mailbox("Müller, \"Post\" <x@y>", "no-reply@id.example.com"),
        reply_to: Some(mailbox("Hilfe", "help@id.example.com")),
        to: address("someone@mail.test"),
        subject: SUBJECT.into(),
        text,
        html,
        unsubscribe: Some(LINK.into()),
        ..Sample::default()
    }
}

async fn through_postfix(message: &Message) -> Vec<u8> {
    let relaying = Relaying::new().await;
    assert_eq!(relaying.smtp().send(message).await, Outcome::Succeeded);
    relaying.postfix.messages(&message.to().to_string(), 1).await.remove(0)
}

/// A mailbox has the line ends of its system.
fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn assert_as_composed(delivered: &[u8], sample: &Sample) {
    let read = Reader::start().read_bytes(delivered);
    let mut names: Vec<String> = read.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
    names.retain(|name| !TRACE.contains(&name.as_str()));
    names.sort();
    assert_eq!(names, COMPOSED, "each header once, none lost, none added");

    let expected = |mailbox: &postrider::mail::Mailbox| (mailbox.name.clone().unwrap(), mailbox.address.to_string());
    let found = |name: &str| {
        let (display_name, address) = read.mailbox(name);
        (display_name.to_owned(), address.to_owned())
    };
    assert_eq!(found("from"), expected(&sample.from));
    assert_eq!(found("reply-to"), expected(sample.reply_to.as_ref().unwrap()));
    assert_eq!(read.mailbox("to"), ("", &*sample.to.to_string()));
    assert_eq!(read.value("subject"), sample.subject);
    assert_eq!(read.date, "2026-01-01T00:10:00+00:00");
    assert_eq!(read.value("message-id"), format!("<{DELIVERY}@id.example.com>"));
    assert_eq!(read.value("auto-submitted"), "auto-generated");
    assert_eq!(read.value("list-unsubscribe"), format!("<{LINK}>"));
    assert_eq!(read.value("list-unsubscribe-post"), "List-Unsubscribe=One-Click");
    assert_eq!(read.value("mime-version"), "1.0");
    assert_eq!(read.content_type, "multipart/alternative");
    let types: Vec<&str> = read.parts.iter().map(|part| part.content_type.as_str()).collect();
    assert_eq!(types, ["text/plain", "text/html"]);
    assert_eq!(with_lf(read.text()), sample.text);
    assert_eq!(with_lf(read.html()), sample.html);
    // Python notes what RFC 6532 allows.
    let allowed = if sample.to.needs_smtputf8() { vec!["To: NonASCIILocalPartDefect"] } else { Vec::new() };
    assert_eq!(read.defects, allowed);
}

#[tokio::test]
async fn c21_a_difficult_message_arrives_as_it_was_composed_with_no_header_doubled() {
    let sample = difficult();
    let wire = String::from_utf8(sample.message().bytes().to_vec()).unwrap();
    assert!(wire.contains("\r\n..\r\n"), "such lines are stuffed on their way: {wire}");
    assert_as_composed(&through_postfix(&sample.message()).await, &sample);
}

#[tokio::test]
async fn c20_a_message_to_a_local_part_that_is_not_ascii_arrives_as_it_was_composed() {
    let sample = Sample { to: address("björn.ünal@mail.test"), ..difficult() };
    assert_as_composed(&through_postfix(&sample.message()).await, &sample);
}

#[tokio::test]
async fn a_dkim_signature_still_verifies_in_the_mailbox() {
    let mut verifier = Peer::start("verify_dkim.py");
    for algorithm in [SigningAlgorithm::Rs256, SigningAlgorithm::EdDsa] {
        let key = SigningKey::generate(algorithm).unwrap();
        let private_key = key.to_pkcs8_pem().unwrap();
        let signer = DkimSigner::new("id.example.com", "s1", key).unwrap();
        let delivered = through_postfix(&signer.sign(difficult().message()).unwrap()).await;
        let mut verify = |message: &[u8]| {
            let (message, name) = (STANDARD.encode(message), signer.record_name());
            verifier.ask(&json!({ "message": message, "private_key": &*private_key, "name": name }))
        };
        let verdict = verify(&delivered);
        assert_eq!(verdict["valid"], true, "{algorithm}: {verdict}");
        let changed = String::from_utf8(delivered).unwrap().replace(".hidden", ".Hidden");
        assert_eq!(verify(changed.as_bytes())["valid"], false, "{algorithm}");
    }
}
