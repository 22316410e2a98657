//! `postrider mail`: what e-mails look like.

mod files;
mod page;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use super::failure::{Exit, Failure};
use super::signals::Signals;
use crate::content::{Content, Letterhead, Rendered, Renderer};

#[derive(Debug, Subcommand)]
pub(super) enum MailCommand {
    /// See what e-mails say, with made-up contents. Without anything else: the names of what can be sent.
    Preview(PreviewArguments),
}

#[derive(Debug, Args)]
pub(super) struct PreviewArguments {
    /// What to see; see the list for the names.
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(Content::NAMES), hide_possible_values = true)]
    names: Vec<String>,

    /// See everything.
    #[arg(long, conflicts_with = "names")]
    all: bool,

    /// The folder that the files are written to, which is made if need be. Earlier previews are overwritten.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,

    /// Show everything on a local web page instead, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["names", "all", "out"])]
    serve: bool,

    /// Whose e-mails they are.
    #[arg(long, value_name = "NAME", default_value = "Example ID")]
    service: String,
}

/// A rendered sample. Where a content has several, the second is called `name-2`.
struct Preview {
    content: &'static str,
    name: String,
    rendered: Rendered,
}

pub(super) async fn run(command: &MailCommand, signals: &mut Signals) -> Result<String, Failure> {
    let MailCommand::Preview(arguments) = command;
    if arguments.serve {
        return page::serve(previews(arguments, Content::NAMES)?, signals).await.map(|()| String::new());
    }
    if arguments.all {
        return files::write(&arguments.out, &previews(arguments, Content::NAMES)?);
    }
    if arguments.names.is_empty() {
        return Ok(Content::NAMES.iter().flat_map(|name| [name, "\n"]).collect());
    }
    let names: Vec<&str> = arguments.names.iter().map(String::as_str).collect();
    files::write(&arguments.out, &previews(arguments, &names)?)
}

fn previews(arguments: &PreviewArguments, names: &[&str]) -> Result<Vec<Preview>, Failure> {
    let letterhead = Letterhead { service: arguments.service.clone(), home: "https://id.example.com/".to_owned() };
    let renderer = Renderer::new(&letterhead).map_err(|error| Failure::of(Exit::Usage, &error))?;
    let mut previews: Vec<Preview> = Vec::new();
    for content in Content::samples().iter().filter(|content| names.contains(&content.name())) {
        let rendered = renderer.render(content).map_err(|error| Failure::of(Exit::Failed, &error))?;
        let content = content.name();
        let name = match previews.iter().filter(|preview| preview.content == content).count() {
            0 => content.to_owned(),
            earlier => format!("{content}-{}", earlier + 1),
        };
        previews.push(Preview { content, name, rendered });
    }
    Ok(previews)
}
