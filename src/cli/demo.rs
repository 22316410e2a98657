//! `postrider demo`: the one command that writes to stdout while it runs.

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;

use super::arguments::Global;
use super::database::Database;
use super::failure::{Exit, Failure};
use crate::demo::{self, DemoError, DemoOptions};
use crate::pooler::SessionError;
use crate::private_postgres::default_data_folder;
use crate::subsystem::SetupError;

pub(super) async fn run(global: &Global) -> Result<String, Failure> {
    let mut global = global.clone();
    if global.database_url.is_none() && global.data.is_none() {
        global.data = Some(folder_of_its_own()?);
    }
    let database = Database::existing_or_new(&global).await?;
    let options = DemoOptions {
        redraws_status: stdout().is_terminal(),
        database_arguments: arguments(&global),
        program: std::env::args().next().unwrap_or_else(|| "postrider".into()),
        ..DemoOptions::default()
    };
    let report = demo::run(database.options.clone(), &options, &mut stdout()).await;
    let report = report.map_err(|error| Failure::of(exit(&error), &error))?;
    database.close().await?;
    if report.differs() {
        return Err(Failure::new(Exit::Failed, "the demo did not go as expected: see the lines marked DIFFERS"));
    }
    Ok(String::new())
}

/// Beside the folder that `serve` uses, so that neither meets the other's deliveries.
fn folder_of_its_own() -> Result<PathBuf, Failure> {
    let mut folder = default_data_folder().map_err(|error| Failure::of(Exit::Failed, &error))?;
    folder.as_mut_os_string().push("-demo");
    Ok(folder)
}

fn exit(error: &DemoError) -> Exit {
    match error {
        DemoError::Session(SessionError::Pooler(_)) | DemoError::Subsystem(SetupError::Pooler(_)) => Exit::Usage,
        DemoError::Unreachable(_) | DemoError::Session(_) => Exit::Unreachable,
        _ => Exit::Failed,
    }
}

/// What to add to a command so that it finds the demo's database.
fn arguments(global: &Global) -> String {
    match &global.data {
        Some(data) => format!("--data {}", data.display()),
        None => String::new(),
    }
}
