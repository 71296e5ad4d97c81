//! What is let through: decisions about what servers say of themselves, made of plain data. Nothing here waits, reads
//! or writes; those who ask for a decision carry it out.

pub mod permissions;
