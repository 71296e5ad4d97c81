//! `bench-hot`: does one thing of the way of a call so many times, for a tool that counts instructions. The
//! difference between two counts says what one time costs, without start and end.
fn main() {}
