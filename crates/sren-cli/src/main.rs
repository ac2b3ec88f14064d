//! The `sren` command.
fn main() {}
