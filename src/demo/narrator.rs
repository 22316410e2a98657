//! What the demo says as it runs: one line for each notable thing, with the time since it began.

use std::fmt::Display;
use std::io::Write;
use std::time::{Duration, Instant};

use super::DemoError;

pub(super) struct Narrator<'a> {
    output: &'a mut (dyn Write + Send),
    begun: Instant,
    redraws: bool,
}

impl<'a> Narrator<'a> {
    /// With `redraws` the output is a terminal, on whose last line a status may be drawn again and again.
    pub(super) fn new(output: &'a mut (dyn Write + Send), redraws: bool) -> Self {
        Self { output, begun: Instant::now(), redraws }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A line with the time before it.
    pub(super) fn say(&mut self, line: impl Display) -> Result<(), DemoError> {
        let seconds = self.elapsed().as_secs_f64();
        self.line(format_args!("{seconds:5.1} s  {line}"))
    }

    /// A line as it is.
    pub(super) fn line(&mut self, line: impl Display) -> Result<(), DemoError> {
        self.erase_status()?;
        writeln!(self.output, "{line}").and_then(|()| self.output.flush()).map_err(DemoError::Output)
    }

    /// On a terminal, draws the status again; elsewhere nothing, so that only lasting lines are there to read.
    pub(super) fn status(&mut self, status: impl Display) -> Result<(), DemoError> {
        if !self.redraws {
            return Ok(());
        }
        self.erase_status()?;
        let seconds = self.elapsed().as_secs_f64();
        write!(self.output, "{seconds:5.1} s  {status}").and_then(|()| self.output.flush()).map_err(DemoError::Output)
    }

    /// Takes the status away.
    fn erase_status(&mut self) -> Result<(), DemoError> {
        if !self.redraws {
            return Ok(());
        }
        // ECMA-48: to the first column, erase the line.
        self.output.write_all(b"\r\x1b[2K").map_err(DemoError::Output)
    }
}

impl Drop for Narrator<'_> {
    fn drop(&mut self) {
        let _ = self.erase_status(); // nobody may be there to read
    }
}
