//! Signing in to remote servers: what is asked of whom, what is kept where, and what is never said or sent.

mod attacks;
mod authority;
mod offering;
pub(crate) mod served;
mod serving;
