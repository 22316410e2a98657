//! Retry-After (RFC 9110 10.2.3): seconds or a date in one of three forms (5.6.7). Pure.

use std::time::Duration;

use chrono::{DateTime, Datelike, Months, NaiveDate, TimeDelta, Utc};

/// The longest wait that comes out, some 136 years: longer ones, however written, are cut to it, so that adding it to
/// a time cannot overflow.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(u32::MAX as u64);

/// The wait that the header's lines ask for, counted from `now`: of several, the longest; one that is malformed is
/// passed over; a date that has passed is no wait. `None` where no line can be read.
///
/// A weekday that does not fit its date is forgiven, second 60 is a leap second, and letter case counts.
pub fn retry_after<'a>(lines: impl IntoIterator<Item = &'a [u8]>, now: DateTime<Utc>) -> Option<Duration> {
    lines.into_iter().filter_map(|line| wait_of(line, now)).max()
}

fn wait_of(line: &[u8], now: DateTime<Utc>) -> Option<Duration> {
    let text = std::str::from_utf8(line).ok()?.trim_matches([' ', '\t']);
    if let Some(seconds) = seconds(text) {
        return Some(seconds);
    }
    let date = imf_fixdate(text).or_else(|| rfc850_date(text, now)).or_else(|| asctime_date(text))?;
    Some(date.signed_duration_since(now).to_std().unwrap_or_default().min(MAX_RETRY_AFTER))
}

/// `delay-seconds`: digits alone; too many of them are a long wait, not a malformed one.
fn seconds(text: &str) -> Option<Duration> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs).min(MAX_RETRY_AFTER))
}

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `Thu, 01 Jan 2026 00:10:00 GMT`
fn imf_fixdate(text: &str) -> Option<DateTime<Utc>> {
    let (day_name, rest) = text.split_once(", ")?;
    let [day, month, year, time, "GMT"] = fields(rest, ' ')? else { return None };
    is_short_day(day_name).then(|| date_time(number(year, 4)?, month, number(day, 2)?, time)).flatten()
}

/// `Thu Jan  1 00:10:00 2026`: the day is padded with a space, and the zone is understood.
fn asctime_date(text: &str) -> Option<DateTime<Utc>> {
    let day_name = text.get(..3)?;
    let month = text.get(3..8)?.strip_prefix(' ')?.strip_suffix(' ')?;
    let day = text.get(8..10)?;
    let day = match day.strip_prefix(' ') {
        Some(digit) => number(digit, 1)?,
        None => number(day, 2)?,
    };
    let [time, year] = fields(text.get(10..)?.strip_prefix(' ')?, ' ')?;
    is_short_day(day_name).then(|| date_time(number(year, 4)?, month, day, time)).flatten()
}

/// `Thursday, 01-Jan-26 00:10:00 GMT`: the year is the latest with these two digits that is not more than 50 years
/// ahead (RFC 9110 5.6.7).
fn rfc850_date(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let (day_name, rest) = text.split_once(", ")?;
    let [date, time, "GMT"] = fields(rest, ' ')? else { return None };
    let [day, month, year] = fields(date, '-')?;
    let (day, year) = (number(day, 2)?, number(year, 2)?);
    if !DAYS.contains(&day_name) {
        return None;
    }
    let century = u32::try_from(now.year()).ok()? / 100 * 100;
    let horizon = now.checked_add_months(Months::new(50 * 12))?;
    [century + 100, century, century.saturating_sub(100)]
        .into_iter()
        .filter_map(|century| date_time(century + year, month, day, time))
        .find(|date| *date <= horizon)
}

fn is_short_day(name: &str) -> bool {
    name.len() == 3 && DAYS.iter().any(|day| day.starts_with(name))
}

/// Exactly `N` fields between single separators.
fn fields<const N: usize>(text: &str, separator: char) -> Option<[&str; N]> {
    text.split(separator).collect::<Vec<_>>().try_into().ok()
}

/// Exactly `digits` digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let exact = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    exact.then(|| text.parse().ok()).flatten()
}

fn date_time(year: u32, month: &str, day: u32, time: &str) -> Option<DateTime<Utc>> {
    let month = u32::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let [hour, minute, second] = fields(time, ':')?;
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    if second > 60 {
        return None;
    }
    let minute_start = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?.and_hms_opt(hour, minute, 0)?;
    minute_start.and_utc().checked_add_signed(TimeDelta::seconds(i64::from(second)))
}
