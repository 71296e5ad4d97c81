//! What clients and servers of the two eras have of each other.

mod listening;
