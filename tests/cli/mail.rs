//! `postrider mail preview`.

use std::collections::BTreeSet;
use std::fs;

use postrider::content::{Content, Letterhead, Renderer};

use crate::program::{Scratch, Serve, command, run};

#[tokio::test]
async fn the_names_of_all_contents_are_listed_and_an_unknown_one_is_refused() {
    let listed = run(&["mail", "preview"]).await.ok();
    assert_eq!(listed.lines().collect::<Vec<_>>(), Content::NAMES);
    let scratch = Scratch::new();
    let unknown = run(&["mail", "preview", "farewell", "--out", &scratch.arg("out")]).await;
    unknown.failed(2, &["farewell"]);
    let both = run(&["mail", "preview", "alert", "--all", "--out", &scratch.arg("out")]).await;
    both.failed(2, &["--all"]);
    run(&["mail", "preview", "--serve", "--service", "\u{202e}"]).await.failed(2, &["letterhead"]);
    assert!(!scratch.path("out").exists());
}

#[tokio::test]
async fn a_preview_is_what_is_sent() {
    let scratch = Scratch::new();
    let paths =
        run(&["mail", "preview", "new_sign_in", "--out", &scratch.arg("new/out"), "--service", "Ours"]).await.ok();
    let (html, text) = (scratch.arg("new/out/new_sign_in.html"), scratch.arg("new/out/new_sign_in.txt"));
    assert_eq!(paths, format!("{html}\n{text}\n"));
    let letterhead = Letterhead { service: "Ours".into(), home: "https://id.example.com/".into() };
    let sample = Content::samples().into_iter().find(|sample| sample.name() == "new_sign_in").unwrap();
    let rendered = Renderer::new(&letterhead).unwrap().render(&sample).unwrap();
    assert_eq!(fs::read_to_string(html).unwrap(), rendered.html);
    assert_eq!(fs::read_to_string(text).unwrap(), format!("Subject: {}\n\n{}", rendered.subject, rendered.text));
}

#[tokio::test]
async fn all_samples_are_written_each_in_files_of_its_own() {
    let scratch = Scratch::new();
    let paths = run(&["mail", "preview", "--all", "--out", &scratch.arg("out")]).await.ok();
    let paths: BTreeSet<&str> = paths.lines().collect();
    assert_eq!(paths.len(), 2 * Content::samples().len());
    assert_eq!(fs::read_dir(scratch.path("out")).unwrap().count(), paths.len());
    assert!(paths.contains(scratch.arg("out/announcement-2.txt").as_str()));
    fs::write(scratch.path("file"), "").unwrap();
    run(&["mail", "preview", "--all", "--out", &scratch.arg("file/out")]).await.failed(1, &["cannot write"]);
}

#[tokio::test]
async fn previews_are_served_on_this_machine_until_a_signal() {
    let scratch = Scratch::new();
    let serve = Serve::of(&scratch, command(&["mail", "preview", "--serve"])).await;
    assert!(serve.address().starts_with("127.0.0.1:"), "{}", serve.address());
    let (status, head, index) = serve.get("/").await;
    assert!(status == 200 && head.contains("content-security-policy: default-src 'none'"), "{head}");
    for name in Content::NAMES {
        assert!(index.contains(&format!("href=\"/{name}\"")), "{name} is not in {index}");
        let (status, _, page) = serve.get(&format!("/{name}")).await;
        assert!(
            status == 200 && page.contains(&format!("src=\"/{name}.html\"")) && page.contains("Hello ada,"),
            "{page}"
        );
        let (status, _, html) = serve.get(&format!("/{name}.html")).await;
        assert!(status == 200 && html.contains("Hello <bdi>ada</bdi>,"), "{html}");
    }
    assert_eq!(serve.get("/farewell").await.0, 404);
    serve.terminate().await;
}
