//! Previews in files.

use std::fs;
use std::path::Path;

use super::Preview;
use crate::cli::failure::{Exit, Failure};

/// Writes a page and a text with its subject for each; returns the paths, one on a line.
pub(super) fn write(folder: &Path, previews: &[Preview]) -> Result<String, Failure> {
    let failed = |path: &Path| {
        let what = format!("cannot write {}", path.display());
        move |error: std::io::Error| Failure::new(Exit::Failed, what).because(&error)
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut paths = String::new();
    for Preview { name, rendered, .. } in previews {
        let text = format!("Subject: {}\n\n{}", rendered.subject, rendered.text);
        for (ending, content) in [("html", &rendered.html), ("txt", &text)] {
            let path = folder.join(format!("{name}.{ending}"));
            fs::write(&path, content).map_err(failed(&path))?;
            paths.push_str(&format!("{}\n", path.display()));
        }
    }
    Ok(paths)
}
