//! The `postrider` program: see `docs/cli.md`.

use std::process::ExitCode;

use clap::Parser;
use postrider::cli::{Arguments, run};

fn main() -> ExitCode {
    run(Arguments::parse())
}
