//! Durations as operators write them: `250ms`, `10s`, `5m`, `1h30m`, `7d`.

use std::time::Duration;

/// No setting may be longer: ten years.
const LONGEST: Duration = Duration::from_secs(3650 * 86_400);

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoDuration {
    /// Not numbers with units.
    #[error("expected a whole number and a unit, ms, s, m, h or d, such as 250ms, 10s, 5m or 1h30m")]
    Malformed,
    /// A number alone.
    #[error("a unit is missing: write {0}s for seconds, or give ms, m, h or d")]
    NoUnit(String),
    /// Over ten years.
    #[error("no duration may be longer than 3650d")]
    TooLong,
}

/// Reads a duration: whole numbers, each with its unit.
pub(super) fn parse(text: &str) -> Result<Duration, NoDuration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        if number.is_empty() {
            return Err(NoDuration::Malformed);
        }
        let millis: u64 = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "" => return Err(NoDuration::NoUnit(number.to_owned())),
            _ => return Err(NoDuration::Malformed),
        };
        // All digits, so it can only be too large.
        let number: u64 = number.parse().map_err(|_| NoDuration::TooLong)?;
        let part = number.checked_mul(millis).map(Duration::from_millis).ok_or(NoDuration::TooLong)?;
        total = total.checked_add(part).filter(|total| *total <= LONGEST).ok_or(NoDuration::TooLong)?;
        rest = after;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_add_up() {
        let read = [("250ms", 250), ("10s", 10_000), ("5m", 300_000), ("1h30m", 5_400_000), ("7d", 604_800_000)];
        for (text, millis) in read {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn all_else_is_refused() {
        assert_eq!(parse("10"), Err(NoDuration::NoUnit("10".to_owned())));
        for text in ["", "s", "-1s", "1.5s", "10 s", "10x", "1s ", "ten"] {
            assert_eq!(parse(text), Err(NoDuration::Malformed), "{text:?}");
        }
        for text in ["3651d", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(parse(text), Err(NoDuration::TooLong), "{text}");
        }
    }
}
