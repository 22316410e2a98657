//! A setting that cannot be is refused with its name before anything is changed.

use tokio::net::TcpListener;

use crate::migrate::has_schema;
use crate::program::{Scratch, key, run};
use crate::support;

/// Runs `serve --migrate` on an empty database, which must stay as it is.
async fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let database = support::empty_database().await;
    let url = database.url();
    let mut all = vec!["serve", "--migrate", "--database-url", &url];
    all.extend(arguments);
    if !arguments.contains(&"--listen") {
        all.extend(["--listen", "127.0.0.1:0"]);
    }
    run(&all).await.failed(code, words);
    assert!(!has_schema(&database).await, "{arguments:?} changed the database");
}

#[tokio::test]
async fn what_serve_needs_is_named() {
    let scratch = Scratch::new();
    let key = key(&scratch).await;
    refused(&["--signing-key", &key], 2, &["--issuer"]).await;
    refused(&["--issuer", "https://id.example"], 2, &["--signing-key", "postrider keys generate"]).await;
    for issuer in ["", "id.example", "http://id.example", "https://id.example?x", "https://id.example#x", "https:// x"]
    {
        refused(&["--issuer", issuer, "--signing-key", &key], 2, &["--issuer"]).await;
    }
}

#[tokio::test]
async fn an_unusable_file_is_named_and_nothing_of_it_is_told() {
    let scratch = Scratch::new();
    let key = key(&scratch).await;
    let text = scratch.arg("not-a-key");
    std::fs::write(&text, "correct horse battery staple").unwrap();
    let issuer = ["--issuer", "https://id.example"];
    for file in [scratch.arg("absent"), text.clone()] {
        let words = ["--signing-key (POSTRIDER_SIGNING_KEYS)", file.as_str()];
        refused(&[&issuer[..], &["--signing-key", &file]].concat(), 2, &words).await;
        let words = ["--extra-roots (POSTRIDER_EXTRA_ROOTS)", file.as_str()];
        let roots = ["--signing-key", &key, "--extra-roots", &file];
        refused(&[&issuer[..], &roots].concat(), 2, &words).await;
    }
    let twice = ["--signing-key", &key, "--signing-key", &key];
    refused(&[&issuer[..], &twice].concat(), 2, &["the same signing key"]).await;
}

#[tokio::test]
async fn timing_that_cannot_hold_is_refused_with_both_settings() {
    let scratch = Scratch::new();
    let key = key(&scratch).await;
    let cases: [(&[&str], &[&str]); 6] = [
        (&["--lease", "20s"], &["send timeout (10s)", "recording margin (10s)", "lease (20s)", "--lease"]),
        (&["--queue-timeout", "11s"], &["queue timeout (11s)", "recording margin (10s)", "--queue-timeout"]),
        (&["--shutdown-deadline", "9s"], &["shutdown deadline (9s)", "send timeout (10s)", "--shutdown-deadline"]),
        (&["--backoff-cap", "2h"], &["backoff cap (7200s)", "MAX_AGE of channel backchannel_logout", "--backoff-cap"]),
        (&["--poll-interval", "0s"], &["poll interval must be longer than zero"]),
        (&["--actors-pool-size", "8"], &["pool size (8)", "at least 12", "--actors-pool-size"]),
    ];
    for (flags, words) in cases {
        let all = [&["--issuer", "https://id.example", "--signing-key", &key][..], flags].concat();
        refused(&all, 2, words).await;
    }
    for (flags, words) in [
        (["--lease", "60"], ["--lease", "a unit is missing: write 60s"]),
        (["--lease", "a while"], ["--lease", "such as 250ms, 10s, 5m"]),
        (["--slots-per-sender", "0"], ["--slots-per-sender", "0"]),
        (["--wake-ups", "maybe"], ["--wake-ups", "maybe"]),
        (["--allow-network-for-tests-and-demos", "loopback"], ["--allow-network-for-tests-and-demos", "loopback"]),
    ] {
        let all = [&["--issuer", "https://id.example", "--signing-key", &key][..], &flags].concat();
        refused(&all, 2, &words).await;
    }
}

