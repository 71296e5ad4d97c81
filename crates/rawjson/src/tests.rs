mod checked;
pub mod generate;
mod object;
mod scan;
mod spans;
