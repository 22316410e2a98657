//! A folder that goes with its test, unless the test fails.

use std::path::{Path, PathBuf};

pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("postrider-chaos-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// One JSON line for each.
    pub fn write<T: serde::Serialize>(&self, name: &str, all: &[T]) {
        let lines: String = all.iter().map(|one| serde_json::to_string(one).unwrap() + "\n").collect();
        std::fs::write(self.0.join(name), lines).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what was seen is kept in {}", self.0.display());
        } else {
            _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
