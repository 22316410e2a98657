//! Each fault that a template can have, planted in one that has none.

use super::*;
use crate::content::templates::embedded;

/// Checks the templates that are part of the program with the text and the page of one of them changed.
fn with(name: &str, change: impl Fn(Twin, &str) -> String) -> Result<(), TemplateError> {
    let mut sources = embedded();
    let source = sources.contents.iter_mut().chain(&mut sources.parts).find(|source| source.name == name).unwrap();
    let changed = |twin, text: Option<&str>| text.map(|text| change(twin, text).leak() as &str);
    (source.text, source.html) = (changed(Twin::Text, source.text), changed(Twin::Html, source.html));
    check(&sources)
}

/// One twin with `old` replaced by `new`, which must change it.
fn replacing(name: &str, twin: Twin, old: &str, new: &str) -> Result<(), TemplateError> {
    with(name, |changed, text| {
        assert!(changed != twin || text.contains(old), "{old:?} is not in {text}");
        if changed == twin { text.replace(old, new) } else { text.to_owned() }
    })
}

fn both(name: &str, added: &str) -> [Result<(), TemplateError>; 2] {
    let add = |twin| replacing(name, twin, "{{/layout}}", &format!("{added}{{{{/layout}}}}"));
    [add(Twin::Text), add(Twin::Html)]
}

#[track_caller]
fn refused(checked: Result<(), TemplateError>, message: &str) {
    assert_eq!(checked.unwrap_err().to_string(), message);
}

#[track_caller]
fn both_refused(name: &str, added: &str, message: &str) {
    let [text, html] = both(name, added);
    refused(text, &format!("{name}.txt {message}"));
    refused(html, &format!("{name}.html {message}"));
}

#[test]
fn the_templates_of_the_program_fit_their_contents() {
    assert_eq!(check(&embedded()), Ok(()));
    assert_eq!(with("alert", |_, text| text.to_owned()), Ok(()));
}

#[test]
fn a_field_that_the_content_lacks_is_found_wherever_it_is_named() {
    let message = "names device, which its content lacks";
    both_refused("alert", "{{device}}", message);
    both_refused("alert", "{{#if device}}x{{/if}}", message);
    both_refused("alert", "{{#unless device}}x{{/unless}}", message);
    both_refused("alert", "{{#each device}}x{{/each}}", message);
    both_refused("alert", "{{#if alerts}}{{else}}{{#unless title}}{{device}}{{/unless}}{{/if}}", message);
    both_refused("alert", "{{#if alerts}}{{else if device}}x{{/if}}", message);
    both_refused("alert", "{{letter.address}}", "names letter.address, which its content lacks");
    both_refused("account_secured", "{{#each done}}{{handle}}{{/each}}", "names handle, which its content lacks");
    refused(
        replacing("alert", Twin::Text, "Subject: {{title}}", "Subject: {{device}}"),
        "alert.txt (subject) names device, which its content lacks",
    );
    refused(
        replacing("alert", Twin::Html, "{{> link href=alerts}}", "{{> link href=device}}"),
        "alert.html names device, which its content lacks",
    );
    refused(
        replacing("button", Twin::Html, "{{label}}", "{{title}}"),
        "button.html names title, which its content lacks",
    );
}

#[test]
fn a_field_that_is_left_out_is_found() {
    refused(replacing("passkey_added", Twin::Text, "{{page}}", ""), "passkey_added.txt leaves out page");
    refused(replacing("passkey_added", Twin::Html, "{{passkey}}", ""), "passkey_added.html leaves out passkey");
    refused(replacing("alert", Twin::Html, "{{> paragraphs of=text}}", ""), "alert.html leaves out text");
    refused(replacing("account_secured", Twin::Text, "{{this}}", ""), "account_secured.txt leaves out done");
    refused(replacing("layout", Twin::Text, "{{handle}}", ""), "account_recovered.txt leaves out handle");
    refused(replacing("layout", Twin::Text, "{{> @partial-block}}", ""), "account_recovered.txt leaves out at");
}

#[test]
fn asking_for_a_field_is_not_saying_it() {
    refused(replacing("account_recovered", Twin::Text, "{{undo}}", ""), "account_recovered.txt leaves out undo");
    let other = replacing("account_recovered", Twin::Html, "href=undo", "href=page");
    refused(other, "account_recovered.html leaves out undo");
}

#[test]
fn what_is_told_only_sometimes_is_left_out() {
    let text = |new| replacing("alert", Twin::Text, "{{page}}", new);
    refused(text("{{#if alerts}}{{page}}{{/if}}"), "alert.txt leaves out page");
    refused(text("{{#unless alerts}}{{page}}{{/unless}}"), "alert.txt leaves out page");
    text("{{#if alerts}}{{page}}{{else}}{{page}}{{/if}}").unwrap();
    text("{{#if page}}{{page}}{{/if}}").unwrap();
    refused(replacing("paragraphs", Twin::Html, "{{else}}{{text}}", ""), "alert.html leaves out text");
    refused(
        replacing("layout", Twin::Html, "{{handle}}", "{{#if letter.home}}{{else}}{{handle}}{{/if}}"),
        "account_recovered.html leaves out handle",
    );
}

#[test]
fn a_page_has_each_link_both_as_a_target_and_as_a_text_that_can_be_read() {
    let hidden = replacing("link", Twin::Html, "\">{{href}}</a>", "\">here</a>");
    refused(hidden, "account_recovered.html leaves out undo");
    let unfollowed = with("link", |_, _| "<p>{{href}}</p>".to_owned());
    refused(unfollowed, "account_recovered.html leaves out undo");
}

