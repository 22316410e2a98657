//! A table for people: aligned; on a terminal, fitted to its width.

use std::io::{self, IsTerminal};

/// A column's heading, and how narrow it may become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) heading: &'static str,
    pub(super) least: usize,
}

const GAP: &str = "  ";

/// Rows of as many cells as there are columns.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

/// The width of the terminal that stdout is, or `None` where it is none.
pub(super) fn terminal_width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

/// Text without control characters, which in a terminal could do more than be read: they are escaped.
pub(super) fn visible(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

impl<const N: usize> Table<N> {
    pub(super) fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(super) fn push(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| visible(&cell)));
    }

    /// The lines, headings first. Within `width` where one is given: the widest column gives way first, down to the
    /// columns' least widths. `None` where even those do not fit.
    pub(super) fn render(&self, width: Option<usize>) -> Option<String> {
        let mut widths: [usize; N] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| length(&row[column]));
            cells.chain([self.columns[column].heading.len()]).max().unwrap_or(0)
        });
        if let Some(width) = width
            && !self.shrink(&mut widths, width)
        {
            return None;
        }
        let headings = self.columns.map(|column| column.heading.to_owned());
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{:<width$}", cut(cell, width)));
            text.push_str(cells.collect::<Vec<_>>().join(GAP).trim_end());
            text.push('\n');
        }
        Some(text)
    }

    fn shrink(&self, widths: &mut [usize; N], width: usize) -> bool {
        let gaps = GAP.len() * N.saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > width {
            let can_give = (0..N).filter(|&column| widths[column] > self.columns[column].least);
            let Some(widest) = can_give.max_by_key(|&column| widths[column] - self.columns[column].least) else {
                return false;
            };
            widths[widest] -= 1;
        }
        true
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// No longer than `width`, with an ellipsis where something is missing.
pub(super) fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn table() -> Table<2> {
        let mut table = Table::new([Column { heading: "ID", least: 2 }, Column { heading: "DESTINATION", least: 11 }]);
        table.push(["1".to_owned(), "https://client.example/backchannel".to_owned()]);
        table.push(["222".to_owned(), "https://b.example/\u{1b}[2J".to_owned()]);
        table
    }

    #[test]
    fn columns_are_aligned_and_nothing_is_cut_without_a_terminal() {
        let expected = "ID   DESTINATION\n1    https://client.example/backchannel\n222  https://b.example/\\u{1b}[2J\n";
        assert_eq!(table().render(None).as_deref(), Some(expected));
    }

    #[test]
    fn a_terminals_width_is_kept_by_cutting_the_widest_column() {
        let text = table().render(Some(20)).unwrap();
        assert_eq!(text.lines().nth(1), Some("1    https://client…"));
        assert!(text.lines().all(|line| line.chars().count() <= 20), "{text}");
    }

    #[test]
    fn a_terminal_too_narrow_for_the_least_widths_gets_no_table() {
        assert!(table().render(Some(15)).is_some());
        assert_eq!(table().render(Some(14)), None);
    }
}
