//! The scanner of definitions and what becomes of hidden characters, from the outside.

mod corpus;
mod sanitized;
mod withheld;