#[test]
fn what_may_be_missing_is_not_said_without_asking() {
    both_refused("alert", "{{alerts}}", "says alerts, which may be missing, without asking");
    both_refused(
        "alert",
        "{{#unless alerts}}{{alerts}}{{/unless}}",
        "says alerts, which may be missing, without asking",
    );
    both_refused(
        "alert",
        "{{#if alerts}}{{else}}{{alerts}}{{/if}}",
        "says alerts, which may be missing, without asking",
    );
    both("alert", "{{#unless alerts}}x{{else}}{{alerts}}{{/unless}}").into_iter().for_each(|checked| checked.unwrap());
    refused(
        replacing("paragraphs", Twin::Html, "{{#if link}}", "{{#if text}}"),
        "paragraphs.html says link, which may be missing, without asking",
    );
}

#[test]
fn nothing_is_said_unescaped() {
    both_refused("alert", "{{{title}}}", "says title unescaped");
    both_refused("alert", "{{&title}}", "says title unescaped");
    both_refused("alert", "{{#if alerts}}{{{title}}}{{/if}}", "says title unescaped");
    refused(replacing("button", Twin::Html, "{{label}}", "{{{label}}}"), "button.html says label unescaped");
}

#[test]
fn in_a_tag_only_a_whole_target_is_said() {
    let html = |added| both("alert", added)[1].clone();
    refused(html("<p title=\"{{title}}\">"), "alert.html may not use title in a tag");
    refused(html("<p class={{title}}>"), "alert.html may not use title in a tag");
    refused(html("<a href=\"{{title}}\">"), "alert.html may not use title in a tag");
    refused(html("<a href={{page}}>"), "alert.html may not use page in a tag");
    refused(html("<a href=\"{{page}}/x\">"), "alert.html may not use a target of more than one field");
    refused(html("<a href=\"{{page}}{{page}}\">"), "alert.html may not use page in a tag");
    refused(html("<style>p { color: {{title}} }</style>"), "alert.html may not use title in a tag");
    html("<a href=\"{{page}}\">{{title}}</a> {{title}}").unwrap();
    let half = html("{{#if alerts}}<p {{/if}}>");
    refused(half, "alert.html may not use a tag that begins or ends in one branch alone");
}

#[test]
fn the_templates_keep_to_what_can_be_checked() {
    both_refused("alert", "{{lookup this \"title\"}}", "may not use lookup");
    both_refused("alert", "{{#with title}}x{{/with}}", "may not use with");
    both_refused("alert", "{{../title}}", "may not use ../title");
    both_refused("alert", "{{@root/title}}", "may not use @root/title");
    both_refused("alert", "{{#if @first}}x{{/if}}", "may not use @first");
    both_refused("alert", "{{#if (len title)}}x{{/if}}", "may not use a nested expression");
    both_refused("alert", "{{#each title}}x{{/each}}", "may not use each of title");
    both_refused("alert", "{{letter}}", "may not use all of letter");
    both_refused("alert", "{{> layout title=\"x\"}}", "may not use arguments of layout so");
    both_refused("alert", "{{> @partial-block}}", "may not use @partial-block");
    both_refused("alert", "{{#*inline \"x\"}}{{title}}{{/inline}}", "may not use a decorator");
    both_refused("alert", "{{> nothing}}", "includes nothing, which is not there");
    refused(with("layout", |_, text| format!("{{{{> layout}}}}{text}")), "layout.txt may not use layout so");
}

#[test]
fn a_content_has_a_text_and_a_page_and_a_template_has_a_content() {
    let mut sources = embedded();
    let alert = sources.contents.iter().position(|source| source.name == "alert").unwrap();
    sources.contents[alert].html = None;
    refused(check(&sources), "alert.html is missing");
    sources.contents[alert].text = None;
    refused(check(&sources), "alert.txt is missing");
    let mut without = sources.contents.remove(alert);
    refused(check(&sources), "alert.txt is missing");
    without.name = "farewell";
    sources.contents.push(without);
    refused(check(&sources), "farewell is of no content");
    let mut sources = embedded();
    sources.parts.push(Source { name: "banner", text: Some("x"), html: None });
    refused(check(&sources), "banner.txt is of no content");
}

#[test]
fn every_file_of_the_templates_is_part_of_the_program() {
    let sources = embedded();
    let twins = |source: &Source<'_>| {
        let names = [source.text.map(|_| source.file(Twin::Text)), source.html.map(|_| source.file(Twin::Html))];
        names.into_iter().flatten().map(|file| format!("{file}.hbs"))
    };
    let embedded: BTreeSet<String> = sources.contents.iter().chain(&sources.parts).flat_map(twins).collect();
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/email")).unwrap();
    let files = folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(embedded, files);
}

#[test]
fn a_text_begins_with_its_subject() {
    let message = "alert.txt does not begin with its subject and an empty line";
    refused(replacing("alert", Twin::Text, "Subject: ", ""), message);
    refused(replacing("alert", Twin::Text, "Subject: {{title}}\n\n", "Subject: {{title}}\n"), message);
}

#[test]
fn what_is_no_template_is_found_with_its_line() {
    refused(
        replacing("alert", Twin::Text, "Subject: {{title}}", "Subject: {{title"),
        "alert.txt (subject) is no template: a fault near line 1",
    );
    refused(replacing("alert", Twin::Text, "{{page}}", "{{page"), "alert.txt is no template: a fault near line 14");
    refused(replacing("alert", Twin::Html, "{{/if}}", ""), "alert.html is no template: a fault near line 14");
}
