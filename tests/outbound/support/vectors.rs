//! The CSV vectors and their escapes (tests/data).

use std::collections::HashMap;
use std::path::Path;

use chrono::{DateTime, TimeZone, Utc};

pub type Row = HashMap<String, String>;

/// The rows of a file, by column name.
pub fn rows(file: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file);
    let rows: Vec<Row> = csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect();
    assert!(rows.len() > 100, "{file} is cut short");
    rows
}

/// 2026-01-01T00:00:00Z.
pub fn now_of_vectors() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 1, 1, 0, 0, 0).unwrap()
}

/// `\uXXXX`, `\t`, `\n`, `\r`, `\\` as in JSON strings; `{{repeat:TEXT:N}}` = TEXT N times.
pub fn unescape(text: &str) -> String {
    let json = format!("\"{}\"", text.replace('"', "\\\""));
    let mut plain: String = serde_json::from_str(&json).unwrap();
    while let Some(start) = plain.find("{{repeat:") {
        let length = plain[start..].find("}}").unwrap();
        let (repeated, times) = plain[start + "{{repeat:".len()..start + length].rsplit_once(':').unwrap();
        let filled = repeated.repeat(times.parse().unwrap());
        plain.replace_range(start..start + length + 2, &filled);
    }
    plain
}

/// The header lines of a row; `; ` parts them.
pub fn header_lines(row: &Row) -> Vec<String> {
    unescape(&row["headers"]).split("; ").filter(|line| !line.is_empty()).map(str::to_owned).collect()
}