#[tokio::test]
async fn what_no_mail_can_be_sent_with_is_named_and_no_password_repeated() {
    let scratch = Scratch::new();
    let key = key(&scratch).await;
    let link = scratch.arg("link.key");
    run(&["keys", "generate-link-key", &link]).await.ok();
    let usual = ["--issuer", "https://id.example", "--signing-key", &key];
    let relay = ["--smtp-url", "smtps://mailer:hunter2@relay.example"];
    let links = ["--link-key", &link];
    let absent = scratch.arg("absent");
    let cases: [(&[&[&str]], &[&str]); 11] = [
        (&[&relay], &["--link-key (POSTRIDER_LINK_KEYS)", "postrider keys generate-link-key"]),
        (&[&relay, &["--link-key", &absent]], &["--link-key (POSTRIDER_LINK_KEYS)", "absent"]),
        (
            &[&["--smtp-url", "http://u:hunter2@relay.example"], &links],
            &["--smtp-url (POSTRIDER_SMTP_URLS) number 1", "scheme"],
        ),
        (&[&relay, &["--smtp-url", "smtp://u:hunter2@"], &links], &["--smtp-url (POSTRIDER_SMTP_URLS) number 2"]),
        (&[&["--smtp-url", "smtp+plain://192.0.2.1"], &links], &["smtp+plain", "this machine"]),
        (&[&["--smtp-url", "smtp+plain://u:hunter2@192.0.2.1", "--allow-plain-smtp-to-any-host"], &links], &["login"]),
        (&[&relay, &links, &["--mail-from", "a b@id.example"]], &["--mail-from (POSTRIDER_MAIL_FROM)"]),
        (&[&relay, &links, &["--smtp-helo", "a\r\nb"]], &["helo"]),
        (&[&["--pages", "http://id.example"]], &["--pages (POSTRIDER_PAGES)", "https"]),
        (&[&["--alerts-page", "alerts"]], &["--alerts-page (POSTRIDER_ALERTS_PAGE)"]),
        (
            &[&relay, &links, &["--dkim-key", &absent, "--dkim-selector", "s"]],
            &["--dkim-key (POSTRIDER_DKIM_KEY)", "absent"],
        ),
    ];
    for (flags, words) in cases {
        let all = [&usual[..], &flags.concat()].concat();
        let done = run(&[&["serve", "--listen", "127.0.0.1:0"], &all[..]].concat()).await.failed(2, words);
        assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
        refused(&all, 2, words).await;
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let scratch = Scratch::new();
    let key = key(&scratch).await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let all = ["--issuer", "https://id.example", "--signing-key", &key, "--listen", &address];
    refused(&all, 1, &["--listen (POSTRIDER_LISTEN)", &address, "another process has this port"]).await;
}

#[tokio::test]
async fn an_unmigrated_database_is_refused_by_what_does_not_migrate() {
    let database = support::empty_database().await;
    let scratch = Scratch::new();
    let key = key(&scratch).await;
    let serve = ["serve", "--issuer", "https://id.example", "--signing-key", &key, "--listen", "127.0.0.1:0"];
    for command in [&serve[..], &["deliveries", "list"]] {
        let done = run(&[command, &["--database-url", &database.url()]].concat()).await;
        done.failed(2, &["not migrated", "postrider migrate"]);
    }
    assert!(!has_schema(&database).await);
}

#[tokio::test]
async fn a_database_url_that_cannot_be_is_refused_and_never_repeated() {
    for url in
        ["mysql://u:hunter2@h/d", "hunter2", "postgresql://u:hunter2@h:port/d", "postgresql://u:hunter2@h/d?port=x"]
    {
        let done = run(&["deliveries", "list", "--database-url", url]).await;
        let done = done.failed(2, &["--database-url (DATABASE_URL)", "postgresql://"]);
        assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
    }
    let unknown = "postgresql://127.0.0.1:1/d?pasword=hunter2";
    let done = run(&["deliveries", "list", "--database-url", unknown, "--log", "trace"]).await;
    let done = done.failed(7, &["pasword", "does nothing"]);
    assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
}
